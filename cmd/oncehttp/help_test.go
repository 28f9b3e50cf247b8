package main

import (
	"runtime"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/spf13/cobra"
)

// Every command says what it does, at length, with an example that parses.
func TestHelp(t *testing.T) {
	t.Parallel()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.IsAdditionalHelpTopicCommand() {
			if got := run(t, "help", cmd.Name()).want(t, exitOK); got.out != cmd.Long+"\n\n" || cmd.Short == "" {
				t.Errorf("help %s: %q", cmd.Name(), got.out)
			}
			return
		}
		if cmd.Short == "" || cmd.Long == "" || !strings.Contains(cmd.Example, path) {
			t.Errorf("%s: short %q, long %q, example %q", path, cmd.Short, cmd.Long, cmd.Example)
		}
		for _, text := range strings.Split(cmd.Long+"\n"+cmd.Example, "\n") {
			if len(text) > 120 {
				t.Errorf("%s: help line of %d characters: %s", path, len(text), text)
			}
		}
		got := run(t, append(strings.Fields(path)[1:], "--help")...).want(t, exitOK)
		if !strings.Contains(got.out, cmd.Long) || !strings.Contains(got.out, "Usage:") || got.err != "" {
			t.Errorf("%s --help: stdout %q, stderr %q", path, got.out, got.err)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand(streams{}))
}

func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	run(t).usage(t, "oncehttp: a command is needed; see oncehttp --help")
	run(t, "sned").usage(t, "oncehttp: unknown command sned (send?); see oncehttp --help")
	run(t, "journal", "lsit").usage(t, "oncehttp: journal: unknown command lsit (list?); see oncehttp journal --help")
	run(t, "help", "nosuch").usage(t, "oncehttp: no help for nosuch; see oncehttp --help")
	run(t, "journal").usage(t, "oncehttp: journal: a command is needed; see oncehttp journal --help")
	run(t, "--nope").usage(t, "oncehttp: unknown flag: --nope; see oncehttp --help")
	run(t, "journal", "list", "--nope").usage(t, "oncehttp: unknown flag: --nope; see oncehttp journal list --help")
}

// The version names the toolchain, and the shells' completions are there.
func TestVersionAndCompletion(t *testing.T) {
	t.Parallel()
	if got := run(t, "--version").want(t, exitOK); !strings.HasPrefix(got.out, "oncehttp ") || !strings.Contains(got.out, runtime.Version()) {
		t.Errorf("stdout %q", got.out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := run(t, "completion", shell).want(t, exitOK); !strings.Contains(got.out, "oncehttp") {
			t.Errorf("%s: stdout %q", shell, got.out)
		}
	}
}

// ONCEHTTP_JOURNAL stands for --journal, but never for batch's.
func TestJournalFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ONCEHTTP_JOURNAL", dir+"/env.db")
	m := startMock(t, mockserver.Config{})
	run(t, "send", "POST", m.URL()+"/payments", "-d", "{}", "--key", "k").want(t, exitOK)
	if got := run(t, "journal", "show", "k").want(t, exitOK); !strings.Contains(got.out, "confirmed") {
		t.Errorf("stdout %q", got.out)
	}
	file := writeFile(t, "in.csv", "id\na\n")
	run(t, "batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}").want(t, exitOK)
	run(t, "journal", "show", "idemp:o:a").want(t, exitUsage)
	run(t, "journal", "show", "idemp:o:a", "--journal", file+".oncehttp.db").want(t, exitOK)
}

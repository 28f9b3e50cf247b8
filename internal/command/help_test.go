package command_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// Every command says what it does, at length, with an example that parses.
func TestHelp(t *testing.T) {
	t.Parallel()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.IsAdditionalHelpTopicCommand() {
			if got := commandtest.Run(t, "help", cmd.Name()).Want(t, terminal.ExitOK); got.Out != cmd.Long+"\n\n" || cmd.Short == "" {
				t.Errorf("help %s: %q", cmd.Name(), got.Out)
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
		got := commandtest.Run(t, append(strings.Fields(path)[1:], "--help")...).Want(t, terminal.ExitOK)
		if !strings.Contains(got.Out, cmd.Long) || !strings.Contains(got.Out, "Usage:") || got.Err != "" {
			t.Errorf("%s --help: stdout %q, stderr %q", path, got.Out, got.Err)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(command.Root(terminal.Streams{}))
}

func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	commandtest.Run(t).Usage(t, "oncehttp: a command is needed; see oncehttp --help")
	commandtest.Run(t, "sned").Usage(t, "oncehttp: unknown command sned (send?); see oncehttp --help")
	commandtest.Run(t, "journal", "lsit").Usage(t, "oncehttp: journal: unknown command lsit (list?); see oncehttp journal --help")
	commandtest.Run(t, "journal", "changes", "--help").Usage(t, "oncehttp: journal: unknown command changes; see oncehttp journal --help")
	commandtest.Run(t, "journal", "lsit", "-h", "--journal", "j.db").Usage(t, "oncehttp: journal: unknown command lsit (list?); see oncehttp journal --help")
	commandtest.Run(t, "check", "https://api.example.com", "--help").Want(t, terminal.ExitOK)
	commandtest.Run(t, "help", "nosuch").Usage(t, "oncehttp: no help for nosuch; see oncehttp --help")
	commandtest.Run(t, "journal").Usage(t, "oncehttp: journal: a command is needed; see oncehttp journal --help")
	commandtest.Run(t, "--nope").Usage(t, "oncehttp: unknown flag: --nope; see oncehttp --help")
	commandtest.Run(t, "batch", "a.csv", "--dryrun").Usage(t, "oncehttp: unknown flag: --dryrun (--dry-run?); see oncehttp batch --help")
	commandtest.Run(t, "batch", "a.csv", "--worker", "2").Usage(t, "oncehttp: unknown flag: --worker (--workers?); see oncehttp batch --help")
	commandtest.Run(t, "journal", "list", "--nope").Usage(t, "oncehttp: unknown flag: --nope; see oncehttp journal list --help")
}

// The version names the toolchain, and the shells' completions are there.
func TestVersionAndCompletion(t *testing.T) {
	t.Parallel()
	if got := commandtest.Run(t, "--version").Want(t, terminal.ExitOK); !strings.HasPrefix(got.Out, "oncehttp ") || !strings.Contains(got.Out, runtime.Version()) {
		t.Errorf("stdout %q", got.Out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := commandtest.Run(t, "completion", shell).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "oncehttp") {
			t.Errorf("%s: stdout %q", shell, got.Out)
		}
	}
}

// ONCEHTTP_JOURNAL stands for --journal, but never for batch's.
func TestJournalFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ONCEHTTP_JOURNAL", dir+"/env.db")
	m := commandtest.StartMock(t, mockserver.Config{})
	commandtest.Run(t, "send", "POST", m.URL()+"/payments", "-d", "{}", "--key", "k").Want(t, terminal.ExitOK)
	if got := commandtest.Run(t, "journal", "show", "k").Want(t, terminal.ExitOK); !strings.Contains(got.Out, "confirmed") {
		t.Errorf("stdout %q", got.Out)
	}
	file := commandtest.WriteFile(t, "in.csv", "id\na\n")
	commandtest.Run(t, "batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}").Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "show", "idemp:o:a").Want(t, terminal.ExitUsage)
	commandtest.Run(t, "journal", "show", "idemp:o:a", "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK)
}

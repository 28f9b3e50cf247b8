package main

import (
	"strings"
	"testing"

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
	run(t, "sned").usage(t, "oncehttp: unknown command sned; see oncehttp --help")
	run(t, "journal").usage(t, "oncehttp: journal: a command is needed; see oncehttp journal --help")
	run(t, "--nope").usage(t, "oncehttp: unknown flag: --nope")
}

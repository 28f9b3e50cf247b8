package settings

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// WantArgs returns a check that a command has least to most arguments. The parameter what names them in its errors.
func WantArgs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least && least == 1 && most == 1:
			return fmt.Errorf("%s is missing; see %s --help", what, cmd.CommandPath())
		case len(args) < least:
			return fmt.Errorf("want %s; see %s --help", what, cmd.CommandPath())
		case len(args) > most && most == 0:
			return fmt.Errorf("%q is too much: it takes no arguments; see %s --help", words.Clip(args[0]), cmd.CommandPath())
		case len(args) > most:
			return fmt.Errorf("%q is too much: want %s; see %s --help", words.Clip(args[most]), what, cmd.CommandPath())
		}
		return nil
	}
}

// NeedsCommand is the action of a command with subcommands only: it always returns an error.
func NeedsCommand(cmd *cobra.Command, args []string) error {
	path := cmd.CommandPath()
	what := strings.TrimPrefix(strings.TrimPrefix(path, cmd.Root().Name()), " ")
	if what != "" {
		what += ": "
	}
	if len(args) > 0 {
		cmd.SuggestionsMinimumDistance = 2 // edits away; cobra sets it only for its own messages
		meant := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			meant = " (" + near[0] + "?)"
		}
		return fmt.Errorf("%sunknown command %s%s; see %s --help", what, words.Clip(args[0]), meant, path)
	}
	return fmt.Errorf("%sa command is needed; see %s --help", what, path)
}

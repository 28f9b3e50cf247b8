package command

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// ReaderLeft reports whether a read-only command has failed because nobody reads its output any more, as with a pager or head.
func ReaderLeft(cmd *cobra.Command, err error) bool {
	if cmd == nil || !errors.Is(err, syscall.EPIPE) || errors.As(err, new(*net.OpError)) || errors.As(err, new(*place.Fault)) { // of a journal's server
		return false
	}
	switch strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") {
	case "journal list", "journal stuck", "journal show", "journal stats", "journal export", "journal verify", "profile list", "profile show":
		return true
	}
	return false
}

// versionCommand returns the command oncehttp version, which prints the same as --version.
func versionCommand(s terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version of oncehttp and of the Go toolchain, as --version does.",
		Example: "  oncehttp version",
		Args:    settings.WantArgs(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.Out, "oncehttp %s\n", version())
			return err
		},
	}
}

// findHelp returns the command or topic of oncehttp help: one named in full, or the only one of that name below another.
func findHelp(root *cobra.Command, args []string) (*cobra.Command, error) {
	found, rest, err := root.Find(args)
	if err == nil && len(rest) == 0 {
		return found, nil
	}
	var paths []string
	var below func(*cobra.Command)
	below = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if len(args) == 1 && sub.Name() == args[0] {
				found, paths = sub, append(paths, strings.TrimPrefix(sub.CommandPath(), root.Name()+" "))
			}
			below(sub)
		}
	}
	below(root)
	switch len(paths) {
	case 0:
		return nil, fmt.Errorf("no help for %s; see oncehttp --help", words.Clip(strings.Join(args, " ")))
	case 1:
		return found, nil
	}
	return nil, fmt.Errorf("%s is the name of several commands: say help %s", words.Clip(args[0]), strings.Join(paths, ", or help "))
}

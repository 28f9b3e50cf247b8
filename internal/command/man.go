package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// manCommand returns the command oncehttp man.
func manCommand(s terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages",
		Long:    "Write a manual page for each command into a folder that is there.",
		Example: "  oncehttp man /usr/local/share/man/man1",
		Args:    settings.WantArgs(1, 1, "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
				return fmt.Errorf("%s is not a folder", args[0])
			}
			cmd.Root().DisableAutoGenTag = true
			if err := doc.GenManTree(cmd.Root(), &doc.GenManHeader{Title: "ONCEHTTP", Section: "1", Source: "oncehttp"}, args[0]); err != nil {
				return fmt.Errorf("%s: %w", args[0], words.Pathless(err))
			}
			terminal.Say(s.Out, "wrote the manual pages to %s", args[0])
			return nil
		},
	}
}

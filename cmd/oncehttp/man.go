package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages",
		Long:    "Write a manual page for each command into a folder that is there.",
		Example: "  oncehttp man /usr/local/share/man/man1",
		Args:    wantArgs(1, 1, "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
				return fmt.Errorf("%s is not a folder", args[0])
			}
			cmd.Root().DisableAutoGenTag = true
			if err := doc.GenManTree(cmd.Root(), &doc.GenManHeader{Title: "ONCEHTTP", Section: "1", Source: "oncehttp"}, args[0]); err != nil {
				return fmt.Errorf("%s: %w", args[0], pathless(err))
			}
			say(s.out, "wrote the manual pages to %s", args[0])
			return nil
		},
	}
}

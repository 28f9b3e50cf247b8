// Package journal is oncehttp journal: a journal is looked at, and operations in doubt are settled.
package journal

import (
	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// Command returns the command oncehttp journal.
func Command(s terminal.Streams) *cobra.Command {
	f := &session.JournalFlags{Err: s.Err}
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Look at the operations in a journal, and settle what is in doubt",
		Long: `Look at the operations in a journal, finish what is pending, and settle what is
in doubt. A journal is a file that one process holds at a time, or lies on a
database server that several machines share (oncehttp help journals). Only
migrate makes one. What only looks takes the journal of send without --journal.

A record is pending (it goes on), held (nothing is sent until somebody settles
it), or final: confirmed, mismatched, settled, abandoned.`,
		Example: `  oncehttp journal list --journal orders.csv.oncehttp.db --state pending,held
  oncehttp journal settle idemp:order:u1:o7 --happened --journal orders.csv.oncehttp.db`,
		Args: cobra.ArbitraryArgs,
		RunE: settings.NeedsCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := settings.Prepare(cmd)
			f.HasAccount = cmd.Flags().Changed("account")
			return err
		},
	}
	cmd.PersistentFlags().StringVar(&f.Journal, "journal", "", place.JournalUsage+" (or ONCEHTTP_JOURNAL)")
	place.BindSealKey(cmd.PersistentFlags(), &f.SealKey)
	cmd.PersistentFlags().StringVar(&f.Account, "account", "", "only operations of this account (default: all)")
	cmd.AddCommand(
		listCommand(f, s), stuckCommand(f, s), statsCommand(f, s), reportCommand(f, s), showCommand(f, s), exportCommand(f, s), resumeCommand(f, s),
		settleCommand(f, s), abandonCommand(f, s), assignCommand(f, s), rekeyCommand(f, s), redriveCommand(f, s), unsettleCommand(f, s), eraseCommand(f, s), pruneCommand(f, s), originsCommand(f, s), declinedCommand(f, s), verifyCommand(f, s), compactCommand(f, s), migrateCommand(f, s), restoredCommand(f, s),
	)
	return cmd
}

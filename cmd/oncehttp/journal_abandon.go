package main

import (
	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

func journalAbandonCommand(f *journalFlags, s streams) *cobra.Command {
	a := &actFlags{journalFlags: f}
	cmd := &cobra.Command{
		Use:   "abandon KEY...",
		Short: "Stop sending operations for ever",
		Long: `Stop sending operations that are pending or held. It proves nothing of their
effect, and the keys stay spent; where you know what happened, settle it. "-"
reads keys from stdin, one a line. Saying it again is no error.`,
		Example: `  oncehttp journal abandon idemp:order:u1:o7 --journal payments.db --reason 'order cancelled'`,
		Args:    wantArgs(1, 1<<20, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd.Context(), args, act{
				done: func(rec *persist.Record) bool { return rec.State == persist.StateAbandoned },
				end: func(c *oncehttp.Client, rec *persist.Record) error {
					return c.Abandon(cmd.Context(), oncehttp.Key(rec.Key), oncehttp.OfAccount(rec.Account), oncehttp.WithNote(a.reason))
				},
				said: "abandoned",
			}, s)
		},
	}
	a.bind(cmd.Flags())
	return cmd
}

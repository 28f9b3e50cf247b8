package main

import (
	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/spf13/cobra"
)

func journalAbandonCommand(f *journalFlags, s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "abandon KEY",
		Short: "Stop sending an operation for ever",
		Long: `Stop sending an operation that is pending or held. It proves nothing of its
effect, and the key stays spent; where you know what happened, settle it.`,
		Example: `  oncehttp journal abandon idemp:order:u1:o7 --journal payments.db`,
		Args:    wantArgs(1, 1, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.act(cmd.Context(), args[0], func(c *oncehttp.Client, rec *persist.Record) error {
				if err := c.Abandon(cmd.Context(), oncehttp.Key(rec.Key)); err != nil {
					return journalError(f.path, err)
				}
				say(s.out, "abandoned: %s", rec.Key)
				return nil
			})
		},
	}
}

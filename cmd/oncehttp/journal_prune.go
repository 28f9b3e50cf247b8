package main

import (
	"errors"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/spf13/cobra"
)

func journalPruneCommand(f *journalFlags, s streams) *cobra.Command {
	var keepAnswer, keepKey time.Duration
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Drop the answers of operations that were finished long ago",
		Long: `Drop requests and answers of final operations of all accounts: once the server
no longer knows their keys either, unless --keep-answer says otherwise. That a
key of yours was used is remembered for ever, so that it is never sent again,
unless --keep-key says otherwise. What is pending or held is never touched.`,
		Example: `  oncehttp journal prune --journal payments.db
  oncehttp journal prune --journal payments.db --keep-answer 720h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.hasAccount {
				return errors.New("prune goes through all accounts; leave --account out")
			}
			ses, err := f.open(oncehttp.Config{KeepAnswer: keepAnswer, KeepKey: keepKey})
			if err != nil {
				return err
			}
			n, err := ses.client.Sweep(cmd.Context())
			if err != nil {
				return joinExit(journalError(f.path, err), ses.close())
			}
			say(s.out, "pruned: %s", count(n, "record"))
			return joinExit(nil, ses.close())
		},
	}
	cmd.Flags().DurationVar(&keepAnswer, "keep-answer", 0, "keep answers so long after the end (0: while the server knows the key; negative: not at all)")
	cmd.Flags().DurationVar(&keepKey, "keep-key", 0, "remember used keys so long after the end (0: for ever; negative: no longer than the answer)")
	return cmd
}

package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/spf13/cobra"
)

func journalPruneCommand(f *journalFlags, s streams) *cobra.Command {
	var keepAnswer, keepKey time.Duration
	var yes bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Drop the answers of operations that were finished long ago",
		Long: `Drop requests and answers of final operations of all accounts: once the server
no longer knows their keys either, unless --keep-answer says otherwise. That a
key of yours was used is remembered for ever, so that it is never sent again,
unless --keep-key, or on Redis the keep_key of the URL, says otherwise: what it
forgets can be sent again, so that it asks first, or wants --yes. What is pending or held is never touched.`,
		Example: `  oncehttp journal prune --journal payments.db
  oncehttp journal prune --journal payments.db --keep-answer 720h`,
		Args: wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.hasAccount {
				return errors.New("prune goes through all accounts; leave --account out")
			}
			ses, err := f.open(oncehttp.Config{})
			if err != nil {
				return err
			}
			limits := persist.Limits{KeepAnswer: keepAnswer, KeepKey: cmp.Or(keepKey, ses.place.keepKey())}
			if err := askForgotten(cmd.Context(), ses, &limits, s, yes); err != nil {
				return joinExit(err, ses.close())
			}
			n, err := sweep(cmd.Context(), ses.journal, persist.Limits{KeepAnswer: keepAnswer, KeepKey: keepKey})
			if err != nil {
				return joinExit(journalError(f.path, err), ses.close())
			}
			say(s.out, "pruned: %s", count(n, "record"))
			return joinExit(nil, ses.close())
		},
	}
	cmd.Flags().DurationVar(&keepAnswer, "keep-answer", 0, "keep answers so long after the end (0: while the server knows the key; negative: not at all)")
	cmd.Flags().DurationVar(&keepKey, "keep-key", 0, "remember used keys so long after the end (0: for ever, or as the URL says; negative: no longer than the answer)")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// sweep sweeps the journal until nothing is left to drop, and returns how many records it changed. A person may shorten what
// the configuration of a client may not.
func sweep(ctx context.Context, j persist.Journal, limits persist.Limits) (total int, err error) {
	for n := 1; n > 0 && err == nil; total += n {
		n, err = j.Sweep(ctx, limits)
	}
	return total, err
}

// askForgotten asks before keys of the caller's are forgotten.
func askForgotten(ctx context.Context, ses *session, limits *persist.Limits, s streams, yes bool) error {
	forgotten, now := 0, time.Now()
	if limits.KeepKey == 0 || yes {
		return nil
	}
	err := eachRecord(ctx, ses, persist.Query{AllAccounts: true}, func(rec *persist.Record) error {
		if drop, _ := limits.Sweep(rec, now); drop && !rec.Generated {
			forgotten++
		}
		return nil
	})
	if err != nil || forgotten == 0 {
		return err
	}
	return s.confirm(yes, "it would forget the use of "+count(forgotten, "key")+", so that the same keys could be sent again")
}

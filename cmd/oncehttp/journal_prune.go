package main

import (
	"context"
	"errors"
	"strings"
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
		Long: `Drop requests and answers of final operations of all accounts, and forget used
keys, as each record says: by default answers go once the server no longer
knows their keys, and that a key of yours was used is remembered for ever, on
Redis for the keep_key of the URL. With --keep-answer and --keep-key you say for how
long, and the records do not count. An answer that is gone is not replayed, and a
key that is forgotten can be sent again: where that is earlier than the records
say, it asks first, or wants --yes. What is pending or held is never touched.`,
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
			limits := persist.Limits{Prune: true, KeepAnswer: keepAnswer, KeepKey: keepKey}
			if err := askEarly(cmd.Context(), ses, &limits, s, yes); err != nil {
				return joinExit(err, ses.close())
			}
			n, err := sweep(cmd.Context(), ses.journal, limits)
			if err != nil {
				return joinExit(journalError(f.path, err), ses.close())
			}
			say(s.out, "pruned: %s", count(n, "record"))
			return joinExit(nil, ses.close())
		},
	}
	cmd.Flags().DurationVar(&keepAnswer, "keep-answer", 0, "keep answers so long after the end (0: as their records say; negative: not at all)")
	cmd.Flags().DurationVar(&keepKey, "keep-key", 0, "remember used keys so long after the end (0: as their records say; negative: no longer than the answer)")
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

// askEarly asks before answers are dropped, or keys of the caller's are forgotten, earlier than their records say.
func askEarly(ctx context.Context, ses *session, limits *persist.Limits, s streams, yes bool) error {
	if limits.KeepAnswer == 0 && limits.KeepKey == 0 || yes {
		return nil
	}
	forgotten, dropped, now, allowed := 0, 0, time.Now(), persist.Limits{}
	err := eachRecord(ctx, ses, persist.Query{AllAccounts: true}, func(rec *persist.Record) error {
		drop, strip := limits.Sweep(rec, now)
		mayDrop, mayStrip := allowed.Sweep(rec, now)
		switch {
		case drop && !mayDrop && !rec.Generated:
			forgotten++
		case (drop || strip) && !mayDrop && !mayStrip:
			dropped++
		}
		return nil
	})
	var early []string
	if forgotten > 0 {
		early = append(early, "forget the use of "+count(forgotten, "key")+", so that the same keys could be sent again")
	}
	if dropped > 0 {
		early = append(early, "drop "+count(dropped, "answer")+" that could be replayed still")
	}
	if err != nil || early == nil {
		return err
	}
	return s.confirm(yes, "it would "+strings.Join(early, ", and ")+", which is earlier than the records say")
}

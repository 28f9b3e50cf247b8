package journal

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

func pruneCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
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
		Args: settings.WantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.HasAccount {
				return errors.New("prune goes through all accounts; leave --account out")
			}
			ses, err := f.Open(oncehttp.Config{})
			if err != nil {
				return err
			}
			limits := persist.Limits{Prune: true, KeepAnswer: keepAnswer, KeepKey: keepKey}
			if err := askEarly(cmd.Context(), ses, &limits, s, yes); err != nil {
				return terminal.JoinExit(err, ses.Close())
			}
			n, err := sweep(cmd.Context(), ses.Journal, limits)
			if err != nil {
				return terminal.JoinExit(place.JournalError(f.Path, err), ses.Close())
			}
			terminal.Say(s.Out, "pruned: %s", words.Count(n, "record"))
			return terminal.JoinExit(nil, ses.Close())
		},
	}
	cmd.Flags().DurationVar(&keepAnswer, "keep-answer", 0, "keep answers so long after the end (0: as their records say; negative: not at all)")
	cmd.Flags().DurationVar(&keepKey, "keep-key", 0, "remember used keys so long after the end (0: as their records say; negative: no longer than the answer)")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// sweep sweeps the journal until nothing is left to drop, and returns the number of changed records. A person may set
// shorter limits than the configuration of a client may.
func sweep(ctx context.Context, j persist.Journal, limits persist.Limits) (total int, err error) {
	for n := 1; n > 0 && err == nil; total += n {
		n, err = j.Sweep(ctx, limits)
	}
	return total, err
}

// askEarly asks before answers are dropped, or keys of the caller's are forgotten, earlier than their records say.
func askEarly(ctx context.Context, ses *session.Session, limits *persist.Limits, s terminal.Streams, yes bool) error {
	if limits.KeepAnswer == 0 && limits.KeepKey == 0 || yes {
		return nil
	}
	forgotten, dropped, now, allowed := 0, 0, time.Now(), persist.Limits{}
	err := session.EachRecord(ctx, ses, persist.Query{AllAccounts: true}, func(rec *persist.Record) error {
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
		early = append(early, "forget the use of "+words.Count(forgotten, "key")+", so that the same keys could be sent again")
	}
	if dropped > 0 {
		early = append(early, "drop "+words.Count(dropped, "answer")+" that could be replayed still")
	}
	if err != nil || early == nil {
		return err
	}
	return s.Confirm(yes, "it would "+strings.Join(early, ", and ")+", which is earlier than the records say")
}

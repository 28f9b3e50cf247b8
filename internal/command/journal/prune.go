package journal

import (
	"context"
	"crypto/sha256"
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

// pruneFlags are the flags of journal prune, as given.
type pruneFlags struct {
	*session.JournalFlags
	keepAnswer, keepKey, keepText time.Duration
	yes, dry                      bool
}

// pruneCommand returns the command oncehttp journal prune.
func pruneCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	p := &pruneFlags{JournalFlags: f}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Drop the answers of operations that were finished long ago",
		Long: `Drop requests and answers of final operations of all accounts, and forget used
keys, as each record says: by default answers go once the server no longer
knows their keys, and that a key of yours was used is remembered for ever, on
Redis for the keep_key of the URL. With --keep-answer and --keep-key you say for how
long, and the records do not count. An answer that is gone is not replayed, and a
key that is forgotten can be sent again: where that is earlier than the records
say, it asks first, or wants --yes. What is pending or held is never touched.
--dry-run counts, and changes nothing.

--keep-text takes the text out of used keys. The key stays used, and a repeat is told the
state and the effect. What is lost: no listing shows which key it was, so list, export,
report and audit have but the state, the effect and the time of the end; a repeat cannot
be told from another request under the key; it cannot be redriven. A record keeps its text
while the server knows the key, with --keep-field, with an unknown effect, and beside
another generation.`,
		Example: `  oncehttp journal prune --journal payments.db
  oncehttp journal prune --journal payments.db --keep-answer 720h
  oncehttp journal prune --journal @journal.url --keep-text 8760h --dry-run`,
		Args: settings.WantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context(), s) },
	}
	fs := cmd.Flags()
	fs.DurationVar(&p.keepAnswer, "keep-answer", 0, "keep answers so long after the end (0: as their records say; negative: not at all)")
	fs.DurationVar(&p.keepKey, "keep-key", 0, "remember used keys so long after the end (0: as their records say; negative: no longer than the answer)")
	fs.DurationVar(&p.keepText, "keep-text", 0, "keep the text of used keys so long after the end (0: as their records say; negative: no longer than the answer)")
	fs.BoolVar(&p.yes, "yes", false, "do not ask")
	fs.BoolVar(&p.dry, "dry-run", false, "count what would go, and change nothing")
	return cmd
}

// run drops the answers and forgets the keys of ended operations by the limits of the flags. With --dry-run it only counts them.
func (p *pruneFlags) run(ctx context.Context, s terminal.Streams) error {
	if p.HasAccount {
		return errors.New("prune goes through all accounts; leave --account out")
	}
	limits := persist.Limits{Prune: true, KeepAnswer: p.keepAnswer, KeepKey: p.keepKey, KeepText: p.keepText}
	if p.dry {
		return p.WithReader(func(ses *session.Session) error {
			would, _, err := countPrune(ctx, ses, &limits)
			if err == nil {
				terminal.Say(s.Out, "would drop %s of ended operations, forget %s, and take the text out of %s",
					words.Count(would.answers, "answer"), words.Count(would.keys, "used key"), words.Count(would.texts, "used key"))
			}
			return err
		})
	}
	ses, err := p.Open(oncehttp.Config{})
	if err != nil {
		return err
	}
	if err := p.askEarly(ctx, ses, &limits, s); err != nil {
		return terminal.JoinExit(err, ses.Close())
	}
	n, err := sweep(ctx, ses.Journal, limits)
	if err != nil {
		return terminal.JoinExit(place.JournalError(p.Path, err), ses.Close())
	}
	terminal.Say(s.Out, "pruned: %s", words.Count(n, "record"))
	return terminal.JoinExit(nil, ses.Close())
}

// sweep drops answers and keys beyond the limits until nothing is left to drop, and returns the number of changed records. The journal does it in portions, one for
// each call of Sweep.
func sweep(ctx context.Context, j persist.Journal, limits persist.Limits) (total int, err error) {
	for n := 1; n > 0 && err == nil; total += n { // until a call finds nothing more
		n, err = j.Sweep(ctx, limits)
	}
	return total, err
}

// pruned are the counts of a prune. A record counts once.
type pruned struct {
	answers int // with their requests
	keys    int
	texts   int // of keys that stay used
}

// fates of a record under a prune.
const (
	stays = iota
	losesAnswer
	losesText
	isForgotten
)

// prunedTo returns what a prune with these limits makes of a record: isForgotten, losesText (of the key), losesAnswer, or stays. It changes nothing. limits.Sweep tells
// whether the record is dropped, or else stripped; what a strip takes away is seen on a copy.
func prunedTo(limits *persist.Limits, rec *persist.Record, now time.Time) int {
	switch drop, strip := limits.Sweep(rec, now); {
	case drop:
		return isForgotten
	case !strip:
		return stays
	}
	left := rec.Clone()
	limits.Strip(&left, now, make([]byte, sha256.Size)) // by any secret: it is thrown away
	if left.Erased && !rec.Erased {
		return losesText
	}
	return losesAnswer
}

// countPrune counts what a prune would drop: all, and early, the part of it that goes before the time that the records themselves name. A record that is forgotten
// with a generated key counts with the answers, since nobody uses that key again. It reads one record at a time.
func countPrune(ctx context.Context, ses *session.Session, limits *persist.Limits) (all, early pruned, err error) {
	now, allowed := time.Now(), persist.Limits{}
	err = session.EachRecord(ctx, ses, persist.Query{AllAccounts: true}, func(rec *persist.Record) error {
		fate, may := prunedTo(limits, rec, now), prunedTo(&allowed, rec, now) // may: by the times of the record alone
		switch {
		case fate == isForgotten && !rec.Generated:
			all.keys++
			if may != isForgotten {
				early.keys++
			}
		case fate == losesText:
			all.texts++
			if may != losesText && may != isForgotten {
				early.texts++
			}
		case fate != stays: // losesAnswer, or forgotten with a generated key
			all.answers++
			if may == stays {
				early.answers++
			}
		}
		return nil
	})
	return all, early, err
}

// askEarly asks the user if the flags drop something before the time that the records name: answers, the memory of used keys, or their text. It returns nil if nothing
// is dropped early, or with --yes.
func (p *pruneFlags) askEarly(ctx context.Context, ses *session.Session, limits *persist.Limits, s terminal.Streams) error {
	if limits.KeepAnswer == 0 && limits.KeepKey == 0 && limits.KeepText == 0 || p.yes {
		return nil
	}
	_, early, err := countPrune(ctx, ses, limits)
	var texts []string
	if early.keys > 0 {
		texts = append(texts, "forget the use of "+words.Count(early.keys, "key")+", so that the same keys could be sent again")
	}
	if early.answers > 0 {
		texts = append(texts, "drop "+words.Count(early.answers, "answer")+" that could be replayed still")
	}
	if early.texts > 0 {
		texts = append(texts, "take the text out of "+words.Count(early.texts, "used key")+", which no listing and no audit shows then")
	}
	if err != nil || texts == nil {
		return err
	}
	return s.Confirm(p.yes, "it would "+strings.Join(texts, ", and ")+", which is earlier than the records say")
}

package batch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// A journal keeps which --profile and --ordered-by the latest batches had (persist.FactBatches), a line for each pair of --url and --key, the latest first. A batch that
// leaves a flag out is told of it: the flag was most likely forgotten.

// flagNote is what a journal keeps of the latest batch with a --url and a --key.
type flagNote struct {
	mark      string // a hash of --url and --key
	rules     string // how the API treats keys: see keyRules
	orderedBy string // the column of --ordered-by; "" without
}

// line returns the note as a line without its end.
func (n *flagNote) line() string { return n.mark + " " + n.rules + " " + n.orderedBy }

// noteOf returns the note of this batch. used is its profile.
func (f *batchFlags) noteOf(used *profile.Profile) flagNote {
	digest := sha256.Sum256([]byte(f.url + "\n" + f.key))
	return flagNote{hex.EncodeToString(digest[:4]), keyRules(used.Name), f.orderedBy}
}

// asNoted compares this batch with the note of the latest one with its --url and --key. known is false without a note. The error names a flag that was left out.
func (f *batchFlags) asNoted(ctx context.Context, ses *session.Session, used *profile.Profile) (known bool, err error) {
	standing, err := ses.Journal.Fact(ctx, persist.FactBatches, nil, nil)
	if errors.Is(err, persist.ErrDenied) { // a role without the right to these notes
		return false, nil
	}
	if err != nil {
		return false, place.JournalError(ses.Place.Name, err)
	}
	mine := f.noteOf(used)
	for line := range strings.Lines(string(standing)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(parts) < 3 || parts[0] != mine.mark {
			continue
		}
		if forgets(parts[1], mine.rules) && !f.profileSaid {
			return true, f.otherRules(ses, "an earlier run for this --url and --key", parts[1])
		}
		if parts[2] != "" && f.orderedBy == "" && !f.orderSaid {
			return true, fmt.Errorf("journal %s: an earlier run for this --url and --key had --ordered-by %s: say that again, or --ordered-by '' on purpose", ses.Place.Name, parts[2])
		}
		return true, nil
	}
	return false, nil
}

// keepNote writes the note of this batch to the journal, once its first operation has begun: a run whose rows all stand for other requests notes nothing. Notes that do
// not fit any more are left out, the oldest first. used is the profile of the run. A failure is a warning.
func (b *batch) keepNote(ctx context.Context, used *profile.Profile) {
	if err := b.flags.writeNote(ctx, b.session, used); err != nil {
		b.note("the flags of this run cannot be noted in the journal, so that a later run without them is not told: %v", err)
	}
}

// writeNote does the work of keepNote. A role without the right to the notes writes none, without an error.
func (f *batchFlags) writeNote(ctx context.Context, ses *session.Session, used *profile.Profile) error {
	mine := f.noteOf(used)
	next := mine.line()
	if len(next) > persist.FactMax || strings.Contains(next, "\n") {
		return nil
	}
	err := session.ChangeFact(ctx, ses, persist.FactBatches, func(standing string) string {
		text := next
		for line := range strings.SplitSeq(standing, "\n") {
			if line != "" && !strings.HasPrefix(line, mine.mark+" ") && len(text)+1+len(line) <= persist.FactMax {
				text += "\n" + line
			}
		}
		return text
	})
	if errors.Is(err, persist.ErrDenied) {
		return nil
	}
	return err
}

package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/persist"
)

// generationsRead bounds the earlier generations read for one operation.
const generationsRead = 100

// DoneBefore returns the key of an earlier generation of an operation (a try under an earlier key) that counts as done although the operation itself does, too; "" if
// there is none. Both may have taken effect. It reads nothing for a first generation, and of a later one at most generationsRead earlier ones.
func DoneBefore(ctx context.Context, ses *Session, d results.Declines, rec *persist.Record) (string, error) {
	first, n := intent.Generations(rec.Key)
	if res := d.ResultOfRecord(rec); n < 2 || res != results.Done && res != results.Accepted {
		return "", nil
	}
	for m := n - 1; m >= max(1, n-generationsRead); m-- {
		old, err := ses.Journal.Get(ctx, persist.ID{Account: rec.Account, Key: intent.Generation(first, m)})
		switch {
		case errors.Is(err, persist.ErrNotFound), persist.OfOneRecord(err):
			continue
		case err != nil:
			return "", place.JournalError(ses.Place.Name, err)
		}
		switch d.ResultOfRecord(&old) {
		case results.Done, results.Accepted, results.Duplicate:
			return old.Key, nil
		}
	}
	return "", nil
}

// DoneTwice tells of the operations whose earlier and later generation both count as done. Its memory is bounded. The zero value is ready.
type DoneTwice struct {
	n     int
	named []string
}

// doneTwiceNamed is the number of operations that lines name.
const doneTwiceNamed = 10

// See looks at one operation of a listing, and keeps a warning if an earlier generation of it (a try under an earlier key) counts as done, too: both may have taken
// effect.
func (t *DoneTwice) See(ctx context.Context, ses *Session, d results.Declines, rec *persist.Record) error {
	old, err := DoneBefore(ctx, ses, d, rec)
	if err != nil || old == "" {
		return err
	}
	if t.n++; t.n <= doneTwiceNamed {
		t.named = append(t.named, fmt.Sprintf("done in two generations: %s and %s", words.Clip(old), words.Clip(rec.Key)))
	}
	return nil
}

// Lines returns the warnings about operations done in two generations (tries under two keys): a line for each of the first ones, and one with the number of the
// others.
func (t *DoneTwice) Lines() []string {
	lines := t.named
	if more := t.n - len(t.named); more > 0 {
		lines = append(lines, fmt.Sprintf("done in two generations: %s more; oncehttp audit lists all", words.Count(more, "operation")))
	}
	return lines
}

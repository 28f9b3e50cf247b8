package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// doubts keeps what the journal does not show: records perhaps appearing later, and answers known to callers and missing in their records. It is
// safe for concurrent use.
type doubts struct {
	journal  persist.Journal
	notes    *known.Notes
	earliest func() time.Time // by the journal's clock
}

// errTooManyNotes refuses an operation for lack of room for a note about it.
var errTooManyNotes = errors.New("the journal has failed so often that there are too many operations of which it is not known whether it has them; " +
	"nothing is begun before it shows that, or their windows are over")

// mayBeSentUntil returns the time until which a record begun now may be sent, also by another process. A note about a lost record is kept at least
// until then.
func mayBeSentUntil(rec *persist.Record) time.Time {
	op := operation.OpOf(rec, 0)
	return op.LastSend(rec.Created)
}

// makesRoom is called if there are too many notes about writes with an unknown result to begin another operation. It reports whether the operation
// may be begun all the same: the journal has it already, or a look at a few notes has ended some. With a failing journal it returns false.
func (d *doubts) makesRoom(ctx context.Context, id persist.ID) bool {
	// Then the begin finds the record, and nothing is noted.
	if _, err := d.journal.Get(ctx, id); err == nil {
		return true
	}
	return d.lookAgain(ctx, notesLookedAt) == nil && !d.notes.Full(id)
}

// notesLookedAt is the number of notes looked at for one operation if there are too many.
const notesLookedAt = 8

// lookAgain looks in the journal at up to most operations of each kind of note: begins with an unknown result, and answers that may not be recorded.
// It ends a note once the journal shows the record, or its end. After an error, some notes may have ended. Errors: the journal's.
func (d *doubts) lookAgain(ctx context.Context, most int) error {
	return d.notes.Look(d.earliest(), most, func(id persist.ID) (persist.Record, error) { return d.journal.Get(ctx, id) })
}

// answered notes the result of recording an answer that callers already know. err is nil if the journal has recorded it.
func (d *doubts) answered(rec *persist.Record, err error) {
	if err == nil {
		d.notes.Recorded(rec.ID)
		return
	}
	d.notes.Unrecorded(rec.ID, err, mayBeSentUntil(rec))
}

// unrecorded returns an error if an answer known to callers is not recorded, and has not been since.
func (d *doubts) unrecorded(ctx context.Context) error {
	if err := d.lookAgain(ctx, math.MaxInt); err != nil {
		return err
	}
	n, first, cause := d.notes.Answers()
	if n == 0 {
		return nil
	}
	return fmt.Errorf("oncehttp: flush: answers that callers have got are not recorded, and their operations are pending: %d, the first %q: %w",
		n, first.Key, cause)
}

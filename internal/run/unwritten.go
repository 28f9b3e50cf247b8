package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the notes made when the journal fails: of records perhaps appearing later, and of answers known to callers and missing
// in their records. It also holds the recording of an answer too large for the journal.

// errTooManyNotes refuses an operation for lack of room for a note about it.
var errTooManyNotes = errors.New("the journal has failed so often that there are too many operations of which it is not known whether it has them; " +
	"nothing is begun before it shows that, or their windows are over")

// beginRecord begins a record in the journal, and notes it if it may appear later although this fails.
func (e *engine) beginRecord(ctx context.Context, rec persist.Record) (existing persist.Record, created bool, err error) {
	if err := e.shared.form.begin(ctx, e.journal); err != nil {
		return persist.Record{}, false, err
	}
	if err := e.holdBegun(ctx, rec.Origin); err != nil {
		return persist.Record{}, false, err
	}
	if e.shared.notes.Full(rec.ID) && !e.makesRoom(ctx, rec.ID) {
		return persist.Record{}, false, errTooManyNotes
	}
	e.shared.begins.Enter(rec.ID)
	defer func() { e.shared.begins.Leave(rec.ID, err == nil) }()
	existing, created, err = e.journal.Begin(ctx, rec)
	switch {
	case err == nil:
		e.shared.notes.Shown(rec.ID)
		if !e.runsUndoubted(&rec) { // begun by a Rekey
			e.doubted(&rec)
		}
	case errors.Is(err, persist.ErrUncertain):
		e.shared.notes.Lost(&rec, mayBeSentUntil(&rec))
		e.doubted(&rec) // the note ends once the record shows, and the looks find it then
	}
	return existing, created, err
}

// mayBeSentUntil returns the time until which a record begun now may be sent, also by another process.
func mayBeSentUntil(rec *persist.Record) time.Time {
	op := operation.OpOf(rec, 0)
	return op.LastSend(rec.Created)
}

// makesRoom is called if there are too many notes. It reports whether the operation may be begun all the same: the journal has it already,
// or a look at a few notes makes room now.
func (e *engine) makesRoom(ctx context.Context, id persist.ID) bool {
	if _, err := e.journal.Get(ctx, id); err == nil {
		return true
	}
	return e.lookAgain(ctx, notesLookedAt) == nil && !e.shared.notes.Full(id)
}

// notesLookedAt is the number of notes looked at for one operation if there are too many.
const notesLookedAt = 8

// lookAgain looks at up to most notes of each kind. It ends a note if the journal shows a record noted as missing, or shows the operation
// of a noted answer as final or gone. Errors: the journal's.
func (e *engine) lookAgain(ctx context.Context, most int) error {
	return e.shared.notes.Look(e.now(), most, func(id persist.ID) (persist.Record, error) { return e.journal.Get(ctx, id) })
}

// answered notes the recording of an answer known to callers, or its failure err.
func (e *engine) answered(rec *persist.Record, err error) {
	if err == nil {
		e.shared.notes.Recorded(rec.ID)
		return
	}
	e.shared.notes.Unrecorded(rec.ID, err, mayBeSentUntil(rec))
}

// unrecorded returns an error if an answer known to callers is not recorded, and has not been since.
func (e *engine) unrecorded(ctx context.Context) error {
	if err := e.lookAgain(ctx, math.MaxInt); err != nil {
		return err
	}
	n, first, cause := e.shared.notes.Answers()
	if n == 0 {
		return nil
	}
	return fmt.Errorf("oncehttp: flush: answers that callers have got are not recorded, and their operations are pending: %d, the first %q: %w",
		n, first.Key, cause)
}

// writeSmaller calls write, to write the record. While the record is too large for the journal, it calls write again, without the body of
// the record's answer, and then without the header, too. As after an answer over MaxResponseBytes, the server is asked again then.
func (c *Config) writeSmaller(ctx context.Context, rec *persist.Record, write func() error) error {
	err := write()
	for errors.Is(err, persist.ErrTooLarge) && rec.Answer != nil && !(rec.Answer.BodyDropped && rec.Answer.Header == nil) {
		c.log(ctx, slog.LevelWarn, "an answer is not kept whole", rec.Key, err)
		smaller := *rec.Answer
		if smaller.BodyDropped {
			smaller.Header = nil
		}
		smaller.Body, smaller.BodyDropped = nil, true
		rec.Answer = &smaller
		err = write()
	}
	return err
}

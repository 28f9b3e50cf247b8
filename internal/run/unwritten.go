package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds what is noted where the journal fails: records that may appear later, and answers that callers have and no record
// has; and how an answer is recorded that is too large for the journal.

// errTooManyNotes refuses an operation of which nothing could be noted.
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

// mayBeSentUntil returns until when a record that is begun now may be sent, also by another process.
func mayBeSentUntil(rec *persist.Record) time.Time {
	first := rec.Created
	switch {
	case rec.MaybeSent:
		first = rec.FirstSent
	case !rec.SendBefore.IsZero():
		first = rec.SendBefore
	}
	return first.Add(rec.Window)
}

// makesRoom is called where there are too many notes. It reports whether the operation may be begun all the same: the journal has it
// already, or shows now what became of a few others.
func (e *engine) makesRoom(ctx context.Context, id persist.ID) bool {
	if _, err := e.journal.Get(ctx, id); err == nil {
		return true
	}
	return e.lookAgain(ctx, notesLookedAt) == nil && !e.shared.notes.Full(id)
}

// notesLookedAt is how many notes are looked at for one operation where there are too many.
const notesLookedAt = 8

// lookAgain looks at most notes, and ends those of operations of which the journal shows what became of them. Errors: the journal's.
func (e *engine) lookAgain(ctx context.Context, most int) error {
	return e.shared.notes.Look(e.now(), most, func(id persist.ID) (persist.Record, error) { return e.journal.Get(ctx, id) })
}

// answered notes whether an answer that callers have could be recorded; err says why not.
func (e *engine) answered(rec *persist.Record, err error) {
	if err == nil {
		e.shared.notes.Recorded(rec.ID)
		return
	}
	e.shared.notes.Unrecorded(rec.ID, err, mayBeSentUntil(rec))
}

// unrecorded returns an error if an answer that callers have is not recorded, and has not been since.
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

// writeSmaller calls write, which writes the record. While that is too large for the journal, it calls write again, without the body
// of the record's answer, and then without the header, too: as after an answer over MaxResponseBytes, the server is asked again then.
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

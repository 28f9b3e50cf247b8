package run

import (
	"context"
	"errors"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/persist"
)

// This file binds a person's act to the record seen by the person.

// looking returns a function that prepares a record for a person's look at it. LeaseOwner becomes this client's name if a call of this process runs the
// operation, and empty if a lease has ended; without the journal's time (known is false) a lease stays as it is. The record must have been read before: a run
// that begins later counts up Drives.
func looking(ctx context.Context, e *engine) func(*persist.Record) {
	known := e.clock.Sync(ctx, e.host) == nil
	return func(rec *persist.Record) {
		running, _ := e.shared.calls.Running(rec.ID)
		switch {
		case running && !rec.State.Final():
			rec.LeaseOwner = e.owner
		case rec.State.Final(), known && !rec.Leased("", e.clock.Earliest()):
			rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
		}
	}
}

// moved returns an error if the person who acts has named the record as seen before (the option AsSeen), and it has changed since in a way
// that counts for act; else nil.
func (c *Chosen) moved(now *persist.Record, act acts.Act) error {
	if c.Seen == nil {
		return nil
	}
	if why := acts.Moved(c.Seen, now, act); why != "" {
		return errors.New(why)
	}
	return nil
}

// outrun returns the error for a failed change of a record that was read a moment ago. It also matches ErrStale if another change came first.
func outrun(name string, rec *persist.Record, err error) *Error {
	failed := journalError(name, rec, err)
	if errors.Is(err, persist.ErrStale) {
		failed.Said.why = append(failed.Said.why, ErrStale)
	}
	return failed
}

package oncehttp

import (
	"context"
	"errors"
	"log/slog"

	"github.com/oncehttp/oncehttp/persist"
)

// An operation under a generated key is unresolved while it is unfinished, and
// unreported once Resume or Run ended it, until a caller with its key was told how.
// The same request without a key might then take effect for the second time.

var (
	errUnresolved = errors.New("the same request was sent before under this generated key; send it with this key, settle it or abandon it")
	errUnreported = errors.New("the same request was sent before under this generated key, and Resume or Run ended it; ask for its answer with this key")
)

// refuseStray stops a request without a key if the same request, under a
// generated key, is unresolved or unreported: a loop around Do must not pay twice.
func (f *flight) refuseStray(ctx context.Context) error {
	rec := &f.op.rec
	if f.seeStray == nil { // kept with the flight, as a loop's body would not be
		f.seeStray = f.seeStanding
	}
	f.refusal = nil
	for _, sum := range f.op.read.Fingerprints() {
		if f.refusal == nil {
			f.c.journal.List(ctx, persist.Query{Account: rec.Account, Unresolved: sum})(f.seeStray)
		}
	}
	return f.refusal
}

// seeStanding looks at one operation of the same request, and goes on unless it
// is a stray.
func (f *flight) seeStanding(standing persist.Record, err error) (goOn bool) {
	rec := &f.op.rec
	if err != nil {
		f.refusal = &Error{Op: f.name, Key: Key(rec.Key), Cause: err, is: []error{ErrOutcomeUnknown, ErrNotSent}}
		return false
	}
	if standing.Account != rec.Account || standing.Key == rec.Key { // NewKey may give one key again
		return true
	}
	cause := errUnresolved
	if standing.State.Final() {
		cause = errUnreported
	} else if flying, stray := f.c.flights.flying(standing.ID); flying && !stray {
		return true
	}
	f.refusal = &Error{
		Op: f.name, Key: Key(standing.Key), State: standing.State, Attempts: standing.Attempts, Sends: standing.Sends,
		Cause: cause, is: []error{ErrOutcomeUnknown},
	}
	return false
}

// reported notes that a caller with its key was told how the operation ended. A
// mark that cannot be cleared only refuses a caller without a key once more.
func (c *Client) reported(ctx context.Context, id persist.ID) {
	if err := c.journal.MarkReported(ctx, id); err != nil {
		c.log(ctx, slog.LevelError, "that an operation was reported could not be recorded", id.Key, err)
	}
}

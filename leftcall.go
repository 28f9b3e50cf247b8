package oncehttp

import (
	"context"
	"errors"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds a call whose limiter takes long: its operation is given back, and the call waits without it; and the error of a caller that
// leaves its call.

// leftRecord is the record of an operation as a call has left it, whose limiter takes long.
type leftRecord struct {
	rec     persist.Record
	created bool  // by that call: nobody else has had it since, as long as the record is the same
	turn    *turn // of its limiter
}

// same reports whether nobody has had the record since.
func (l *leftRecord) same(rec *persist.Record) bool {
	return l.rec.Seq == rec.Seq && l.rec.Revision == rec.Revision
}

// leaveLimited waits for the limiter before the first send of a call, for a third of a lease with the operation in its hands. Then it gives that
// back as it was before the call, or as never sent, and returns a result that says so; nil: the run goes on.
func (r *run) leaveLimited() *result {
	if r.given.Pass || !r.leaves || r.cfg.Limiter == nil || r.given.AskedAgain {
		return nil
	}
	r.refused = r.Admit(r.call.Context(), false)
	if r.leaves = false; r.refused != errLimited {
		return nil
	}
	r.refused = nil
	before, d := persist.Record{}, ending{r}
	if r.before != nil {
		before = *r.before
	}
	err := d.change(r.call.Values(), &r.rec, func() error {
		rec := r.rec
		rec.MaybeSent, rec.FirstSent = before.MaybeSent, before.FirstSent
		rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
		if !rec.MaybeSent && rec.SendBefore.IsZero() { // as late as any other operation's last send
			rec.SendBefore = rec.Created.Add(rec.Window - r.cfg.drives.Margin(rec.Window))
		}
		return d.update(rec)
	})
	if err != nil { // it is not given back: the run waits with it
		d.logUnrecorded(r.call.Values(), err)
		return nil
	}
	return &result{left: &leftRecord{r.rec, r.given.Created, r.turn}, notShared: true}
}

// awaitLimiter waits for the turn of a call without its operation, until its context ends or the client is closed. It returns the error of a
// call that goes on no more.
func (c *Client) awaitLimiter(ctx context.Context, name string, op *preparedRequest, left *leftRecord) error {
	op.left = left
	t := left.turn
	for _, end := range []context.Context{ctx, c.draining} {
		defer context.AfterFunc(end, func() { t.stop(context.Cause(end)) })()
	}
	<-t.done
	cause := context.Cause(t.within)
	if cause == nil {
		return nil
	}
	defer t.stop(nil)
	return c.engine.withdrawLeft(ctx, name, op, cause)
}

// goesOn gives a run the turn of a call that has left its operation, and that it has begun it, if nobody has had it since.
func (l *leftRecord) goesOn(r *run) {
	if l == nil || l.turn.used {
		return
	}
	r.turn, r.given.Created = l.turn, r.given.Created || l.created && l.same(&r.rec)
}

// withdrawLeft forgets the operation that a call has left, and that nobody has had since, and returns the call's error. Any other operation
// stays as it is.
func (e *engine) withdrawLeft(ctx context.Context, name string, op *preparedRequest, cause error) error {
	ctx = context.WithoutCancel(ctx)
	left := op.left
	if left.created && !left.rec.Enqueued {
		if keep, err := e.keepsPlace(ctx, &left.rec); !keep && err == nil {
			watch := e.shared.begins.Watch(left.rec.ID)
			forgotten := e.journal.Forget(ctx, left.rec)
			_, err := e.probe(ctx, left.rec.ID)
			if began := watch.End(); forgotten == nil && !began && errors.Is(err, persist.ErrNotFound) && !e.shared.notes.MayAppear(left.rec.ID, e.now()) {
				failed := newError(name, nothing(Key(left.rec.Key)), nil, ErrNotSent)
				failed.Last = cause
				return failed
			}
		}
	}
	return e.errorAfterRead(ctx, name, op.named, false, cause, ErrNotSent)
}

// left returns the error of a caller that left a call because of cause. The call may go on for others.
func left(name string, key Key, caller *inflight.Caller[*result], cause error) *Error {
	e := newError(name, unclear(key), cause, ErrInFlight)
	e.Sends, e.Joined = caller.Call().Sends(), caller.Joined()
	return e
}

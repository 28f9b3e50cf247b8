package run

import (
	"context"
	"errors"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds a call's wait for a slow limiter before an attempt: its operation is given back, and the call waits without it. It also holds
// the error of a caller at leaving its call.

// leftRecord is the record of an operation as a call has left it, because its limiter takes long.
type leftRecord struct {
	rec     persist.Record
	created bool  // by that call: nobody else has had it since, as long as the record is the same
	turn    *turn // of its limiter

	failed  *Error          // of the call if it goes on no more, and no other has the operation; nil: it has made no attempt
	why     error           // given in that error if the operation was never sent, or the last send was refused
	spent   operation.Spent // of the call's bounds
	started time.Time       // the call's first drive
	took    *stopwatch      // of the call
}

// same reports whether nobody has had the record since.
func (l *leftRecord) same(rec *persist.Record) bool {
	return l.rec.Seq == rec.Seq && l.rec.Revision == rec.Revision
}

// leaveLimited waits for the limiter before the first send of a call, for a third of a lease with the operation in its hands. Then it gives the
// operation back as it was before the call, or as never sent, and returns the result of a left call. If it returns nil, the run goes on.
func (r *run) leaveLimited() *result {
	if r.given.Pass || !r.returns || r.cfg.Limiter == nil || r.given.AskedAgain {
		return nil
	}
	r.leaves = true
	r.refused = r.Admit(r.call.Context(), false)
	if r.leaves = false; r.refused != errLimited {
		return nil
	}
	r.refused = nil
	d := ending{r}
	err := d.writer.rewrite(r.call.Values(), &r.rec, true, func() error {
		rec := r.givenBack(persist.Record{})
		d.holder.unstamp(&rec)
		return d.update(rec)
	})
	back := operation.GaveBackAfter(err == nil, errors.Is(err, persist.ErrUncertain))
	if back == operation.NotBack { // the lease, too, is the call's as before
		d.logUnrecorded(r.call.Values(), err)
		return nil
	}
	d.leases.End(r.rec.ID)
	if back == operation.BackUnclear {
		r.turn.stop(err)
		return &result{err: journalError(r.name, &r.rec, err)}
	}
	return r.leftWith(&leftRecord{why: ErrNotSent})
}

// givenBack returns the record of an operation given back before the first send of its run. listed is the record as it was if the run has
// not marked it.
func (r *run) givenBack(listed persist.Record) persist.Record {
	rec, before := r.rec, listed
	if r.before != nil {
		before = *r.before
	}
	was, now := operation.OpOf(&before, 0), operation.OpOf(&rec, 0)
	back := now.GivenBack(was, r.latestFirstSend(&rec))
	rec.State, rec.HoldReason, rec.MaybeSent, rec.FirstSent, rec.SendBefore = back.State, back.Hold, back.MaybeSent, back.FirstSent, back.SendBefore
	return rec
}

// latestFirstSend returns the latest first send of an operation begun to be sent at once.
func (r *run) latestFirstSend(rec *persist.Record) time.Time {
	return r.cfg.drives.LatestFirstSend(rec.Created, rec.Window)
}

// leaveBetween gives back the operation of a call if its limiter takes long before another attempt, and returns the result of a left call. If
// it returns nil, the run is over.
func (r *run) leaveBetween() *result {
	if !r.drive.Leaves() {
		return nil
	}
	d := ending{r}
	_ = d.conclude(r.journal.Finish) // it logs an error: then the operation is free when its lease has ended
	report := r.drive.Report()
	if !report.Left {
		return d.finished(d.result())
	}
	left := leftRecord{failed: d.error(&report), why: troubles[r.drive.Withdrawn()]}
	r.last.Drain()
	res := r.leftWith(&left)
	r.tellLeft(res)
	return res
}

// leftWith returns the result of a call after leaving its operation.
func (r *run) leftWith(left *leftRecord) *result {
	left.rec, left.created, left.turn, left.started, left.took = r.rec, r.given.Created, r.turn, r.started, r.took
	if left.spent = r.given.Spent; left.failed != nil {
		left.spent = r.drive.Spent()
	}
	return &result{left: left, notShared: true}
}

// awaitLimiter waits for the turn of a call without its operation, until its context ends or the client is closed. It returns the error of the
// call if it goes on no more.
func (c *Client) awaitLimiter(ctx context.Context, name string, op *preparedRequest, left *leftRecord) error {
	op.left, op.took = left, left.took
	op.took.enter(&op.took.spent.Waiting)
	defer op.took.leave()
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

// goesOn gives a run the turn of a call after leaving its operation. It also notes the call's begin of the operation, if nobody has had the
// operation since.
func (l *leftRecord) goesOn(r *run) {
	if l == nil || l.turn.used {
		return
	}
	r.turn, r.given.Created = l.turn, r.given.Created || l.created && l.same(&r.rec)
	r.given.Spent, r.started, r.token = l.spent, l.started, l.turn.tokenLeft(&r.rec)
}

// withdrawLeft takes back the operation left by a call, if nobody has had it since, and returns the call's error. Any other operation stays as it
// is.
func (e *engine) withdrawLeft(ctx context.Context, name string, op *preparedRequest, cause error) error {
	ctx = context.WithoutCancel(ctx)
	left := op.left
	if op := operation.OpOf(&left.rec, 0); op.TakesBackLeft(left.created) && e.takeBack(ctx, &left.rec) {
		failed := newError(name, nothing(left.rec.Key), nil, left.why)
		failed.Last = cause
		return left.tell(failed)
	}
	return left.tell(e.unbegun.errorAfterRead(ctx, name, op.named, false, cause, left.why))
}

// takeBack forgets an operation that was never sent, or settles it as absent: operation.WithdrawnBeside decides. It returns false if the
// operation may still be sent, by operation.Freed: the journal failed, or the record has changed.
func (e *engine) takeBack(ctx context.Context, rec *persist.Record) bool {
	keeps, err := e.places.IsKept(ctx, rec)
	switch {
	case err != nil:
		return false
	case operation.WithdrawnBeside(keeps) == operation.EndAbsent:
		ended := *rec
		ended.Told = true // its call is told so
		return resolve(ctx, e, ended, Resolution{Effect: persist.EffectAbsent}) == nil
	}
	watch := e.shared.begins.Watch(rec.ID)
	freed := operation.Freed{Forgotten: e.journal.Forget(ctx, *rec) == nil}
	_, err = e.unbegun.probe(ctx, rec.ID)
	freed.Gone, freed.Begun = errors.Is(err, persist.ErrNotFound), watch.End()
	freed.MayAppear = e.shared.notes.MayAppear(rec.ID, e.now())
	return freed.IsFree()
}

// tell adds the facts of the attempts to the error of a call.
func (l *leftRecord) tell(e *Error) *Error {
	if l.failed == nil {
		return e
	}
	e.Attempts, e.Sends, e.Answer = l.spent.Attempts, l.spent.Sends, l.failed.Answer
	if e.Last == nil {
		e.Last = l.failed.Last
	}
	if e.Said.verdict != operation.Final {
		e.Outcome = l.failed.Outcome
	}
	return e
}

// left returns the error of a caller after leaving a call because of cause. The call may go on for others.
func left(name string, key string, caller *inflight.Caller[*result], cause error) *Error {
	e := newError(name, unclear(key), cause, ErrInFlight)
	e.Sends, e.Joined = caller.Call().Sends(), caller.Joined()
	return e
}

package run

import (
	"context"
	"errors"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds a call's wait for a slow limiter before an attempt: its operation is given back, and the call
// waits without it. It also holds the error of a caller at leaving its call.

// leftRecord is the record of an operation as a call has left it, because its limiter takes long.
type leftRecord struct {
	rec     persist.Record // as it was given back
	created bool           // by that call: nobody else has had it since, as long as the record is the same
	turn    *turn          // of its limiter

	failed  *Error          // of the call if it goes on no more, and no other has the operation; nil: it has made no attempt
	why     error           // given in that error if the operation was never sent, or the last send was refused
	spent   operation.Spent // of the call's bounds
	started time.Time       // the call's first drive
	took    *stopwatch      // of the call
}

// same reports whether rec, the record as it is now, is unchanged since this call left its operation to others during a wait for the rate
// limiter.
func (l *leftRecord) same(rec *persist.Record) bool {
	return l.rec.Seq == rec.Seq && l.rec.Revision == rec.Revision
}

// leaveLimited waits for the limiter before the first send of a call, for a third of a lease with the operation leased. Then it gives the operation back as it
// was before the call, or as never sent, and returns the result of a call that waits without it: another process may send it meanwhile. If it returns nil, the
// run goes on: the limiter has let it send, or the limiter's error is kept for the first send. In Admit, leaves lets a long wait end with errLimited; only a
// run with returns may give its operation back. A run of a pass waits elsewhere (mayBegin), and one that asks for an answer again (AskedAgain) has no lease to
// give up.
func (r *run) leaveLimited() *result {
	t := &r.task
	if t.given.Pass || !r.permit.returns || t.cfg.Limiter == nil || t.given.AskedAgain {
		return nil
	}
	r.permit.leaves = true
	// An error of the limiter is kept for the first send: its event and its error tell of an attempt.
	r.permit.refused = r.permit.Admit(t.call.Context(), false)
	if r.permit.leaves = false; r.permit.refused != errLimited {
		return nil
	}
	r.permit.refused = nil
	err := t.engine.writer.rewrite(t.call.Values(), &t.rec, true, func() error {
		// As it was before adopt marked it, since nothing was sent.
		rec := t.givenBack(persist.Record{})
		t.engine.holder.unstamp(&rec)
		return t.update(rec)
	})
	back := operation.GaveBackAfter(err == nil, errors.Is(err, persist.ErrUncertain))
	if back == operation.NotBack { // the lease, too, is the call's as before
		t.engine.writer.logUnrecorded(t.call.Values(), &t.rec, err)
		return nil
	}
	t.engine.leases.End(t.rec.ID)
	if back == operation.BackUnclear {
		// Nobody waits for it any more.
		r.permit.turn.stop(err)
		return &result{err: journalError(t.name, &t.rec, err)}
	}
	return r.leftWith(&leftRecord{why: ErrNotSent})
}

// leaveBetween gives back the operation of a call if its limiter takes long before another attempt, and returns the result of a call that waits
// without it. If it returns nil, the run is over, and end records its outcome. The attempts so far count for the call: its result or error has them.
func (r *run) leaveBetween() *result {
	t := &r.task
	if !t.drive.Leaves() {
		return nil
	}
	_ = r.ending.conclude(t.journal.Finish) // it logs an error: then the operation is free when its lease has ended
	report := t.drive.Report()
	if !report.Left {
		return r.finished(r.ending.result())
	}
	// Made now: after the wait nothing of this run is left.
	left := leftRecord{failed: r.ending.error(&report), why: troubles[t.drive.Withdrawn()]}
	r.replies.last.Drain()
	res := r.leftWith(&left)
	r.report.tellLeft(res)
	return res
}

// leftWith returns the result of a call that has given its operation back for the wait for the limiter. Only the call itself may use it: callers that
// have joined start again, and find the record.
func (r *run) leftWith(left *leftRecord) *result {
	t := &r.task
	left.rec, left.created, left.turn, left.started, left.took = t.rec, t.given.Created, r.permit.turn, r.attempts.started, t.took
	// Without an attempt of its own, the run has spent nothing of the call's bounds.
	if left.spent = t.given.Spent; left.failed != nil {
		left.spent = t.drive.Spent()
	}
	return &result{left: left, notShared: true}
}

// await waits until the limiter lets a call send that has given its operation back; turn is this wait, begun before. nil: the call begins its operation again.
// The wait ends with its context, or with the client: then the operation is withdrawn, if nobody has changed it since, and the error is the call's.
func (l *leftRecord) await(ctx, draining context.Context, e *engine, name string, op *preparedRequest) error {
	op.left, op.took = l, l.took
	op.took.enter(&op.took.spent.Waiting)
	defer op.took.leave()
	t := l.turn
	for _, end := range []context.Context{ctx, draining} {
		defer context.AfterFunc(end, func() { t.stop(sanitize.Cause(end)) })()
	}
	<-t.done
	// nil: the limiter has answered. The run asks it for the answer.
	cause := sanitize.Cause(t.within)
	if cause == nil {
		return nil
	}
	defer t.stop(nil)
	return l.withdraw(ctx, e, name, op, cause)
}

// goesOn prepares r, the next run of a call that left its operation to others while it waited for the rate limiter: it gets the limiter's permission, and the
// counts so far. If nobody has had the operation since, the call still counts as its beginner: its error may say that nothing was begun. It is called once the
// record was read again; l may be nil. Nothing changes once the permission was used.
func (l *leftRecord) goesOn(r *run) {
	if l == nil || l.turn.used {
		return
	}
	r.permit.turn, r.task.given.Created = l.turn, r.task.given.Created || l.created && l.same(&r.task.rec)
	r.task.given.Spent, r.attempts.started, r.tokens.token = l.spent, l.started, l.turn.tokenLeft(&r.task.rec)
}

// withdraw forgets the operation that a call left for later, if no other process has changed it since. It returns the call's error, which says whether it did.
// It is called if the call gives up, and is in the table of running calls no more (false).
func (l *leftRecord) withdraw(ctx context.Context, e *engine, name string, op *preparedRequest, cause error) error {
	ctx = context.WithoutCancel(ctx)
	if left := operation.OpOf(&l.rec, 0); left.TakesBackLeft(l.created) && l.takeBack(ctx, e) {
		failed := newError(name, nothing(l.rec.Key), nil, l.why)
		failed.Last = cause
		return l.tell(failed)
	}
	return l.tell(e.unbegun.errorAfterRead(ctx, name, op.named, false, cause, l.why))
}

// takeBack takes back an operation that its call has begun, left to others during a wait, and never sent: it is forgotten, or settled as absent
// (operation.WithdrawnBeside). It returns false if the operation may still be sent: the journal failed, or the record has changed since.
func (l *leftRecord) takeBack(ctx context.Context, e *engine) bool {
	rec := &l.rec
	keeps, err := e.places.IsKept(ctx, rec)
	switch {
	case err != nil:
		return false
	case operation.WithdrawnBeside(keeps) == operation.EndAbsent:
		ended := *rec
		ended.Told = true // its call is told so
		return resolve(ctx, e, ended, Resolution{Effect: persist.EffectAbsent}) == nil
	}
	// Before the Forget: a begin just after it must not be missed.
	watch := e.shared.begins.Watch(rec.ID)
	freed := operation.Freed{Forgotten: e.journal.Forget(ctx, *rec) == nil}
	_, err = e.unbegun.probe(ctx, rec.ID)
	freed.Gone, freed.Begun = errors.Is(err, persist.ErrNotFound), watch.End()
	// A begin without an answer may still show.
	freed.MayAppear = e.shared.notes.MayAppear(rec.ID, e.clock.Earliest())
	return freed.IsFree()
}

// tell adds to the error of a call the attempts and sends that it made before it left its operation to others, and returns the error. Unless the error says how
// the operation ended, its outcome is the one after those attempts.
func (l *leftRecord) tell(e *Error) *Error {
	if l.failed == nil {
		return e
	}
	e.Attempts, e.Sends, e.Answer = l.spent.Attempts, l.spent.Sends, l.failed.Answer
	if e.Last == nil {
		e.Last = l.failed.Last
	}
	if e.Said.verdict == operation.NoEffect { // else others may send it by now
		e.Outcome = l.failed.Outcome
	}
	return e
}

// left returns the error of a caller that leaves a call because of cause, before the call has a result. The operation may take effect: the
// call may go on for other callers. name is that of the caller's method.
func left(name string, key string, caller *inflight.Caller[*result], cause error) *Error {
	e := newError(name, unclear(key), cause, ErrInFlight)
	e.Sends, e.Joined = caller.Call().Sends(), caller.Joined()
	return e
}

// letGo gives up the lease of an operation that this run has taken over, and not sent, so that others may send it. listed is the record
// before the run took it over. It is the last act of a run without attempts; an error is logged, and the lease then ends by itself.
func (r *run) letGo(listed *persist.Record) {
	t := &r.task
	r.permit.Dismiss()
	ctx := t.call.Values()
	err := t.lastChange(ctx, &t.rec, func() error {
		rec := t.givenBack(*listed)
		// Without leases, release has nothing to do: it gives up a lease alone.
		if !t.engine.journalShared {
			_, err := t.journal.Update(ctx, rec)
			return err
		}
		return t.engine.writer.release(ctx, rec, time.Time{})
	})
	t.engine.writer.logUnreleased(ctx, &t.rec, err)
}

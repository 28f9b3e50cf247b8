package oncehttp

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the wait for a limiter that takes long. The call to the limiter goes on, since a turn may be lost with a wait that is
// ended; the operation is given back as it was, so that others may send it, and is taken again once the turn has come.

// turn is one call to a limiter.
type turn struct {
	origin  string
	stop    context.CancelCauseFunc // ends the wait
	done    chan struct{}           // closed once the limiter has returned
	err     error                   // of the limiter; written before done is closed
	crashed *crash                  // likewise
	within  context.Context
	used    bool // an operation has taken it
}

// errLimited ends a run that gives its operation back while the limiter waits.
var errLimited = errors.New("the limiter of this client has not let it go out yet")

// beginTurn calls a limiter, with a context that has the values of ctx, and ends with it while leave has not returned true.
func beginTurn(ctx context.Context, origin string, limiter Limiter) (t *turn, leave func() bool) {
	t = &turn{origin: origin, done: make(chan struct{})}
	t.within, t.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	go func() {
		defer close(t.done)
		t.crashed = apart(func() { t.err = limiter.Wait(t.within) })
	}()
	return t, context.AfterFunc(ctx, func() { t.stop(context.Cause(ctx)) })
}

// result returns what the limiter said, once done is closed. A crash of it goes on here; stack gets its own, if that is not nil.
func (t *turn) result(stack *[]byte) error {
	defer t.stop(nil)
	t.used = true
	switch {
	case t.crashed != nil:
		if stack != nil {
			*stack = t.crashed.stack
		}
		if t.crashed.value == nil {
			runtime.Goexit()
		}
		panic(t.crashed.value)
	case t.err != nil:
		return cmp.Or(context.Cause(t.within), t.err)
	}
	return nil
}

// mayLeave reports whether the run may give its operation back while its limiter waits: it has sent nothing, or is one of a pass that is
// between two attempts.
func (r *run) mayLeave() bool {
	return r.leaves && (r.given.Pass || !r.drive.Reached() && r.sends()+r.begun == 0)
}

// retryWaits waits for the limiter before another attempt of a pass, where other processes share the journal. It reports whether that takes longer
// than a third of a lease: then the drive ends, and others may go on with the operation when it is due. The call to the limiter goes on.
func (r *run) retryWaits() bool {
	if !r.given.Pass || r.leases == nil || r.cfg.Limiter == nil {
		return false
	}
	r.leaves = true
	err := r.Admit(r.call.Context(), false)
	if r.leaves = false; err != errLimited {
		return false // any other error is met again by the attempt
	}
	r.gaveUp = err
	return true
}

// parksLate is called before a run waits for a limiter with its operation in its hands, and the result after it. In a fair Run that waits for a
// third of a lease nothing more of the origin is claimed until then, and what is queued is given back.
func (r *run) parksLate() (over func()) {
	if r.lanes == nil {
		return func() {}
	}
	var mu sync.Mutex
	late, ended := false, false
	timer := time.AfterFunc(r.cfg.Lease/renewals, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			late = true
			r.lanes.park(r.rec.Origin)
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		if ended = true; late {
			r.lanes.unpark(r.rec.Origin)
		}
	}
}

// limitLeaving waits for a limiter: for a third of a lease with the operation in its hands. Then it returns errLimited, and r.turn is the
// wait, which goes on.
func (r *run) limitLeaving(ctx context.Context, limiter Limiter) error {
	t, leave := beginTurn(ctx, r.rec.Origin, limiter)
	timer := time.NewTimer(r.cfg.Lease / renewals)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
		if leave() {
			r.turn = t
			return errLimited
		}
		<-t.done // soon: ctx has ended
	}
	leave()
	return t.result(r.stack)
}

// driveOn is drive, and waits for the limiter where that takes long. Nobody has the operation meanwhile. Where somebody else has it when the
// turn comes, that is for another operation of the same origin, or lost.
// A drive that was ended since its limiter takes long before another attempt is gone on with by the next one, if the operation is due then;
// of a Resume as many drives make as many attempts as one would.
func (p *pass) driveOn(rec *persist.Record) (r resumed, over bool) {
	r, over = p.drive(rec, nil)
	for drives := 0; r.turn != nil; {
		if over {
			drives++
		}
		if !p.silent && drives >= p.c.cfg.Retry.MaxAttempts {
			r.turn.stop(errLimited)
			return r, over
		}
		next, more := p.driveAfter(rec, r.turn)
		if over && !more && next.turn == nil { // it is not due, or another has it
			return r, over
		}
		r, over = next, more
	}
	return r, over
}

// driveAfter waits for a turn without an operation, until the pass is broken off, and drives one. Of its origin nothing is claimed meanwhile.
func (p *pass) driveAfter(rec *persist.Record, t *turn) (r resumed, over bool) {
	if p.lanes != nil {
		p.lanes.park(t.origin)
		defer p.lanes.unpark(t.origin)
	}
	defer context.AfterFunc(p.draining, func() { t.stop(context.Cause(p.draining)) })()
	defer t.stop(nil)
	p.waits.add(rec.ID, 1)
	defer p.waits.add(rec.ID, -1)
	<-t.done
	if now := p.retaken(rec.ID); now != nil {
		r, over = p.drive(now, t)
	}
	if t.used || over {
		return r, over
	}
	if now := p.another(rec, t); now != nil {
		defer p.c.engine.leases.drop(now.ID)
		return p.drive(now, t)
	}
	return resumed{}, false
}

// retaken returns the operation for which a turn has come, as it stands now; nil if somebody else has it, or it is not to be sent now.
func (p *pass) retaken(id persist.ID) *persist.Record {
	e := p.c.engine
	if p.draining.Err() != nil || e.clock.sync(p.ctx, &p.c.cfg) != nil {
		return nil
	}
	rec, err := e.journal.Get(context.WithoutCancel(p.ctx), id)
	if err != nil || rec.State != persist.StatePending || rec.Leased("", e.clock.earliest()) || rec.NextAttempt.After(e.now()) {
		return nil
	}
	return &rec
}

// another claims another operation of the same origin and needs, for a turn that has come for one which somebody else has; nil if there is
// none, or the pass cannot.
func (p *pass) another(gone *persist.Record, t *turn) *persist.Record {
	fair, ok := fairly(p.c.cfg.Journal)
	if p.lanes == nil || !ok || t.err != nil || t.crashed != nil || p.draining.Err() != nil {
		return nil
	}
	batch, _, err := p.claimServed(fair, group{gone.Origin, gone.Needs().String()}, 1)
	if err != nil || len(batch) == 0 { // the goroutine that claims meets the error, too
		return nil
	}
	p.giveBackAll(pointers(batch[1:]))
	return &batch[0]
}

// handSoon is hand, and returns false also where no worker is free for a third of a lease: they wait for limiters, and other processes may
// send the operation meanwhile.
func (p *pass) handSoon(rec *persist.Record) bool {
	timer := time.NewTimer(p.c.cfg.Lease / renewals)
	defer timer.Stop()
	select {
	case p.jobs <- rec:
		return true
	case <-p.draining.Done():
	case <-timer.C:
	}
	return false
}

// waiting counts for each operation the workers of a pass that wait for its turn, and do not have it. The zero value is ready; it is safe for
// concurrent use.
type waiting struct {
	mu sync.Mutex
	of map[persist.ID]int
}

func (w *waiting) add(id persist.ID, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[persist.ID]int{}
	}
	if w.of[id] += n; w.of[id] == 0 {
		delete(w.of, id)
	}
}

func (w *waiting) has(id persist.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[id] > 0
}

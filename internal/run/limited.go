package run

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the wait for a limiter that takes long. The call to the limiter goes on, since a turn may be lost with a wait that is
// ended; the operation is given back as it was, so that others may send it, and is taken again once the turn has come.

// turn is one wait for a limiter: one call to it, or several, one after the other.
type turn struct {
	origin  string
	stop    context.CancelCauseFunc // ends the wait
	done    chan struct{}           // closed once the limiter has returned
	err     error                   // of the limiter; written before done is closed
	crashed *crash                  // likewise
	within  context.Context
	used    bool // an operation has taken it

	left  persist.Record // the operation as it was left for this wait
	token string         // that it has got and not used

	mu           sync.Mutex
	made, wanted int  // calls to the limiter
	over         bool // there is no further one
}

// more makes it one of so many calls to the limiter. It returns false, and changes nothing, if it is over.
func (t *turn) more(calls int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.wanted = calls
	}
	return !t.over
}

// next counts another call to the limiter, if it is wanted.
func (t *turn) next() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = t.err != nil || t.made == t.wanted
	if !t.over {
		t.made++
	}
	return !t.over
}

// errLimited ends a run that gives its operation back while the limiter waits.
var errLimited = errors.New("the limiter of this client has not let it go out yet")

// beginTurn calls a limiter, with a context that has the values of ctx, and ends with it while leave has not returned true.
func beginTurn(ctx context.Context, origin string, limiter Limiter) (t *turn, leave func() bool) {
	t = &turn{origin: origin, done: make(chan struct{}), wanted: 1}
	t.within, t.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	go func() {
		defer close(t.done)
		t.crashed = apart(func() {
			for t.next() {
				t.err = limiter.Wait(t.within)
			}
		})
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

// waitsLong waits for the limiter before another send of a call or of a pass. It reports whether that
// takes longer than a third of a lease: then the drive ends, and others may go on with the operation when it is due. The call to the limiter goes on.
func (r *run) waitsLong() bool {
	if !r.returns || r.given.AskedAgain || r.cfg.Limiter == nil {
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
	if !r.fair {
		return func() {}
	}
	var mu sync.Mutex
	late, ended := false, false
	timer := time.AfterFunc(r.cfg.Lease/lease.Renewals, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			late = true
			r.turns.Park(r.rec.Origin)
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		if ended = true; late {
			r.turns.Unpark(r.rec.Origin)
		}
	}
}

// requests returns how many requests the operation needs until it is sent, if it is given back now, with that send. A lookup is made
// again, at once before the send.
func (r *run) requests() int {
	if given := r.givenNow(); given.AskFirst && (given.Doubted || r.drive.InDoubt()) {
		return 2
	}
	return 1
}

// leaveToken keeps an unused token for the operation that was left, and tokenLeft returns it if the record still stands. Whether it needs a token
// the record says.
func (t *turn) leaveToken(r *run) { t.left, t.token = r.rec, r.token }

func (t *turn) tokenLeft(rec *persist.Record) string {
	if t == nil || t.left.ID != rec.ID || t.left.Seq != rec.Seq {
		return ""
	}
	return t.token
}

// limitLeaving waits for a limiter: for a third of a lease with the operation in its hands. Then it returns errLimited, and r.turn is the
// wait, which goes on until all requests may go out that the operation needs until it is sent: one after the other would never get so far.
func (r *run) limitLeaving(ctx context.Context, limiter Limiter) error {
	t, leave := beginTurn(ctx, r.rec.Origin, limiter)
	timer := time.NewTimer(r.cfg.Lease / lease.Renewals)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
		if leave() && t.more(r.requests()) {
			r.turn = t
			return errLimited
		}
		<-t.done // soon: ctx has ended, or it is over
	}
	leave()
	return r.take(t)
}

// take takes a turn that has come: for the request that follows, and for those after it for which the limiter was called, too.
func (r *run) take(t *turn) error {
	err := t.result(r.stack)
	if err == nil {
		r.ahead = t.made - 1
	}
	return err
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
		p.lanes.Park(t.origin)
		defer p.lanes.Unpark(t.origin)
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
		defer p.c.engine.leases.Drop(now.ID)
		return p.drive(now, t)
	}
	return resumed{}, false
}

// retaken returns the operation for which a turn has come, as it stands now; nil if somebody else has it, or it is not to be sent now.
func (p *pass) retaken(id persist.ID) *persist.Record {
	e := p.c.engine
	if p.draining.Err() != nil || e.clock.Sync(p.ctx, p.c.engine.host) != nil {
		return nil
	}
	rec, err := e.journal.Get(context.WithoutCancel(p.ctx), id)
	if err != nil || rec.State != persist.StatePending || rec.Leased("", e.clock.Earliest()) || rec.NextAttempt.After(e.now()) {
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
	p.giveBackAll(batch[1:])
	return batch[0]
}

// handSoon is hand, and returns false also where no worker is free for a third of a lease: they wait for limiters, and other processes may
// send the operation meanwhile.
func (p *pass) handSoon(rec *persist.Record) bool {
	timer := time.NewTimer(p.c.cfg.Lease / lease.Renewals)
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

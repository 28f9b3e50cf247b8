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

// This file holds the wait for a slow limiter. The call to the limiter goes on, since ending a wait may lose its turn. The operation is given
// back as it was, so others may send it. It is taken again once the turn has come.

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
	token string         // its unused token

	mu           sync.Mutex
	made, wanted int  // calls to the limiter
	over         bool // there is no further one
}

// more sets the number of wanted calls to the limiter. It returns false, and changes nothing, if the turn is over.
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

// errLimited ends a run if it gives its operation back while the limiter waits.
var errLimited = errors.New("the limiter of this client has not let it go out yet")

// beginTurn calls a limiter. The limiter's context has the values of ctx, and ends with ctx until leave has returned true.
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

// result returns the limiter's error, once done is closed. A crash of the limiter goes on here; its stack is stored in *stack, if stack is
// not nil.
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

// waitsLong waits for the limiter before another send of a call or of a pass. It reports whether the wait takes longer than a third of a
// lease. Then the drive ends, and others may go on with the operation when it is due. The call to the limiter goes on.
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

// parksLate is called before a run waits for a limiter and keeps its operation; over is called after the wait. After a third of a lease,
// a fair Run claims nothing more of the origin until over is called, and gives its queued operations back.
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

// requests returns the number of requests needed by the operation up to its send, if it is given back now. The send counts. A lookup is made
// again, at once before the send.
func (r *run) requests() int {
	if given := r.givenNow(); given.AskFirst && (given.Doubted || r.drive.InDoubt()) {
		return 2
	}
	return 1
}

// leaveToken keeps an unused token for the operation left. tokenLeft returns it if the record is still the same. The record itself says if it
// needs a token.
func (t *turn) leaveToken(r *run) { t.left, t.token = r.rec, r.token }

func (t *turn) tokenLeft(rec *persist.Record) string {
	if t == nil || t.left.ID != rec.ID || t.left.Seq != rec.Seq {
		return ""
	}
	return t.token
}

// limitLeaving waits for a limiter, for at most a third of a lease while it keeps the operation. Then it returns errLimited, and r.turn is the
// wait. It goes on until all requests of the operation may go out, up to its send: waits for one request at a time would never get so far.
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

// take takes a turn when it has come: for the next request, and for the later ones already let through by the limiter.
func (r *run) take(t *turn) error {
	err := t.result(r.stack)
	if err == nil {
		r.ahead = t.made - 1
	}
	return err
}

// driveOn is drive, and waits for a slow limiter. Nobody has the operation meanwhile. If somebody else has it when the turn comes, the turn
// is for another operation of the same origin, or lost.
// If a slow limiter ends a drive before another attempt, the next drive goes on with it, if the operation is due then. In a Resume, all these
// drives together make as many attempts as one drive would.
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

// driveAfter waits for a turn without an operation, and then drives one. The wait ends if the pass is broken off. Nothing of the origin is
// claimed meanwhile.
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

// retaken returns an operation as it stands once its turn has come; nil if somebody else has it, or it is not to be sent now.
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

// another claims another operation of the same origin and needs for a turn, if somebody else has the turn's own operation. It returns nil if
// there is none, or the pass cannot claim.
func (p *pass) another(gone *persist.Record, t *turn) *persist.Record {
	fair, ok := fairly(p.c.cfg.Journal)
	if p.lanes == nil || !ok || t.err != nil || t.crashed != nil || p.draining.Err() != nil {
		return nil
	}
	batch, _, err := p.claimServed(fair, group{gone.Origin, gone.Needs().String()}, 1)
	if err != nil || len(batch) == 0 { // the claiming goroutine meets the error, too
		return nil
	}
	p.giveBackAll(batch[1:])
	return batch[0]
}

// handSoon is hand, and returns false also if no worker is free for a third of a lease. The workers wait for limiters then, and other
// processes may send the operation meanwhile.
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

// waiting counts for each operation the workers of a pass waiting for its turn without having the operation. The zero value is ready; it is
// safe for concurrent use.
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

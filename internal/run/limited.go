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

// turn is one wait for a limiter, on a goroutine of its own: one call to the limiter, or several in a row. The
// wait can outlive the run that began it. Its owner must call result or stop once, else its context is not freed.
type turn struct {
	origin  string
	stop    context.CancelCauseFunc // ends within, and so the wait
	done    chan struct{}           // closed once the limiter has returned
	err     error                   // of the limiter; written before done is closed
	crashed *crash                  // likewise
	within  context.Context         // of the limiter's calls
	used    bool                    // result was called: the turn is spent

	left  persist.Record // the operation as it was left for this wait
	token string         // its unused token

	mu           sync.Mutex
	made, wanted int  // calls to the limiter, begun and asked for; guarded by mu
	over         bool // there is no further call; guarded by mu
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

// next reports whether another call to the limiter is wanted, and counts it. After false the turn is over.
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

// beginTurn starts a wait for the limiter, for one request at first. The limiter's context has the values of ctx.
// It ends with ctx until leave has returned true; from then on only t.stop ends it. leave returns false if ctx has
// ended before.
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

// result spends the turn, and returns the limiter's error. It may be called only after done is closed. A panic or
// a Goexit of the limiter happens again here, on the goroutine of the caller; its stack is stored in *stack, if
// stack is not nil.
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

// waitsLong waits for the limiter before another send of a call or of a pass, and reports whether the wait takes
// longer than a third of a lease. After true, gaveUp is errLimited and r.turn is the wait, still under way: the
// drive must end, and the operation be given back. After false the run goes on, and an error of the limiter is met
// again by the attempt.
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

// parksLate is called before a run waits for a limiter and keeps its operation; over must be called after the
// wait. If the wait takes more than a third of a lease, a fair Run claims nothing of the origin until then, and
// gives its queued operations back.
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

// requests returns the number of requests before and with the next send, if the operation is given back now: 1, or
// 2 with a lookup, since the lookup is made again just before the send.
func (r *run) requests() int {
	if r.givenNow().AsksFirst(r.drive.InDoubt()) {
		return 2
	}
	return 1
}

// leaveToken keeps an unused token for the operation left. tokenLeft returns it if the record is still the same. The record itself says if it
// needs a token.
func (t *turn) leaveToken(r *run) { t.left, t.token = r.rec, r.token }

// tokenLeft returns the token kept for a record, or "" if there is none. The record must be as it was left. t may
// be nil.
func (t *turn) tokenLeft(rec *persist.Record) string {
	if t == nil || t.left.ID != rec.ID || t.left.Seq != rec.Seq {
		return ""
	}
	return t.token
}

// limitLeaving waits for a limiter, and keeps the operation for a third of a lease at most. Then it returns
// errLimited, and r.turn is the wait, which goes on for all requests up to the next send: a wait for one request
// at a time would never reach the send. Otherwise it returns the limiter's error, or the cause of ctx.
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

// take spends a turn whose wait is over. If the limiter let several requests out, ahead counts the later ones.
func (r *run) take(t *turn) error {
	err := t.result(r.stack)
	if err == nil {
		r.ahead = t.made - 1
	}
	return err
}

// driveOn runs an operation, and waits for a slow limiter meanwhile without the operation. When the turn comes and
// another process has the operation, the turn is used for another operation of the same origin, or lost. over is
// false if there was nothing to do.
//
// If a slow limiter ends a drive before another attempt, the next drive goes on with the operation once it is due.
// In a Resume, all these drives together make as many attempts as one drive would.
func (p *pass) driveOn(rec *persist.Record) (r resumed, over bool) {
	last := p.drive(rec, nil)
	for drives := 0; last.turn != nil; {
		if last.over {
			drives++
		}
		if !p.silent && drives >= p.c.cfg.Retry.MaxAttempts {
			last.turn.stop(errLimited)
			break
		}
		next := p.driveAfter(rec, last.turn)
		if last.over && !next.over && next.turn == nil { // it is not due, or another has it
			break
		}
		last = next
	}
	return last.resumed, last.over
}

// driveAfter waits for a turn without an operation, and then runs one: the operation of rec if it is still free,
// else another of its origin. The wait ends if the pass is broken off. Nothing of the origin is claimed meanwhile.
// It ends the turn in any case.
func (p *pass) driveAfter(rec *persist.Record, t *turn) (d drove) {
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
		d = p.drive(now, t)
	}
	if t.used || d.over {
		return d
	}
	if now := p.another(rec, t); now != nil {
		defer p.c.engine.leases.Drop(now.ID)
		return p.drive(now, t)
	}
	return drove{}
}

// retaken reads an operation again once its turn has come. It returns nil if the record cannot be read, has ended,
// is leased, or is due later, and if the pass was broken off. It takes no lease: adopt does so.
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

// another claims an operation of the same origin and needs as gone, for a turn without its own operation. It
// returns nil if there is none, or the pass cannot claim. The caller owns the lease of the returned record, and
// calls Drop after its run.
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

// handSoon hands a record to a worker, and waits a third of a lease at most. After false the record was not handed
// over, and the caller gives it back: the workers wait for limiters, or the pass was broken off.
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

// add changes the count of an operation by n, 1 or -1.
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

// has reports whether a worker waits for the turn of an operation.
func (w *waiting) has(id persist.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[id] > 0
}

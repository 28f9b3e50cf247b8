package run

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the wait for a slow limiter. The call to the limiter goes on, since ending a wait may lose
// its turn. The operation is given back as it was, so others may send it. It is taken again once the turn has
// come.

// turn is one wait for a limiter, on a goroutine of its own: one call to the limiter, or several in a row. The
// wait can outlive the run that began it. Its owner must call result or stop once, else its context is not
// freed.
type turn struct {
	origin  string                  // the limiter is of it
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

// more sets the number of calls that this wait (a turn) makes to the limiter: a run may need a permission for a lookup and one for its send. It
// returns false, and changes nothing, if the wait is over.
func (t *turn) more(calls int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.wanted = calls
	}
	return !t.over
}

// next reports whether this wait (a turn) makes another call to the limiter, one for each request to be sent, and counts it. After false
// the wait is over: all calls were made, or one failed.
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

// beginTurn starts a wait for the limiter, for one request at first. The limiter's context has the values of
// ctx. It ends with ctx until leave has returned true; from then on only t.stop ends it. leave returns false if
// ctx has ended before.
func beginTurn(ctx context.Context, origin string, limiter Limiter) (t *turn, leave func() bool) {
	t = &turn{origin: origin, done: make(chan struct{}), wanted: 1}
	t.within, t.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	go func() {
		defer close(t.done)
		t.crashed = apart(func() {
			// One call for each request that wants to be sent; none after an error.
			for t.next() {
				t.err = limiter.Wait(t.within)
			}
		})
	}()
	return t, context.AfterFunc(ctx, func() { t.stop(sanitize.Cause(ctx)) })
}

// result returns the limiter's error, or the cause of the end if the wait was ended; the turn cannot be used again. It may be called only after done
// is closed. A panic or a Goexit of the limiter happens again here, on the goroutine of the caller; its stack goes to *stack, if stack is not nil.
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
		return cmp.Or(sanitize.Cause(t.within), t.err)
	}
	return nil
}

// leaveToken keeps the token (a key from the server) of an operation that is left to others during the wait for the rate limiter; left is
// its record. tokenLeft returns it if the record is still the same, so that no second token is asked for.
func (t *turn) leaveToken(left *persist.Record, token string) { t.left, t.token = *left, token }

// tokenLeft returns the token (a key from the server) that leaveToken has kept during the wait for the rate limiter; "" if there is none,
// or if rec is not the record for which it was kept. t may be nil.
func (t *turn) tokenLeft(rec *persist.Record) string {
	if t == nil || t.left.ID != rec.ID || t.left.Seq != rec.Seq {
		return ""
	}
	return t.token
}

// drives are the drives of a pass over its operations, with the waits for slow limiters between them. They are
// safe for concurrent use.
type drives struct {
	pass       *pass
	resumption *resumption // drives one operation
	claims     *claims     // nil if the pass is not fair
	waits      waiting     // operations whose limiter is waited for without them
}

// driveOn sends an operation of a pass (Resume or Run). If its rate limiter is slow, the operation is left to other processes during the wait. If one of them
// has it when the limiter lets it send, the permission is used for another operation of the same origin, or lost. over is false if there was nothing to do. A
// drive returns a turn, the limiter's wait still in progress, if it left its operation for that.
//
// If a slow limiter ends a run before another attempt, the next run goes on with the operation once it is due. In a Resume (not silent), as many such runs are
// made as one run may make attempts.
func (v *drives) driveOn(rec *persist.Record) (r resumed, over bool) {
	last := v.drive(rec, nil)
	for drives := 0; last.turn != nil; {
		if last.over {
			drives++
		}
		if !v.pass.silent && drives >= v.pass.c.cfg.Retry.MaxAttempts {
			last.turn.stop(errLimited)
			break
		}
		next := v.driveAfter(rec, last.turn)
		if last.over && !next.over && next.turn == nil { // it is not due, or another has it
			break
		}
		last = next
	}
	return last.resumed, last.over
}

// driveAfter waits for the limiter without an operation, and then runs one: that of rec if it is still free, else another of its origin. So the permission of a
// slow limiter is used if anything of the origin can be sent. The wait ends if the pass is stopped. Nothing of the origin is claimed meanwhile (Park). t has
// ended on return.
func (v *drives) driveAfter(rec *persist.Record, t *turn) (d drove) {
	p := v.pass
	turns := p.turns()
	turns.Park(t.origin)
	defer turns.Unpark(t.origin)
	defer context.AfterFunc(p.draining, func() { t.stop(sanitize.Cause(p.draining)) })()
	defer t.stop(nil)
	v.waits.add(rec.ID, 1)
	defer v.waits.add(rec.ID, -1)
	<-t.done
	if now := v.retaken(rec.ID); now != nil {
		d = v.drive(now, t)
	}
	if t.used || d.over {
		return d
	}
	if now := v.another(rec, t); now != nil {
		defer p.c.engine.claims.Drop(now.ID)
		return v.drive(now, t)
	}
	return drove{}
}

// retaken reads an operation again that was left to other processes during the wait for its rate limiter: operation.MayRetake decides whether the run may go on
// with it: not while anybody has a lease of it, this client too. It returns nil if not, if the record cannot be read, or if the pass was stopped. It takes no
// lease: adopt does so.
func (v *drives) retaken(id persist.ID) *persist.Record {
	p := v.pass
	e := p.c.engine
	if p.draining.Err() != nil || e.clock.Sync(p.ctx, p.c.engine.host) != nil {
		return nil
	}
	rec, err := e.journal.Get(context.WithoutCancel(p.ctx), id)
	if op := operation.OpOf(&rec, 0); err != nil || !operation.MayRetake(&op, rec.Leased("", e.clock.Earliest()), e.now()) {
		return nil
	}
	return &rec
}

// another claims an operation of the same origin and needs as gone, which another process has taken: so the limiter's permission is not lost. It returns nil if
// there is none, if the limiter gave no permission (an error or a crash), or if the pass cannot claim (it has no lanes), or is stopped (draining). The caller
// owns the lease of the returned record, and calls Drop after its run.
func (v *drives) another(gone *persist.Record, t *turn) *persist.Record {
	p := v.pass
	if p.lanes == nil || t.err != nil || t.crashed != nil || p.draining.Err() != nil {
		return nil
	}
	batch, _, err := v.claims.claimServed(group{gone.Origin, gone.Needs().String()}, 1)
	if err != nil || len(batch) == 0 { // the claiming goroutine meets the error, too
		return nil
	}
	p.giveBackAll(batch[1:])
	return batch[0]
}

// waiting counts for each operation the workers of a pass waiting for its turn without having the operation.
// The zero value is ready; it is safe for concurrent use.
type waiting struct {
	mu sync.Mutex
	of map[persist.ID]int // how many wait for it
}

// add changes the number of workers that wait for the limiter of this operation by n, 1 or -1.
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

// has reports whether a worker waits for the turn of an operation. Then no other worker of this pass may take the operation: it would wait for a
// second turn.
func (w *waiting) has(id persist.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[id] > 0
}

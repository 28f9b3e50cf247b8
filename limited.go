package oncehttp

import (
	"context"
	"errors"
	"sync"
	"time"
)

// This file holds how a pass on a journal that other processes share waits for the limiter of an origin: no longer with the operation in
// its hands than a third of a lease. Then it gives the operation back as it was, waits on without one, and claims the next for the turn that it gets.

// errLimited ends such a wait: another client's limiter may let the operation go out.
var errLimited = errors.New("the limiter of this client did not let it go out within a third of a lease")

// turns are what the limiters of a Run let go out while it has no operation for them, one for each origin at most. The zero value has
// none. It is safe for concurrent use.
type turns struct {
	mu  sync.Mutex
	run context.Context // of the Run; nil: none is under way
	of  map[string]*turn
}

// turn is that of an origin whose limiter was slow when it was asked last.
type turn struct{ waits, ready bool }

// begin lets turns be waited for until ctx, that of a Run, ends.
func (t *turns) begin(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run, t.of = ctx, map[string]*turn{}
}

// take takes a turn that is ready.
func (t *turns) take(origin string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[origin]
	ready := at != nil && at.ready
	if ready {
		at.ready = false
	}
	return ready
}

// fast notes that the limiter of an origin let an operation go out in time.
func (t *turns) fast(origin string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.of[origin]; at != nil && !at.waits && !at.ready {
		delete(t.of, origin)
	}
}

// slow reports whether the limiter of an origin was slow when it was asked last. waits reports whether its turn is waited for.
func (t *turns) slow(origin string) (slow, waits bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[origin]
	return at != nil, at != nil && at.waits
}

// wait returns a context in which to wait for the turn of an origin without an operation; nil if somebody does already, or no Run is under way.
func (t *turns) wait(origin string) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run == nil || t.run.Err() != nil || t.of[origin] != nil && t.of[origin].waits {
		return nil
	}
	t.of[origin] = &turn{waits: true}
	return t.run
}

// end says what came of wait.
func (t *turns) end(origin string, ready bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.of[origin]; at != nil {
		at.waits, at.ready = false, ready
	}
}

// mayLeave reports whether the run can leave its operation to other processes while the limiter waits.
func (r *run) mayLeave() bool { return r.lanes != nil && !r.reached && r.sends+r.begun == 0 }

// limitLeaving waits for a limiter for a third of a lease at most. Then it returns errLimited, and a goroutine of the Run waits on.
func (r *run) limitLeaving(ctx context.Context, limiter Limiter) error {
	e, origin := r.engine, r.rec.Origin
	if e.turns.take(origin) {
		return nil
	}
	within, cancel := context.WithCancelCause(ctx) // without a deadline, which a limiter may take for a reason to refuse
	defer cancel(nil)
	leave := time.AfterFunc(e.cfg.Lease/renewals, func() { cancel(errLimited) })
	defer leave.Stop()
	err := limiter.Wait(within)
	switch {
	case err == nil:
		e.turns.fast(origin)
		return nil
	case context.Cause(within) != errLimited:
		return err
	}
	r.limitedHere = true
	if on := e.turns.wait(origin); on != nil {
		go e.cfg.guard(on, "a limiter has crashed", func() {
			ready := false
			defer func() {
				e.turns.end(origin, ready)
				e.wake()
			}()
			ready = pause(on, pauseMin) == nil && limiter.Wait(on) == nil // once the others who wait have left, too
		})
	}
	return errLimited
}

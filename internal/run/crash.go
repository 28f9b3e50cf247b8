package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/persist"
)

// This file handles a panic, or a runtime.Goexit, of somebody else's code: functions of the Config, methods of
// a journal or a transport. Do hands a panic to its caller. Resume and Run have no caller able to catch it, so
// it becomes an error.

// crash is one such end of somebody else's code.
type crash struct {
	value any    // of the panic; nil: runtime.Goexit
	stack []byte // of the goroutine, at that point
	sends int    // of the run, if it is one's
}

// apart calls f in a goroutine of its own, and waits for its end. It returns nil if f returned; else the crash,
// with its stack. A crash does not reach the caller.
func apart(f func()) *crash {
	over := make(chan *crash, 1)
	go func() {
		returned := false
		defer func() {
			if returned {
				over <- nil
				return
			}
			// Before recover: afterwards the frames of the panic are gone.
			stack := debug.Stack()
			over <- &crash{value: recover(), stack: stack}
		}()
		f()
		returned = true
	}()
	return <-over
}

// withStack returns f with one addition: if f panics, the stack goes to *stack, unless that is set, and the panic goes on. stack must not be nil.
func withStack(stack *[]byte, f func() *result) func() *result {
	return func() *result {
		returned := false
		defer func() {
			if !returned && *stack == nil { // else it is the stack of a limiter
				*stack = debug.Stack()
			}
		}()
		res := f()
		returned = true
		return res
	}
}

// crashOf returns the crash of a finished call: the value of its panic, the stack that withStack has set, and the number of its sends. The call must
// have crashed.
func crashOf(call *inflight.Call[*result], stack []byte) *crash {
	value := call.Panicked()
	if value == nil {
		// After the callers had their answer.
		value = call.PanickedLate()
	}
	return &crash{value: value, stack: stack, sends: call.Sends()}
}

// err returns the crash as an error: the cause named in the errors of its call.
func (c *crash) err() error { return crashCause(c.value) }

// errGoexit is the cause of an error after somebody else's code ended its goroutine.
var errGoexit = errors.New("a function of the caller's called runtime.Goexit")

// crashCause returns the error for a panic with this value; nil is runtime.Goexit. If the value is no error,
// the result has its type alone, since its text may hold a secret. An error is treated like an error returned
// by the function.
func crashCause(value any) error {
	switch v := value.(type) {
	case nil:
		return errGoexit
	case runtime.Error:
		return fmt.Errorf("a function of the caller's panicked: %w", v)
	case error:
		return fmt.Errorf("a function of the caller's panicked: %w", sanitized(v))
	}
	return fmt.Errorf("a function of the caller's panicked with a %T", value)
}

// drive sends a claimed operation of a pass (Resume or Run), and returns how that ended. A panic in a function of the user does not end the pass: it is logged and
// reported as the operation's error, its lease is given up, and this process leaves the operation alone for MaxPause. The result has over true if the operation was
// run. t is the limiter's permission to send, taken before; it may be nil.
func (v *drives) drive(rec *persist.Record, t *turn) drove {
	p := v.pass
	d, crashed := v.resumption.resume(rec, t)
	if crashed == nil {
		return d
	}
	e := p.c.engine
	// The same code would crash again: this process waits as long as it ever does.
	until := e.now().Add(p.c.cfg.Retry.MaxPause).Round(0)
	e.shared.crashes.Note(rec.ID, until, e.now())
	p.c.cfg.logCrash(p.ctx, "an operation could not be resumed", rec.Key, crashed)
	// The journal may be the one that crashes.
	p.c.cfg.guard(p.ctx, "an operation could not be given back", func() { v.giveBackCrashed(rec.ID) })
	failed := newError("resume", unclear(rec.Key), crashed.err())
	failed.Sends, failed.NextAttempt = crashed.sends, until
	blocked(p.ctx, &p.c.cfg, rec, failed)
	return drove{over: true, resumed: resumed{Result{Key: rec.Key}, failed}}
}

// giveBackCrashed gives up the lease of an operation after a crash of its run, as far as the lease is this
// client's. Other processes may try the operation again soon; this one waits for Retry.MaxPause.
func (v *drives) giveBackCrashed(id persist.ID) {
	p := v.pass
	e, ctx := p.c.engine, context.WithoutCancel(p.ctx)
	if !e.journalShared || e.leases.Runs(id) {
		return
	}
	// As it is now: the run may have written before it crashed.
	if now, err := e.journal.Get(ctx, id); err == nil {
		e.writer.giveBack(ctx, now, p.again())
	}
}

// restsUntil returns the earliest time of this client's next try of an operation, after a recent crash of its run, or after a send that was
// impossible; zero: now.
func restsUntil(e *engine, id persist.ID) time.Time {
	now := e.now()
	// Both are reasons of this process alone. Others may try the operation.
	return later(e.shared.crashes.Until(id, now), e.aside.Until(id, now))
}

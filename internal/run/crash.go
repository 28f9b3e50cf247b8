package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/persist"
)

// This file handles a panic, or a runtime.Goexit, of somebody else's code: functions of the Config, methods of a journal or a
// transport. Do hands a panic to its caller. Resume and Run have no caller able to catch it, so it becomes an error.

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
			stack := debug.Stack()
			over <- &crash{value: recover(), stack: stack}
		}()
		f()
		returned = true
	}()
	return <-over
}

// withStack returns f with one addition: a crash of f sets *stack, if it is nil, and goes on. stack must not be
// nil.
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

// crashOf returns the crash of a finished call that has crashed. stack is the one set by withStack.
func crashOf(call *inflight.Call[*result], stack []byte) *crash {
	value := call.Panicked()
	if value == nil {
		value = call.PanickedLate()
	}
	return &crash{value: value, stack: stack, sends: call.Sends()}
}

// err returns the cause for errors of the crashed call.
func (c *crash) err() error { return crashCause(c.value) }

// errGoexit is the cause of an error after somebody else's code ended its goroutine.
var errGoexit = errors.New("a function of the caller's called runtime.Goexit")

// crashCause returns the error for a panic with this value; nil is runtime.Goexit. If the value is no error, the result has its
// type alone, since its text may hold a secret. An error is treated like an error returned by the function.
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

// logCrash writes the cause and the stack of a crash; silent without a logger, and if the logger panics. key may
// be empty. A stack has no values in it.
func (c *Config) logCrash(ctx context.Context, msg, key string, crashed *crash) {
	if c.Logger == nil {
		return
	}
	defer func() { _ = recover() }() // nobody is left to be told
	c.Logger.LogAttrs(ctx, slog.LevelError, "oncehttp: "+msg, slog.String("key", key),
		slog.String("error", crashed.err().Error()), slog.String("stack", string(crashed.stack)))
}

// guard calls f apart, and waits for it. It logs and returns a crash of f; nil if f returned.
func (c *Config) guard(ctx context.Context, msg string, f func()) *crash {
	crashed := apart(f)
	if crashed != nil {
		c.logCrash(ctx, msg, "", crashed)
	}
	return crashed
}

// begin starts one of the goroutines of a pass; end waits for it. A crash of f is yielded like a failure of the
// journal.
func (p *pass) begin(f func()) {
	p.workers.Go(func() {
		if crashed := p.c.cfg.guard(p.ctx, "a pass has crashed", f); crashed != nil {
			p.failed(fmt.Errorf("oncehttp: resume: %w", crashed.err()))
		}
	})
}

// drive is resume, and makes the operation's error of a crash: it is logged, told, and the operation is given
// back. This process then leaves the operation alone for MaxPause. t may be nil.
func (p *pass) drive(rec *persist.Record, t *turn) drove {
	d, crashed := p.resume(rec, t)
	if crashed == nil {
		return d
	}
	e := p.c.engine
	until := e.now().Add(p.c.cfg.Retry.MaxPause).Round(0)
	e.shared.crashes.Note(rec.ID, until, e.now())
	p.c.cfg.logCrash(p.ctx, "an operation could not be resumed", rec.Key, crashed)
	p.c.cfg.guard(p.ctx, "an operation could not be given back", func() { p.giveBackCrashed(rec.ID) })
	failed := newError("resume", unclear(rec.Key), crashed.err())
	failed.Sends, failed.NextAttempt = crashed.sends, until
	p.c.cfg.blocked(p.ctx, rec, failed)
	return drove{over: true, resumed: resumed{Result{Key: rec.Key}, failed}}
}

// giveBackCrashed gives up the lease of an operation after a crash of its run, as far as the lease is this client's. Other processes may
// try the operation again soon; this one waits for Retry.MaxPause.
func (p *pass) giveBackCrashed(id persist.ID) {
	e, ctx := p.c.engine, context.WithoutCancel(p.ctx)
	if !e.journalShared || e.leases.Runs(id) {
		return
	}
	if now, err := e.journal.Get(ctx, id); err == nil {
		e.writer.giveBack(ctx, now, p.again())
	}
}

// resting reports whether this client does not try an operation now: a run of it has crashed not long ago, or the client could not send it.
func (e *engine) resting(id persist.ID) bool { return !e.restsUntil(id).IsZero() }

// restsUntil returns the time of this client's next try of an operation after a crash or an impossible send; zero: now.
func (e *engine) restsUntil(id persist.ID) time.Time {
	now := e.now()
	return later(e.shared.crashes.Until(id, now), e.aside.Until(id, now))
}

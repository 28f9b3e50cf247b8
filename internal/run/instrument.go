package run

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/oncehttp/oncehttp/internal/inflight"
)

// Instrument is oncehttp.Instrument.
type Instrument interface {
	Operation(ctx context.Context, begins *Event) (context.Context, func(ends *Event))
	Attempt(ctx context.Context, begins *Event) (context.Context, func(ends *Event))
	Of() any // the user's own value
}

// instrumented is a call with the values of the context returned by Config.Instrument in its own contexts.
type instrumented struct {
	callers
	context, values overlay
}

// Context returns the call's context, with those values.
func (i *instrumented) Context() context.Context { return &i.context }

// Values is Context, and never ends.
func (i *instrumented) Values() context.Context { return &i.values }

// overlay is a context with the values of another one. The first one says when it ends.
type overlay struct {
	context.Context
	values context.Context
}

// Value returns the value of the other context. A context as a value says how its context ends, or is this package's own: the first one has it.
func (o *overlay) Value(key any) any {
	v := o.values.Value(key)
	if _, ends := v.(context.Context); ends {
		return o.Context.Value(key)
	}
	return v
}

// instrument tells Config.Instrument of the beginning of an attempt, or of the run. From then on r.call has the
// values of the context returned by it; the caller restores r.call after an attempt. A context not derived from
// ctx is not used. end must be called at the end; nil: there is nothing to call.
func (r *run) instrument(ctx context.Context, attempt bool, e *Event) (end func(*Event)) {
	call := r.call
	within, end := r.calmBegin(ctx, attempt, e)
	switch {
	case within == nil || within == ctx:
	case inflight.From(within) != inflight.From(ctx):
		r.cfg.log(call.Values(), slog.LevelError, "Config.Instrument has returned a context that is not derived from its own; it is not used", r.rec.Key, nil)
	default:
		r.call = &instrumented{call, overlay{call.Context(), within}, overlay{call.Values(), within}}
	}
	return end
}

// calmBegin calls a method of Config.Instrument. A panic of it is logged, and goes no further; then it returns nothing.
func (r *run) calmBegin(ctx context.Context, attempt bool, e *Event) (within context.Context, end func(*Event)) {
	r.call.Work().Visit()
	r.cfg.instrumenting.Add(1)
	returned := false
	defer func() { r.calmed(returned, recover()) }()
	if attempt {
		within, end = r.cfg.Instrument.Attempt(ctx, e)
	} else {
		within, end = r.cfg.Instrument.Operation(ctx, e)
	}
	returned = true
	return within, end
}

// calmEnd is calmBegin for the function of an end.
func (r *run) calmEnd(end func(*Event), e *Event) {
	r.call.Work().Visit()
	r.cfg.instrumenting.Add(1)
	returned := false
	defer func() { r.calmed(returned, recover()) }()
	end(e)
	returned = true
}

// calmed ends a call of Config.Instrument, and logs its panic. returned is false if the call has not returned.
// value is the recovered value; nil with returned false: the call has ended the goroutine, which goes on to end.
func (r *run) calmed(returned bool, value any) {
	if !returned && value != nil {
		r.cfg.logCrash(r.call.Values(), "Config.Instrument has crashed", r.rec.Key, &crash{value: value, stack: debug.Stack()})
	}
	r.cfg.instrumenting.Add(-1)
	r.call.Work().Return()
}

// begins tells Config.Instrument of the run, if it is set.
func (r *run) begins() {
	if r.cfg.Instrument != nil {
		r.endSpan = r.instrument(r.call.Context(), false, r.event(EventBegun))
	}
}

// ends tells Config.Instrument of the end of the run. It does nothing after the first time, or without begins.
func (r *run) ends(e *Event) {
	if end := r.endSpan; end != nil {
		r.endSpan = nil
		r.calmEnd(end, e)
	}
}

// tellLeft tells of a run after it has given its operation back without an end.
func (r *run) tellLeft(res *result) {
	e := r.event(EventLeft)
	if e.Err = errLimited; res.err != nil {
		e.Err = res.err
	}
	r.ends(e)
	r.tell(e)
}

// errCrashed is the error of a run, or of an attempt, broken off by the user's code: it panicked, or it ended its goroutine.
var errCrashed = errors.New("a function of the caller's has crashed")

// sendOnce does the step Send. If Config.Instrument is set, it hears of the begin and the end of the attempt, also
// if user's code crashes in between.
func (r *run) sendOnce() {
	if r.cfg.Instrument == nil {
		r.sendNow()
		return
	}
	call, sent := r.call, false
	ctx := &attemptContext{call.Context(), r.attemptNow(), true}
	end := r.instrument(ctx, true, r.event(EventAttempt))
	defer func() {
		r.call = call
		if end == nil {
			return
		}
		e := r.eventAnswered()
		if !sent {
			e = r.event(EventAnswered)
			e.Err = errCrashed
		}
		r.calmEnd(end, e)
	}()
	r.sendNow()
	sent = true
}

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
	callers                 // as before
	context, values overlay // with the values of the Instrument
}

// Context returns the call's context with the values of the context that Config.Instrument returned.
func (i *instrumented) Context() context.Context { return &i.context }

// Values returns the same values as Context, in a context that never ends.
func (i *instrumented) Values() context.Context { return &i.values }

// overlay is a context with the values of another one. The first one says when it ends.
type overlay struct {
	context.Context                 // its end and deadline count
	values          context.Context // the Instrument's: they go first
}

// Value returns the value of the other context, the Instrument's, unless that value is itself a context. By such a value package context finds out how a derived
// context ends, and this package its own: it comes from the first context, by which this one ends.
func (o *overlay) Value(key any) any {
	v := o.values.Value(key)
	if _, ends := v.(context.Context); ends {
		return o.Context.Value(key)
	}
	return v
}

// span tells Config.Instrument of a run, and of each of its attempts. It is used only if Config.Instrument is
// set.
type span struct {
	task *task
	end  func(*Event) // of the run; nil: Config.Instrument has none, or it was called
}

// instrument tells Config.Instrument of the beginning of an attempt or of the run. From then on task.call has the values of the context that
// Instrument returned; the caller restores task.call after an attempt. A context not derived from ctx is not used. The caller calls end at the end,
// unless it is nil.
func (s *span) instrument(ctx context.Context, attempt bool, e *Event) (end func(*Event)) {
	t := s.task
	call := t.call
	within, end := s.calmBegin(ctx, attempt, e)
	switch {
	case within == nil || within == ctx:
	case inflight.From(within) != inflight.From(ctx):
		t.cfg.log(call.Values(), slog.LevelError, "Config.Instrument has returned a context that is not derived from its own; it is not used", t.rec.Key, nil)
	default:
		t.call = &instrumented{call, overlay{call.Context(), within}, overlay{call.Values(), within}}
	}
	return end
}

// calmBegin calls a method of Config.Instrument (for an attempt, or the whole operation), and returns what it returned: the context for the work, and the function
// for its end. A panic is logged, and goes no further; both are nil then. So a fault of an instrument costs no operation.
func (s *span) calmBegin(ctx context.Context, attempt bool, e *Event) (within context.Context, end func(*Event)) {
	t := s.task
	t.call.Work().Visit()
	t.cfg.instrumenting.Add(1)
	returned := false
	defer func() { s.calmed(returned, recover()) }()
	if attempt {
		within, end = t.cfg.Instrument.Attempt(ctx, e)
	} else {
		within, end = t.cfg.Instrument.Operation(ctx, e)
	}
	returned = true
	return within, end
}

// calmEnd calls end with e, and logs a panic of it, as calmBegin does for the function of a beginning. calmed takes back the marks that the user's function runs
// (Visit, instrumenting).
func (s *span) calmEnd(end func(*Event), e *Event) {
	s.task.call.Work().Visit()
	s.task.cfg.instrumenting.Add(1)
	returned := false
	defer func() { s.calmed(returned, recover()) }()
	end(e)
	returned = true
}

// calmed ends a call of Config.Instrument. If the call has panicked, it logs the panic. returned tells whether the call has returned. value is the
// recovered value; nil without a return means that the call has ended its goroutine.
func (s *span) calmed(returned bool, value any) {
	t := s.task
	if !returned && value != nil {
		t.cfg.logCrash(t.call.Values(), "Config.Instrument has crashed", t.rec.Key, &crash{value: value, stack: debug.Stack()})
	}
	t.cfg.instrumenting.Add(-1)
	t.call.Work().Return()
}

// ends tells Config.Instrument, once, that the run is over; it does nothing if begins was not called. It is called at each possible end of
// a run, since several of them may happen: a result, an operation left to others, and a crash after either.
func (s *span) ends(e *Event) {
	if end := s.end; end != nil {
		s.end = nil
		s.calmEnd(end, e)
	}
}

// errCrashed is the error of a run, or of an attempt, broken off by the user's code: it panicked, or it ended
// its goroutine.
var errCrashed = errors.New("a function of the caller's has crashed")

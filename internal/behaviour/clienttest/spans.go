package clienttest

import (
	"context"
	"sync"

	"github.com/oncehttp/oncehttp"
)

// Span is one beginning reported to an Instrument.
type Span struct {
	Name         string // "operation" or "attempt"
	Parent       *Span  // by the context of the beginning; nil: there is none
	Begins, Ends oncehttp.Event
	Ended        int // the number of ends
	Attempt      oncehttp.Attempt
}

// Spans is an Instrument. It keeps the beginnings, in their order.
type Spans struct {
	mu  sync.Mutex
	All []*Span
}

type spanKey struct{}

// SpanIn returns the innermost span of a context; nil: there is none.
func SpanIn(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// Operation implements [oncehttp.Instrument]. It records a span, and returns the function that ends it.
func (s *Spans) Operation(ctx context.Context, begins oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	return s.begin(ctx, "operation", begins)
}

// Attempt implements [oncehttp.Instrument]. It records a span, and returns the function that ends it.
func (s *Spans) Attempt(ctx context.Context, begins oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	return s.begin(ctx, "attempt", begins)
}

// begin adds a span with this name, under the span in ctx if there is one. It returns a context with the new span, and the function that ends it. Ended counts
// the ends: one is right.
func (s *Spans) begin(ctx context.Context, name string, begins oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	span := &Span{Name: name, Parent: SpanIn(ctx), Begins: begins}
	span.Attempt, _ = oncehttp.AttemptFromContext(ctx)
	s.All = append(s.All, span)
	return context.WithValue(ctx, spanKey{}, span), func(ends oncehttp.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		span.Ends = ends
		span.Ended++
	}
}

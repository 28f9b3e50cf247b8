// Package otelonce makes OpenTelemetry spans of the operations of an oncehttp client:
//
//	inst, err := otelonce.New()
//	client, err := oncehttp.Open("payments.db", oncehttp.Config{Instrument: inst})
//
// Each run of an operation is an INTERNAL span named "oncehttp.operation", below the span of the caller's context. A run that goes on
// with an earlier call's operation is linked to the trace of that call, as the journal keeps it. Each attempt is a CLIENT span below, by the
// semantic conventions for HTTP, with http.request.resend_count over all process lives. Its url.full has no query, since that may hold
// credentials. No header is added to a request: a transport that propagates traces, such as otelhttp's, does that, and finds the span in
// the context of the request.
package otelonce

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncehttp/oncehttp"
)

// scope names this package to exporters.
const scope = "github.com/oncehttp/oncehttp/contrib/otelonce"

// Key says how spans name the key of an operation.
type Key int

// The ways to name a key. Keys that can be guessed, such as numbers of orders, can be found from their digest by trying.
const (
	KeyDigest Key = iota // oncehttp.key.digest: the first 16 hexadecimal digits of its SHA-256
	KeyNone              // not at all
	KeyPlain             // oncehttp.key: the key itself
)

// Option changes an Instrument.
type Option func(*Instrument)

// WithTracerProvider sets the provider of the tracer. Without it, or with nil: the global one.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(i *Instrument) { i.provider = p }
}

// WithAttemptSpans says whether attempts have spans. Without it: they have. False is right where Config.Transport makes spans itself; it then
// finds the number of earlier sends with oncehttp.AttemptFromContext.
func WithAttemptSpans(make bool) Option {
	return func(i *Instrument) { i.attempts = make }
}

// WithKey says how spans name the keys. Without it: KeyDigest.
func WithKey(k Key) Option {
	return func(i *Instrument) { i.key = k }
}

// Instrument is an oncehttp.Instrument that makes spans. Only New makes one. It is safe for concurrent use, by several clients, too.
type Instrument struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
	attempts bool
	key      Key
}

var _ oncehttp.Instrument = (*Instrument)(nil)

// New returns an Instrument. The error says which option is wrong.
func New(options ...Option) (*Instrument, error) {
	i := &Instrument{attempts: true}
	for _, option := range options {
		if option == nil {
			return nil, errors.New("otelonce: an Option is nil")
		}
		option(i)
	}
	if i.key < KeyDigest || i.key > KeyPlain {
		return nil, fmt.Errorf("otelonce: WithKey got %d; want KeyDigest, KeyNone or KeyPlain", i.key)
	}
	if i.provider == nil {
		i.provider = otel.GetTracerProvider()
	}
	i.tracer = i.provider.Tracer(scope)
	return i, nil
}

// Operation implements oncehttp.Instrument.
func (i *Instrument) Operation(ctx context.Context, begins oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	attributes := append(i.common(begins), attribute.Bool("oncehttp.resumed", begins.Resumed))
	if begins.Profile != "" {
		attributes = append(attributes, attribute.String("oncehttp.profile", begins.Profile))
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(attributes...)}
	if link := recorded(begins.Trace); begins.Resumed && link.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: link}))
	}
	ctx, span := i.tracer.Start(ctx, "oncehttp.operation", options...)
	return ctx, func(ends oncehttp.Event) {
		span.SetAttributes(attribute.Int("oncehttp.sends", ends.Sends), attribute.Int("oncehttp.attempts", ends.Attempt))
		if ends.Kind == oncehttp.EventFinished {
			span.SetAttributes(attribute.String("oncehttp.outcome", ends.Outcome.String()))
		}
		if ends.Err != nil {
			span.SetAttributes(attribute.String("error.type", verdict(ends.Err)))
			span.SetStatus(codes.Error, verdict(ends.Err))
		}
		span.End()
	}
}

// Attempt implements oncehttp.Instrument.
func (i *Instrument) Attempt(ctx context.Context, begins oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	if !i.attempts {
		return ctx, nil
	}
	attributes := append(i.common(begins), attribute.String("url.full", begins.Origin+begins.Path))
	if attempt, found := oncehttp.AttemptFromContext(ctx); found && attempt.SendsBefore > 0 {
		attributes = append(attributes, attribute.Int("http.request.resend_count", attempt.SendsBefore))
	}
	ctx, span := i.tracer.Start(ctx, begins.Method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return ctx, func(ends oncehttp.Event) {
		if ends.Status > 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", ends.Status))
		}
		switch {
		case ends.Err != nil:
			span.SetAttributes(attribute.String("error.type", "_OTHER"))
			span.SetStatus(codes.Error, "the attempt failed")
		case ends.Status >= 400:
			span.SetAttributes(attribute.String("error.type", strconv.Itoa(ends.Status)))
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// common returns the attributes that both kinds of spans have.
func (i *Instrument) common(e oncehttp.Event) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("http.request.method", e.Method)}
	if at, err := url.Parse(e.Origin); err == nil {
		all = append(all, attribute.String("server.address", at.Hostname()))
		if port, err := strconv.Atoi(at.Port()); err == nil {
			all = append(all, attribute.Int("server.port", port))
		}
	}
	switch i.key {
	case KeyDigest:
		sum := sha256.Sum256([]byte(e.Key))
		all = append(all, attribute.String("oncehttp.key.digest", hex.EncodeToString(sum[:8])))
	case KeyPlain:
		all = append(all, attribute.String("oncehttp.key", string(e.Key)))
	}
	return all
}

// recorded returns the span of a trace context as a record has it: a traceparent, and a tracestate after a semicolon.
func recorded(text string) trace.SpanContext {
	parent, state, _ := strings.Cut(text, ";")
	carrier := propagation.MapCarrier{"traceparent": parent, "tracestate": state}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// verdict returns the name of the answer that an error gives, of which there are few.
func verdict(err error) string {
	switch {
	case errors.Is(err, oncehttp.ErrNoEffect):
		return "no_effect"
	case errors.Is(err, oncehttp.ErrFinal):
		return "final"
	case errors.Is(err, oncehttp.ErrOutcomeUnknown):
		return "outcome_unknown"
	}
	return "_OTHER"
}

// Package otelonce makes OpenTelemetry spans and metrics of the operations of an oncehttp client:
//
//	inst, err := otelonce.New()
//	client, err := oncehttp.Open("payments.db", oncehttp.Config{Instrument: inst, Observe: inst.Observe})
//
// # Spans
//
// Each run of an operation is an INTERNAL span named "oncehttp.operation", below the span of the caller's context. A run that goes on
// with an earlier call's operation is linked to the trace of that call, as the journal keeps it. Each attempt is a CLIENT span below, by the
// semantic conventions for HTTP, with http.request.resend_count over all process lives. Its url.full has no query, since that may hold
// credentials. No header is added to a request: a transport that propagates traces, such as otelhttp's, does that, and finds the span in
// the context of the request.
//
// # Metrics
//
// docs/metrics.md lists the metrics with their units, attributes and buckets. Durations and sends come from Config.Instrument, counts of
// events from Config.Observe, and the state of a journal from [Instrument.Register]. Keys, accounts, paths and texts of errors are in no metric.
package otelonce

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
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
	return func(i *Instrument) { i.tracers = p }
}

// WithMeterProvider sets the provider of the meter. Without it, or with nil: the global one.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(i *Instrument) { i.meters = p }
}

// WithAttemptSpans says whether attempts have spans, and are in http.client.request.duration. Without it: they are. False is right where
// Config.Transport does both itself; it then finds the number of earlier sends with oncehttp.AttemptFromContext.
func WithAttemptSpans(make bool) Option {
	return func(i *Instrument) { i.attempts = make }
}

// WithKey says how spans name the keys. Without it: KeyDigest.
func WithKey(k Key) Option {
	return func(i *Instrument) { i.key = k }
}

// WithSpanNameFormatter sets the function that names spans. It gets the name by default ("oncehttp.operation", or an attempt's method)
// and the event of the begin: an EventBegun or an EventAttempt. Return few different names: no path with identifiers, and no key.
func WithSpanNameFormatter(name func(usual string, begins oncehttp.Event) string) Option {
	return func(i *Instrument) { i.name = name }
}

// WithMetricAttributesFn sets the function that returns more attributes of the metrics. It gets the event that is counted, or the
// event of the end of a run or an attempt. An attribute of its own name replaces one of this package. Each different value is a time series of
// its own: return no key, account or path. Series of counters begin with their first event then, else with zero in New.
func WithMetricAttributesFn(more func(oncehttp.Event) []attribute.KeyValue) Option {
	return func(i *Instrument) { i.more = more }
}

// Instrument is an oncehttp.Instrument that makes spans and metrics. Only New makes one. It is safe for concurrent use, by several clients, too.
type Instrument struct {
	tracers  trace.TracerProvider
	meters   metric.MeterProvider
	attempts bool
	key      Key
	name     func(string, oncehttp.Event) string
	more     func(oncehttp.Event) []attribute.KeyValue

	tracer    trace.Tracer
	meter     metric.Meter
	measured  instruments
	beginning *cache[beginning, shared]
}

var _ oncehttp.Instrument = (*Instrument)(nil)

// New returns an Instrument for the field of a client's Config. The error names a wrong option, or is the meter's.
func New(options ...Option) (*Instrument, error) {
	i := &Instrument{attempts: true, beginning: newCache(sharedOf)}
	for _, option := range options {
		if option == nil {
			return nil, errors.New("otelonce: an Option is nil")
		}
		option(i)
	}
	if i.key < KeyDigest || i.key > KeyPlain {
		return nil, fmt.Errorf("otelonce: WithKey got %d; want KeyDigest, KeyNone or KeyPlain", i.key)
	}
	if i.tracers == nil {
		i.tracers = otel.GetTracerProvider()
	}
	if i.meters == nil {
		i.meters = otel.GetMeterProvider()
	}
	i.tracer, i.meter = i.tracers.Tracer(scope), i.meters.Meter(scope)
	if err := i.measured.make(i.meter); err != nil {
		return nil, fmt.Errorf("otelonce: %w", err)
	}
	if i.more == nil {
		i.measured.begin(context.Background())
	}
	return i, nil
}

// Operation implements oncehttp.Instrument: it starts the span of a run (the work of one call or worker on an operation), and returns the function that ends
// and measures it.
func (i *Instrument) Operation(ctx context.Context, begins oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	ctx, span := i.startOperation(ctx, begins)
	return ctx, func(ends oncehttp.Event) {
		i.measureOperation(ctx, &ends)
		endOperation(span, &ends)
	}
}

// Attempt implements oncehttp.Instrument. It starts the span of one attempt, and returns the function to end and measure it; nil if attempts have no spans.
// Took.Wire and Sends of an event are totals of the run, so the attempt's own share is their difference.
func (i *Instrument) Attempt(ctx context.Context, begins oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	if !i.attempts {
		return ctx, nil
	}
	ctx, span := i.startAttempt(ctx, begins)
	wire, sends := begins.Took.Wire, begins.Sends // of the whole run, before this attempt
	return ctx, func(ends oncehttp.Event) {
		if took := ends.Took.Wire - wire; took > 0 || ends.Sends > sends { // else it ended before a request was made
			i.measureAttempt(ctx, &ends, took)
		}
		endAttempt(span, &ends)
	}
}

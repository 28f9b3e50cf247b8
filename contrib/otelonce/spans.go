package otelonce

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncehttp/oncehttp"
)

// beginning is the part of an event from which the options of a span are made that many spans share.
type beginning struct {
	attempt, resumed        bool
	method, origin, profile string
}

// shared is those options, and their attributes.
type shared struct {
	attributes []attribute.KeyValue
	options    []trace.SpanStartOption
}

// sharedOf returns the attributes and options that all spans with such a beginning share, for the cache (a new span has few different beginnings). A span is of
// one attempt, a request to another program, or of a run around several attempts, which is internal.
func sharedOf(b beginning) shared {
	method := knownMethod(b.method)
	attributes := append(addressOf(b.origin), attribute.String("http.request.method", method))
	if method != b.method {
		attributes = append(attributes, attribute.String("http.request.method_original", b.method))
	}
	kind := trace.SpanKindClient
	if !b.attempt {
		kind = trace.SpanKindInternal
		attributes = append(attributes, attribute.Bool("oncehttp.resumed", b.resumed))
		if b.profile != "" {
			attributes = append(attributes, attribute.String("oncehttp.profile", b.profile))
		}
	}
	return shared{attributes, []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(attributes...)}}
}

// startOperation starts the span of a run of an operation. A run that resumes one has a link to the trace of the call that began it, if the record names one.
func (i *Instrument) startOperation(ctx context.Context, begins oncehttp.Event) (context.Context, trace.Span) {
	options := i.beginning.of(beginning{resumed: begins.Resumed, method: begins.Method, origin: begins.Origin, profile: begins.Profile}).options
	if begins.Resumed && begins.Trace != "" {
		if link := recorded(begins.Trace); link.IsValid() {
			options = with(options, trace.SpanStartOption(trace.WithLinks(trace.Link{SpanContext: link})))
		}
	}
	return i.start(ctx, "oncehttp.operation", begins, options)
}

// startAttempt starts the span of one attempt, named by its method, or "HTTP" if the conventions do not know that. A resend has the number of sends before it.
func (i *Instrument) startAttempt(ctx context.Context, begins oncehttp.Event) (context.Context, trace.Span) {
	common := i.beginning.of(beginning{attempt: true, method: begins.Method, origin: begins.Origin})
	all := append(make([]attribute.KeyValue, 0, len(common.attributes)+2), common.attributes...)
	all = append(all, attribute.String("url.full", begins.Origin+begins.Path))
	if attempt, found := oncehttp.AttemptFromContext(ctx); found && attempt.SendsBefore > 0 {
		all = append(all, attribute.Int("http.request.resend_count", attempt.SendsBefore))
	}
	name := begins.Method
	if knownMethod(name) != name {
		name = "HTTP"
	}
	return i.start(ctx, name, begins, []trace.SpanStartOption{common.options[0], trace.WithAttributes(all...)}) // options[0] is the kind of the span
}

// start starts a span. Only if the span is recorded, it gets the operation's key or a digest of the key: else making the digest would be lost work.
func (i *Instrument) start(ctx context.Context, name string, begins oncehttp.Event, options []trace.SpanStartOption) (context.Context, trace.Span) {
	if i.name != nil {
		name = i.name(name, begins)
	}
	ctx, span := i.tracer.Start(ctx, name, options...)
	if span.IsRecording() {
		switch i.key {
		case KeyDigest:
			sum := sha256.Sum256([]byte(begins.Key))
			span.SetAttributes(attribute.String("oncehttp.key.digest", hex.EncodeToString(sum[:8])))
		case KeyPlain:
			span.SetAttributes(attribute.String("oncehttp.key", string(begins.Key)))
		}
	}
	return ctx, span
}

// endOperation sets the attributes of a run's result, and ends its span, as failed if the run had an error. A span that is not recorded gets no attributes.
func endOperation(span trace.Span, ends *oncehttp.Event) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	attributes := append(make([]attribute.KeyValue, 0, 10),
		attribute.Int("oncehttp.sends", ends.Sends), attribute.Int("oncehttp.attempts", ends.Attempt),
		attribute.Float64("oncehttp.journal.duration", ends.Took.Journal.Seconds()),
		attribute.Float64("oncehttp.wire.duration", ends.Took.Wire.Seconds()),
		attribute.Float64("oncehttp.waiting.duration", ends.Took.Waiting.Seconds()),
		attribute.String("oncehttp.outcome", outcome(ends)),
	)
	if ends.Source != 0 {
		attributes = append(attributes, attribute.String("oncehttp.source", ends.Source.String()))
	}
	if ends.Hold != "" {
		attributes = append(attributes, attribute.String("oncehttp.hold_reason", string(ends.Hold)))
	}
	if ends.Rule > 0 { // the number of the documented rule that decided; 0: none to name
		attributes = append(attributes, attribute.Int("oncehttp.rule", ends.Rule))
	}
	if ends.Err != nil {
		attributes = append(attributes, attribute.String("error.type", verdict(ends.Err)))
		span.SetStatus(codes.Error, verdict(ends.Err))
	}
	span.SetAttributes(attributes...)
}

// endAttempt sets the attributes of an attempt's result, and ends its span. The text of an error is not used.
func endAttempt(span trace.Span, ends *oncehttp.Event) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	if ends.Status > 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", ends.Status))
	}
	if kind := errorType(ends.Status, ends.Err != nil); kind != "" {
		span.SetAttributes(attribute.String("error.type", kind))
		text := ""
		if ends.Err != nil {
			text = "the attempt failed"
		}
		span.SetStatus(codes.Error, text)
	}
}

// addressOf returns the attributes of an origin: the address of the server and its port; nil for an origin that is no URL.
func addressOf(origin string) []attribute.KeyValue {
	at, err := url.Parse(origin)
	if err != nil {
		return nil
	}
	all := []attribute.KeyValue{attribute.String("server.address", at.Hostname())}
	if port, err := strconv.Atoi(at.Port()); err == nil {
		all = append(all, attribute.Int("server.port", port))
	}
	return all
}

// knownMethod returns the method if the semantic conventions of OpenTelemetry know it, else "_OTHER".
func knownMethod(method string) string {
	switch method {
	case http.MethodConnect, http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPatch, http.MethodPost, http.MethodPut, http.MethodTrace, "QUERY":
		return method
	}
	return "_OTHER"
}

// outcome returns the name of an operation's outcome at the end of a run, as an attribute; "left" if the run gave the operation back without one, for a later
// run (EventLeft).
func outcome(ends *oncehttp.Event) string {
	if ends.Kind == oncehttp.EventLeft {
		return "left"
	}
	return ends.Outcome.String()
}

// errorType returns the attribute error.type of an attempt; empty if it did not fail. An answer below 400 whose attempt failed counts as failed, too.
func errorType(status int, failed bool) string {
	switch {
	case failed:
		return "_OTHER"
	case status >= 400:
		return strconv.Itoa(status)
	}
	return ""
}

// recorded returns the span that a record names in its Trace: a traceparent and, after a semicolon, a tracestate. It is not valid if the text is
// none.
func recorded(text string) trace.SpanContext {
	parent, state, _ := strings.Cut(text, ";")
	carrier := propagation.MapCarrier{"traceparent": parent, "tracestate": state}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// verdict returns a name for the result that an error stands for, of which there are few: the text of the error is not used.
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

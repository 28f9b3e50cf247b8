package otelonce

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// spansOf returns the spans that a function makes, in the order of their ends.
func spansOf(t *testing.T, do func(*Instrument), options ...Option) tracetest.SpanStubs {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	inst, err := New(append([]Option{WithTracerProvider(sdk.NewTracerProvider(sdk.WithSyncer(out)))}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	do(inst)
	return out.GetSpans()
}

// TestSpanAttributes: all attributes of a run that is held, of one given back, and of an attempt with an unknown method.
func TestSpanAttributes(t *testing.T) {
	t.Parallel()
	spans := spansOf(t, func(inst *Instrument) {
		e := oncehttp.Event{Kind: oncehttp.EventBegun, Key: "k", Method: "POST", Origin: "https://h:1", Profile: "stripe", Resumed: true, Trace: "not one"}
		_, end := inst.Operation(t.Context(), e)
		e.Kind, e.Hold, e.Rule, e.Source, e.Attempt, e.Sends, e.Outcome = oncehttp.EventFinished, persist.HoldMismatch, 7, oncehttp.SourceReplay, 2, 3, oncehttp.OutcomeMismatch
		e.Took.Whole, e.Took.Journal, e.Took.Wire, e.Took.Waiting = 10*time.Second, time.Second, 2*time.Second, 1500*time.Millisecond
		e.Err = oncehttp.ErrOutcomeUnknown
		end(e)
		_, end = inst.Operation(t.Context(), oncehttp.Event{Kind: oncehttp.EventBegun})
		end(oncehttp.Event{Kind: oncehttp.EventLeft})
		_, end = inst.Attempt(t.Context(), oncehttp.Event{Kind: oncehttp.EventAttempt, Method: "BREW", Origin: "https://h", Path: "/pot"})
		end(oncehttp.Event{Kind: oncehttp.EventAnswered, Status: 418})
	}, WithKey(KeyNone))
	want := []string{
		"oncehttp.operation error.type=outcome_unknown,http.request.method=POST,oncehttp.attempts=2,oncehttp.hold_reason=mismatch,oncehttp.journal.duration=1,oncehttp.outcome=mismatch,oncehttp.profile=stripe," +
			"oncehttp.resumed=true,oncehttp.rule=7,oncehttp.sends=3,oncehttp.source=server replay,oncehttp.waiting.duration=1.5,oncehttp.wire.duration=2,server.address=h,server.port=1",
		"oncehttp.operation http.request.method=_OTHER,http.request.method_original=,oncehttp.attempts=0,oncehttp.journal.duration=0,oncehttp.outcome=left,oncehttp.resumed=false,oncehttp.sends=0," +
			"oncehttp.waiting.duration=0,oncehttp.wire.duration=0,server.address=",
		"HTTP error.type=418,http.request.method=_OTHER,http.request.method_original=BREW,http.response.status_code=418,server.address=h,url.full=https://h/pot",
	}
	var got []string
	for _, s := range spans {
		set := attribute.NewSet(s.Attributes...)
		got = append(got, s.Name+" "+set.Encoded(attribute.DefaultEncoder()))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSpanNames: a formatter gets the usual name and the event of the begin.
func TestSpanNames(t *testing.T) {
	t.Parallel()
	spans := spansOf(t, func(inst *Instrument) { playOne(t.Context(), inst, "k") },
		WithSpanNameFormatter(func(usual string, e oncehttp.Event) string { return fmt.Sprint(usual, " ", e.Kind, " ", e.Profile) }))
	if len(spans) != 2 || spans[0].Name != "POST attempt stripe" || spans[1].Name != "oncehttp.operation begun stripe" {
		t.Errorf("%+v", spans)
	}
}

package otelonce

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

const (
	secret = "sk_live_1"
	parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

// server answers with its statuses, one after the other; 0 is a lost answer. It notes the span of each request.
type server struct {
	statuses []int
	spans    []trace.SpanContext
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.spans = append(s.spans, trace.SpanContextFromContext(req.Context()))
	status := s.statuses[0]
	s.statuses = s.statuses[1:]
	if status == 0 {
		return nil, errors.New("connection reset by " + secret)
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")),
		ContentLength: 2, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
	}, nil
}

// lives sends a payment whose answers are a 503 and a lost one, then resumes it, and returns the spans, in the order of their ends.
func lives(t *testing.T, options ...Option) (tracetest.SpanStubs, *server) {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(out))
	inst, err := New(append([]Option{WithTracerProvider(provider)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{statuses: []int{503, 0, 201}}
	cfg := oncehttp.Config{Journal: memory.New(), Transport: s, Instrument: inst}
	cfg.Retry.MaxAttempts, cfg.Retry.MinDelay, cfg.Retry.MaxDelay, cfg.Retry.MaxPause = 2, time.Millisecond, time.Millisecond, time.Millisecond
	c, err := oncehttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	req, _ := http.NewRequest(http.MethodPost, "https://api.example.com/payments?note="+secret, strings.NewReader(`{"card":"`+secret+`"}`))
	req.Header.Set("Traceparent", parent)
	if _, err := c.DoKey(req, "order-1"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Fatal(err)
	}
	for tries := 0; ; tries++ {
		for _, err := range c.Resume(t.Context()) {
			if err != nil {
				t.Log(err)
			}
		}
		if rec, err := c.Lookup(t.Context(), "order-1"); err != nil || tries > 1000 {
			t.Fatal(err, tries)
		} else if rec.State == persist.StateConfirmed {
			break
		}
		time.Sleep(time.Millisecond) // a poll with a bound
	}
	return out.GetSpans(), s
}

// line returns a span as a test compares it.
func line(s *tracetest.SpanStub) string {
	var of []string
	for _, key := range []attribute.Key{"oncehttp.outcome", "error.type", "http.response.status_code", "http.request.resend_count", "url.full", "server.address", "server.port", "oncehttp.key.digest", "oncehttp.key"} {
		for _, a := range s.Attributes {
			if a.Key == key {
				of = append(of, fmt.Sprintf("%s=%v", key, a.Value.AsInterface()))
			}
		}
	}
	return fmt.Sprintf("%s %s %v", s.SpanKind, s.Name, of)
}

// TestSpans: the spans of two lives of an operation, their parents, the link, and no secret.
func TestSpans(t *testing.T) {
	spans, s := lives(t)
	const to = "server.address=api.example.com server.port=443 oncehttp.key.digest=DIGEST]"
	const attempt = "url.full=https://api.example.com:443/payments " + to
	want := []string{
		"client POST [error.type=503 http.response.status_code=503 " + attempt,
		"client POST [error.type=_OTHER http.request.resend_count=1 " + attempt,
		"internal oncehttp.operation [oncehttp.outcome=unknown error.type=outcome_unknown " + to,
		"client POST [http.response.status_code=201 http.request.resend_count=2 " + attempt,
		"internal oncehttp.operation [oncehttp.outcome=confirmed " + to,
	}
	digest := "a"
	for _, a := range spans[0].Attributes {
		if a.Key == "oncehttp.key.digest" {
			digest = a.Value.AsString()
		}
	}
	if len(spans) != len(want) || len(digest) != 16 {
		t.Fatalf("%d spans, digest %q", len(spans), digest)
	}
	for n := range spans {
		if got := line(&spans[n]); got != strings.ReplaceAll(want[n], "DIGEST", digest) {
			t.Errorf("span %d is\n%s, want\n%s", n, got, want[n])
		}
		if strings.Contains(fmt.Sprintf("%+v", spans[n]), secret) {
			t.Errorf("span %d has the secret", n)
		}
	}
	for n, of := range map[int]int{0: 2, 1: 2, 3: 4} {
		if spans[n].Parent.SpanID() != spans[of].SpanContext.SpanID() {
			t.Errorf("span %d is not below span %d", n, of)
		}
	}
	for n, at := range []int{0, 1, 3} {
		if s.spans[n].SpanID() != spans[at].SpanContext.SpanID() {
			t.Errorf("request %d is not sent within span %d", n, at)
		}
	}
	if len(spans[2].Links) != 0 || len(spans[4].Links) != 1 || spans[4].Links[0].SpanContext.TraceID().String() != parent[3:35] {
		t.Errorf("links %v and %v, want one from the resumed run to %s", spans[2].Links, spans[4].Links, parent)
	}
	if spans[2].Status.Code != codes.Error || spans[4].Status.Code != codes.Unset {
		t.Errorf("statuses %v and %v", spans[2].Status, spans[4].Status)
	}
}

// TestOptions: attempts without spans, keys in plain and not at all, and options that are wrong.
func TestOptions(t *testing.T) {
	spans, s := lives(t, WithAttemptSpans(false), WithKey(KeyPlain))
	if len(spans) != 2 || !strings.HasSuffix(line(&spans[0]), " oncehttp.key=order-1]") || s.spans[0].SpanID() != spans[0].SpanContext.SpanID() {
		t.Errorf("%d spans, %s, sent within %v", len(spans), line(&spans[0]), s.spans[0])
	}
	spans, _ = lives(t, WithKey(KeyNone))
	if got := line(&spans[2]); strings.Contains(got, "oncehttp.key") {
		t.Error(got)
	}
	for _, wrong := range []Option{nil, WithKey(7), WithKey(-1)} {
		if _, err := New(wrong); err == nil {
			t.Error("a wrong option is taken")
		}
	}
}

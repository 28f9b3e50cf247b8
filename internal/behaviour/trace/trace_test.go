// Package trace tests that the trace context of a call goes with the sends of that call alone, and that the operation keeps a link
// to it.
package trace

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// carried are headers of all kinds that carry trace context.
func carried() http.Header {
	return http.Header{
		"Traceparent": {parent}, "Tracestate": {"vendor=1"}, "Baggage": {"user=alice"}, "B3": {"0"}, "X-B3-Traceid": {"1"}, "X-B3-Sampled": {"1"},
		"Sentry-Trace": {"x"}, "X-Datadog-Trace-Id": {"1"}, "X-Datadog-Parent-Id": {"2"}, "X-Datadog-Tags": {"a=b"},
	}
}

// server answers with its statuses, the last one again and again; 0 is a lost answer. It notes the headers of each request.
type server struct {
	mu       sync.Mutex
	statuses []int
	seen     []http.Header
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.statuses[min(len(s.seen), len(s.statuses)-1)]
	s.seen = append(s.seen, req.Header.Clone())
	if status == 0 {
		return nil, errors.New("connection reset")
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
	}, nil
}

// request is a payment whose caller is traced.
func request(t *testing.T, trace http.Header) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "https://api.example.com/payments", strings.NewReader(`{"amount":1}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Plain", "kept")
	for name, lines := range trace {
		req.Header[name] = lines
	}
	return req
}

// checkSent checks that the n-th send has this trace context, and what else the request had.
func (s *server) checkSent(t *testing.T, n int, want http.Header) {
	t.Helper()
	if n >= len(s.seen) {
		t.Fatalf("%d sends, want more than %d", len(s.seen), n)
	}
	for name := range carried() {
		if got := strings.Join(s.seen[n][name], ","); got != strings.Join(want[name], ",") {
			t.Errorf("send %d has %s: %q, want %q", n, name, got, want[name])
		}
	}
	if s.seen[n].Get("X-Plain") != "kept" {
		t.Errorf("send %d has lost a header", n)
	}
}

// TestCallsOwnSends: each attempt of a Do has the trace context of its caller, and those of a later Resume have none.
func TestCallsOwnSends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{statuses: []int{0, 503, 0, 0, 201}}
		c, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: s, Retry: oncehttp.Policy{MaxAttempts: 4}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.DoKey(request(t, carried()), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatalf("Do: %v", err)
		}
		for n := range 4 {
			s.checkSent(t, n, carried())
		}
		time.Sleep(48 * time.Hour / 4)
		for _, err := range c.Resume(t.Context()) {
			if err != nil {
				t.Error(err)
			}
		}
		s.checkSent(t, 4, nil)
	})
}

// TestLaterCall: a Do that goes on with an operation sends its own caller's trace context, and not the first one's. The request is
// the same all the same.
func TestLaterCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{statuses: []int{0, 201}}
		traced := profile.Draft07()
		traced.Name, traced.Fingerprint = "traced", []string{"Baggage", "X-Plain"}
		c, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: s, Profile: traced, Retry: oncehttp.Policy{MaxAttempts: 1}, SecretHeaders: []string{"Baggage"}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.DoKey(request(t, carried()), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatalf("Do: %v", err)
		}
		other := http.Header{"Traceparent": {strings.Replace(parent, "4b", "5b", 1)}, "Baggage": {"user=bob"}}
		if _, err := c.DoKey(request(t, other), "k"); err != nil {
			t.Fatal(err)
		}
		s.checkSent(t, 0, carried())
		s.checkSent(t, 1, other)
		if rec, err := c.Lookup(t.Context(), "k"); err != nil || rec.Trace != parent+";vendor=1" {
			t.Errorf("the link is %q, %v; want that to the first caller", rec.Trace, err)
		}
	})
}

// TestRecordedAsALink: of the headers nothing is kept but the link, also where the operation is sent by another process.
func TestRecordedAsALink(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testrun.Dir(t), "journal.db")
	c, err := oncehttp.Open(path, oncehttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Enqueue(request(t, carried()), "k"); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s := &server{statuses: []int{201}}
	if c, err = oncehttp.Open(path, oncehttp.Config{Transport: s}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rec, err := c.Lookup(t.Context(), "k")
	if err != nil || rec.Trace != parent+";vendor=1" || len(rec.Omitted) > 0 {
		t.Errorf("trace %q, omitted %q, %v", rec.Trace, rec.Omitted, err)
	}
	for name := range carried() {
		if lines, kept := rec.Header[name]; kept {
			t.Errorf("the record has %s: %q", name, lines)
		}
	}
	for res, err := range c.Resume(t.Context()) {
		if err != nil {
			t.Errorf("%v: %v", res.Key, err)
		}
	}
	s.checkSent(t, 0, nil)
}

package oncehttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// reply is what the wire does with one send.
type reply struct {
	status  int
	header  string // "Name: value" lines
	body    string
	cut     bool          // the body breaks off after what is there
	empty   bool          // a 4xx has no body; else one without a body says "no"
	err     error         // instead of an answer
	refused bool          // no connection is had: provably not sent
	silent  bool          // no trace events, as a transport of somebody's own
	delay   time.Duration // before the answer
}

// sent is what the wire saw of one send.
type sent struct {
	method, url, key, body string
	header                 http.Header
	at                     time.Time
}

// wire is a scripted transport. After the script it gives the last reply.
type wire struct {
	mu      sync.Mutex
	replies []reply
	sends   []sent
	before  func(n int, req *http.Request) // runs before the n-th send
}

var errLost = errors.New("connection reset")

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	w.mu.Lock()
	n := len(w.sends)
	r := w.replies[min(n, len(w.replies)-1)]
	w.sends = append(w.sends, sent{req.Method, req.URL.String(), keyHeader(req.Header), string(body), req.Header.Clone(), time.Now()})
	w.mu.Unlock()
	if w.before != nil {
		w.before(n, req)
	}
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && !r.silent {
		trace.GetConn(req.URL.Host)
		if !r.refused {
			trace.GotConn(httptrace.GotConnInfo{})
			if trace.WroteHeaders != nil {
				trace.WroteHeaders()
			}
		}
	}
	if r.delay > 0 {
		select {
		case <-time.After(r.delay):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	switch {
	case r.refused:
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	case r.err != nil:
		return nil, r.err
	}
	resp := &http.Response{
		StatusCode: r.status, Status: http.StatusText(r.status), Header: http.Header{}, Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}
	for line := range strings.SplitSeq(r.header, "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			resp.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	if r.body == "" && r.status >= 400 && r.status < 500 && !r.empty {
		r.body = "no"
	}
	var reader io.Reader = strings.NewReader(r.body)
	if r.cut {
		reader = io.MultiReader(reader, failing{io.ErrUnexpectedEOF})
	}
	resp.Body = io.NopCloser(reader)
	return resp, nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func keyHeader(h http.Header) string {
	for name, values := range h {
		if strings.EqualFold(name, "Idempotency-Key") {
			return strings.Join(values, ",")
		}
	}
	return ""
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sends)
}

// all is what was sent so far.
func (w *wire) all() []sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sends)
}

// keys are the distinct keys that were sent.
func (w *wire) keys() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := map[string]int{}
	for _, s := range w.sends {
		keys[s.key]++
	}
	return keys
}

// newClient is a client on a journal of its own, in memory.
func newClient(t *testing.T, rt http.RoundTripper, change func(*oncehttp.Config)) (*oncehttp.Client, persist.Journal) {
	t.Helper()
	cfg := oncehttp.Config{Journal: memory.New(), Transport: rt}
	if change != nil {
		change(&cfg)
	}
	if (cfg.Authorize != nil || onServer(cfg.Journal)) && cfg.Origins == nil && cfg.OriginAllowed == nil {
		cfg.Origins = origins()
	}
	c, err := oncehttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, cfg.Journal
}

// onServer reports whether a journal is one for which New wants Origins.
func onServer(j persist.Journal) bool {
	_, shared := persist.As[persist.Claimer](j)
	_, alone := persist.As[persist.InProcess](j)
	return shared && !alone
}

// origins are those of the tests' servers, for clients that must say where they send.
func origins() []string {
	return []string{
		"https://api.example.com", "https://*.example.com", "https://api.example.com:8443", "http://api.example.com", "http://api.test", "https://api.test",
		"http://mock.test", "http://127.0.0.1:*", "https://127.0.0.1:*", "https://one.example", "https://held.example",
	}
}

func post(t *testing.T, body string) *http.Request {
	t.Helper()
	return request(t, "POST", "https://api.example.com/payments?via=test", body)
}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

// bubble runs f in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func lookup(t *testing.T, c *oncehttp.Client, key oncehttp.Key) persist.Record {
	t.Helper()
	rec, err := c.Lookup(context.Background(), key)
	if err != nil {
		t.Fatalf("Lookup(%q): %v", key, err)
	}
	return rec
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the body: %v", err)
	}
	resp.Body.Close()
	return string(b)
}

// exactlyOne checks that err is an *oncehttp.Error that matches exactly one verdict, and that its effect follows from it.
func exactlyOne(t *testing.T, err error) {
	t.Helper()
	var e *oncehttp.Error
	if !errors.As(err, &e) {
		t.Errorf("%v (%T) is no *oncehttp.Error", err, err)
		return
	}
	verdicts := 0
	for _, verdict := range []error{oncehttp.ErrNoEffect, oncehttp.ErrFinal, oncehttp.ErrOutcomeUnknown} {
		if errors.Is(err, verdict) {
			verdicts++
		}
	}
	if verdicts != 1 {
		t.Errorf("%v matches %d verdicts, want exactly one", err, verdicts)
	}
	unknown, none := errors.Is(err, oncehttp.ErrOutcomeUnknown), errors.Is(err, oncehttp.ErrNoEffect)
	if effect := e.Effect(); unknown && effect != oncehttp.EffectUnknown || none && effect != oncehttp.EffectAbsent {
		t.Errorf("%v says of the effect: %q", err, effect)
	}
}

// byHost sends each request by the wire of its host.
type byHost map[string]http.RoundTripper

func (b byHost) RoundTrip(req *http.Request) (*http.Response, error) {
	return b[req.URL.Hostname()].RoundTrip(req)
}

// holds checks whether a file holds a text.
func holds(t *testing.T, path, text string, want bool) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) == 0 || bytes.Contains(raw, []byte(text)) != want {
		t.Errorf("%s (%d bytes, %v) holds %q: %v, want %v", path, len(raw), err, text, !want, want)
	}
}

// handedOver reports to the client's trace that a connection was had, as net/http's transport does.
func handedOver(req *http.Request) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
		trace.GetConn(req.URL.Host)
		trace.GotConn(httptrace.GotConnInfo{})
	}
}

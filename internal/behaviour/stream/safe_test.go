package stream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// checkSends compares the number of sends, and looks whether each had the body.
func checkSends(t *testing.T, name string, w *wiretest.Wire, sends int, body string) {
	t.Helper()
	if w.Count() != sends {
		t.Errorf("%s: %d sends, want %d", name, w.Count(), sends)
	}
	for _, s := range w.All() {
		if s.Body != body {
			t.Errorf("%s: a send had %q", name, s.Body)
		}
	}
}

// TestSafeAttempts: through Do, a method that is safe or idempotent by definition, and is no operation, is sent again by the Policy. After a
// lost answer the error of one that may have had an effect says so. Nothing is journaled.
func TestSafeAttempts(t *testing.T) {
	t.Parallel()
	lost, down := wiretest.Reply{Err: wiretest.ErrLost}, wiretest.Reply{Refused: true}
	for name, r := range map[string]struct {
		replies []wiretest.Reply
		sends   int
		status  int // zero: an error
	}{
		"never connected":   {[]wiretest.Reply{down, down, {Status: 204}}, 3, 204},
		"refused for ever":  {[]wiretest.Reply{down}, 6, 0},
		"lost once":         {[]wiretest.Reply{lost, {Status: 204}}, 2, 204},
		"lost for ever":     {[]wiretest.Reply{lost}, 6, 0},
		"no trace":          {[]wiretest.Reply{{Err: wiretest.ErrLost, Silent: true}}, 6, 0},
		"lost, then down":   {[]wiretest.Reply{lost, down}, 6, 0},
		"429, 502, 504":     {[]wiretest.Reply{{Status: 429}, {Status: 502}, {Status: 504}, {Status: 200}}, 4, 200},
		"503 for ever":      {[]wiretest.Reply{{Status: 503}}, 6, 503},
		"500":               {[]wiretest.Reply{{Status: 500}}, 1, 500},
		"408":               {[]wiretest.Reply{{Status: 408}}, 1, 408},
		"409":               {[]wiretest.Reply{{Status: 409}}, 1, 409},
		"lost, then gone":   {[]wiretest.Reply{lost, {Status: 404}}, 2, 404},
		"a long wait asked": {[]wiretest.Reply{{Status: 503, Header: "Retry-After: 61"}}, 1, 503},
	} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"} {
			synctest.Test(t, func(t *testing.T) {
				w, j := &wiretest.Wire{Replies: r.replies}, memory.New()
				c, _ := clienttest.New(t, w, clienttest.On(j))
				resp, err := c.Do(clienttest.Request(t, method, "https://api.example.com/", "bytes"))
				checkSends(t, method+" "+name, w, r.sends, "bytes")
				if err == nil {
					resp.Body.Close()
				}
				if (err == nil) != (r.status != 0) || err == nil && resp.StatusCode != r.status {
					t.Errorf("%s %s: %v, want %d", method, name, err, r.status)
				}
				effect := oncehttp.ErrNoEffect
				if method == "PUT" || method == "DELETE" || method == "TRACE" {
					effect = oncehttp.ErrOutcomeUnknown
				}
				if name == "refused for ever" {
					effect = oncehttp.ErrNotSent
				}
				if err != nil && !errors.Is(err, effect) {
					t.Errorf("%s %s: %v, want %v", method, name, err, effect)
				}
				if err != nil {
					clienttest.ExactlyOne(t, err)
				}
				for rec := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
					t.Errorf("%s %s: the journal has %v", method, name, rec.State)
				}
			})
		}
	}
}

// TestSafeAttemptsBound: SafeAttempts is MaxAttempts by default, and counts by itself where it is set; with one nothing is sent again. Other
// methods are sent again only if nothing of them left.
func TestSafeAttemptsBound(t *testing.T) {
	t.Parallel()
	lost, down := wiretest.Reply{Err: wiretest.ErrLost}, wiretest.Reply{Refused: true}
	for _, r := range []struct {
		method string
		reply  wiretest.Reply
		policy oncehttp.Policy
		sends  int
	}{
		{"PUT", lost, oncehttp.Policy{MaxAttempts: 3}, 3},
		{"PUT", lost, oncehttp.Policy{MaxAttempts: 3, SafeAttempts: 5}, 5},
		{"PUT", lost, oncehttp.Policy{SafeAttempts: 1}, 1},
		{"GET", lost, oncehttp.Policy{SafeAttempts: 1}, 1},
		{"GET", lost, oncehttp.Policy{MaxAttempts: 1, SafeAttempts: 2}, 2},
		{"DELETE", wiretest.Reply{Status: 503}, oncehttp.Policy{SafeAttempts: 1}, 1},
		{"DELETE", down, oncehttp.Policy{SafeAttempts: 1}, 1},
		{"PUT", wiretest.Reply{Status: 503, Header: "Retry-After: 60"}, oncehttp.Policy{MaxElapsed: 150 * time.Second}, 3},
		{"PATCH", lost, oncehttp.Policy{}, 1},
		{"PATCH", wiretest.Reply{Status: 503}, oncehttp.Policy{SafeAttempts: 5}, 1},
		{"PATCH", down, oncehttp.Policy{MaxAttempts: 3, SafeAttempts: 1}, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry, cfg.Methods = r.policy, []string{"POST"} })
			if resp, err := c.Do(clienttest.Request(t, r.method, "https://api.example.com/", "bytes")); err == nil {
				resp.Body.Close()
			}
			checkSends(t, r.method, w, r.sends, "bytes")
		})
	}
}

// TestSafeAttemptsWait: the waits are those that the server asks for.
func TestSafeAttemptsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 40"}, {Status: 429, Header: "Retry-After: 50"}, {Status: 200}}}
		c, _ := clienttest.New(t, w, nil)
		resp, err := c.Do(clienttest.Request(t, "PUT", "https://api.example.com/", "bytes"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		sends := w.All()
		if first, second := sends[1].At.Sub(sends[0].At), sends[2].At.Sub(sends[1].At); first < 40*time.Second || first > 70*time.Second || second < 50*time.Second {
			t.Errorf("waited %v and %v, want 40 s and 50 s at least", first, second)
		}
	})
}

// TestUnreadableBodyOnce: what cannot be read again is sent once.
func TestUnreadableBodyOnce(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}}}
	c, _ := clienttest.New(t, w, nil)
	req := clienttest.Request(t, "PUT", "https://api.example.com/", "")
	req.Body, req.GetBody, req.ContentLength = io.NopCloser(strings.NewReader("bytes")), nil, -1
	resp, err := c.Do(req)
	if err != nil || resp.StatusCode != 503 {
		t.Fatalf("%v, want the answer", err)
	}
	resp.Body.Close()
	checkSends(t, "a stream", w, 1, "bytes")
}

// TestSafeAttemptsNotBeneathHTTP: Transport and StandardClient are net/http here, which sends once.
func TestSafeAttemptsNotBeneathHTTP(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		for _, reply := range []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 503}, {Refused: true}} {
			w := &wiretest.Wire{Replies: []wiretest.Reply{reply}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.SafeAttempts = 5 })
			if resp, err := c.StandardClient().Do(clienttest.Request(t, method, "https://api.example.com/", "bytes")); err == nil {
				resp.Body.Close()
			}
			checkSends(t, method, w, 1, "bytes")
		}
	}
}

// TestSafeWaitCutShort: the end of the caller's context, or a Close, ends a wait, and the last answer is the caller's, whole.
func TestSafeWaitCutShort(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 40", Body: "later"}}}
			c, _ := clienttest.New(t, w, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start, end := time.Now(), cancel
			if closes {
				end = func() { _ = c.Close() }
			}
			time.AfterFunc(10*time.Second, end)
			resp, err := c.Do(clienttest.Request(t, "PUT", "https://api.example.com/", "bytes").WithContext(ctx))
			if err != nil || resp.StatusCode != 503 || time.Since(start) != 10*time.Second {
				t.Fatalf("closes %v: %v after %v, want the 503 after 10 s", closes, err, time.Since(start))
			}
			if body := clienttest.Read(t, resp); body != "later" {
				t.Errorf("closes %v: %q", closes, body)
			}
			checkSends(t, "a wait cut short", w, 1, "bytes")
		})
	}
}

// TestSafeAttemptsOnSockets: over a real connection that is cut, then a 503, then an answer that breaks off: that one is the caller's, since its
// head was handed on.
func TestSafeAttemptsOnSockets(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		var mu sync.Mutex
		sends := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			if sends++; string(body) != "bytes" {
				t.Errorf("%s: send %d had %q", method, sends, body)
			}
			switch sends {
			case 1:
				panic(http.ErrAbortHandler)
			case 2:
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				w.Header().Set("Content-Length", "10")
				_, _ = io.WriteString(w, "half")
			}
		}))
		c, _ := clienttest.New(t, wiretest.Transport(t), func(cfg *oncehttp.Config) {
			cfg.Retry = oncehttp.Policy{MinDelay: time.Millisecond, MaxDelay: time.Millisecond}
		})
		resp, err := c.Do(clienttest.Request(t, method, server.URL, "bytes"))
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %q, %v; want half an answer", method, body, err)
		}
		resp.Body.Close()
		server.Close()
		if sends != 3 {
			t.Errorf("%s: %d sends, want 3", method, sends)
		}
	}
}

// TestSafeAttemptsCloseAnswers: an answer after which the request is sent again is closed.
func TestSafeAttemptsCloseAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.OpenBodies{Wire: wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Body: "later"}, {Status: 429, Body: "later"}, {Status: 200}}}}
		c, _ := clienttest.New(t, w, nil)
		resp, err := c.Do(clienttest.Request(t, "PUT", "https://api.example.com/", "bytes"))
		if err != nil {
			t.Fatal(err)
		}
		if open := w.Open.Load(); open != 1 {
			t.Errorf("%d answers are open, want that of the caller", open)
		}
		resp.Body.Close()
	})
}

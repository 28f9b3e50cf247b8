package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
)

// TestCallersRequest: on every path out of every call
// the caller's body is closed exactly once, and its request is as it was.
func TestCallersRequest(t *testing.T) {
	t.Parallel()
	do := func(c *oncehttp.Client, req *http.Request) error {
		_, err := c.DoKey(req, "k")
		return err
	}
	keyless := func(c *oncehttp.Client, req *http.Request) error {
		_, err := c.Do(req)
		return err
	}
	type change func(*oncehttp.Config, *http.Request)
	none := func(*oncehttp.Config, *http.Request) {}
	rows := []struct {
		name   string
		change change
		call   func(*oncehttp.Client, *http.Request) error
		want   error
	}{
		{"confirmed at the third attempt", none, do, nil},
		{"as a RoundTripper", none, func(c *oncehttp.Client, req *http.Request) error {
			_, err := c.Transport().RoundTrip(req)
			return err
		}, nil},
		{"Authorize", func(cfg *oncehttp.Config, _ *http.Request) {
			cfg.Authorize = func(req *http.Request) error { req.Header.Set("Authorization", "x"); return nil }
		}, do, nil},
		{"Authorize refuses", func(cfg *oncehttp.Config, _ *http.Request) {
			cfg.Authorize = func(*http.Request) error { return wiretest.ErrLost }
		}, do, oncehttp.ErrNotSent},
		{"a bad URL", func(_ *oncehttp.Config, req *http.Request) { req.URL = &url.URL{Path: "/x"} }, do, oncehttp.ErrConfig},
		{"a bad header", func(_ *oncehttp.Config, req *http.Request) { req.Header.Set("X-A", "b\nc") }, do, oncehttp.ErrConfig},
		{"too large", func(cfg *oncehttp.Config, _ *http.Request) { cfg.MaxRequestBytes = 3 }, do, oncehttp.ErrBodyTooLarge},
		{"too large, length not said", func(cfg *oncehttp.Config, req *http.Request) {
			cfg.MaxRequestBytes, req.ContentLength = 3, -1
		}, do, oncehttp.ErrBodyTooLarge},
		{"shorter than said", func(_ *oncehttp.Config, req *http.Request) { req.ContentLength = 99 }, do, oncehttp.ErrConfig},
		{"longer than said", func(_ *oncehttp.Config, req *http.Request) { req.ContentLength = 1 }, do, oncehttp.ErrConfig},
		{"an invalid key", none, func(c *oncehttp.Client, req *http.Request) error {
			_, err := c.DoKey(req, "")
			return err
		}, oncehttp.ErrKeyInvalid},
		{"two keys", func(_ *oncehttp.Config, req *http.Request) { req.Header.Set("Idempotency-Key", "other") }, do, oncehttp.ErrKeyInvalid},
		{"GET with a key", func(_ *oncehttp.Config, req *http.Request) { req.Method = "GET" }, do, oncehttp.ErrConfig},
		{"no key where one is due", func(cfg *oncehttp.Config, _ *http.Request) { cfg.RequireKey = true }, keyless, oncehttp.ErrKeyInvalid},
		{"the journal fails", func(cfg *oncehttp.Config, _ *http.Request) { cfg.Journal = journaltest.Broken{Journal: cfg.Journal} }, do, oncehttp.ErrNotSent},
		{"a dead context", func(_ *oncehttp.Config, req *http.Request) {
			ctx, cancel := context.WithCancel(req.Context())
			cancel()
			*req = *req.WithContext(ctx)
		}, do, oncehttp.ErrNotSent},
		{"Enqueue", none, func(c *oncehttp.Client, req *http.Request) error { return c.Enqueue(req, "k") }, nil},
		{"Enqueue GET", func(_ *oncehttp.Config, req *http.Request) { req.Method = "GET" },
			func(c *oncehttp.Client, req *http.Request) error { return c.Enqueue(req, "k") }, oncehttp.ErrConfig},
		{"Prepare", none, func(c *oncehttp.Client, req *http.Request) error {
			_, err := c.Prepare(req, "k")
			return err
		}, nil},
		{"closed", none, func(c *oncehttp.Client, req *http.Request) error {
			c.Close()
			_, err := c.DoKey(req, "k")
			return err
		}, oncehttp.ErrClosed},
		{"streamed PUT", func(_ *oncehttp.Config, req *http.Request) { req.Method = "PUT" }, keyless, wiretest.ErrLost},
		{"streamed GET", func(_ *oncehttp.Config, req *http.Request) { req.Method = "GET" }, keyless, wiretest.ErrLost},
		{"streamed PUT, Authorize refuses", func(cfg *oncehttp.Config, req *http.Request) {
			req.Method = "PUT"
			cfg.Authorize = func(*http.Request) error { return wiretest.ErrLost }
		}, keyless, wiretest.ErrLost},
		{"streamed PUT, Authorize meddles", func(cfg *oncehttp.Config, req *http.Request) {
			req.Method = "PUT"
			cfg.Authorize = func(req *http.Request) error { req.URL.RawQuery = "x"; return nil }
		}, keyless, oncehttp.ErrNoEffect},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var closes atomic.Int32
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 503}, {Status: 201}}}
				req := clienttest.Request(t, "POST", "https://u:pw@api.example.com/payments?via=test", "")
				req.Header.Set("Authorization", "Bearer x")
				req.Body, req.ContentLength, req.GetBody = &wiretest.Counted{Reader: strings.NewReader(`{"amount":1}`), Closes: &closes}, 12, nil
				var before *http.Request
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					if strings.HasPrefix(r.name, "Enqueue") || r.name == "Prepare" {
						cfg.Authorize = func(*http.Request) error { return nil }
					}
					r.change(cfg, req)
					before = req.Clone(req.Context())
				})
				body, length := req.Body, req.ContentLength
				if err := r.call(c, req); !errors.Is(err, r.want) || (err == nil) != (r.want == nil) {
					t.Errorf("err = %v, want %v", err, r.want)
				}
				if n := closes.Load(); n != 1 {
					t.Errorf("the body was closed %d times, want once", n)
				}
				same := maps.EqualFunc(req.Header, before.Header, slices.Equal[[]string])
				if !same || req.URL.String() != before.URL.String() || req.Method != before.Method || req.Body != body || req.ContentLength != length {
					t.Errorf("the caller's request was changed: %s %s %v", req.Method, req.URL, req.Header)
				}
			})
		})
	}
}

// TestBytesAreCopiedOnce: bytes that the caller changes
// after Do has begun are on no attempt, and in no record.
func TestBytesAreCopiedOnce(t *testing.T) {
	t.Parallel()
	kinds := map[string]func([]byte) io.Reader{
		"bytes.Reader": func(b []byte) io.Reader { return bytes.NewReader(b) },
		"bytes.Buffer": func(b []byte) io.Reader { return bytes.NewBuffer(b) },
		"a stream":     func(b []byte) io.Reader { return io.MultiReader(bytes.NewReader(b)) },
	}
	for name, reader := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				raw := []byte(`{"amount":1}`)
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 503}, {Err: wiretest.ErrLost}}}
				w.Before = func(int, *http.Request) { copy(raw, `{"amount":9}`) }
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 3 })
				req, _ := http.NewRequest("POST", "https://api.example.com/", reader(raw))
				if _, err := c.DoKey(req, "k"); err == nil {
					t.Fatal("no error")
				}
				if got := string(clienttest.Lookup(t, c, "k").Body); got != `{"amount":1}` {
					t.Errorf("the record has %s", got)
				}
				for i, s := range w.Sends {
					if s.Body != `{"amount":1}` {
						t.Errorf("send %d had %s", i, s.Body)
					}
				}
			})
		})
	}
}

// TestEmptyBodies: no body, however it is spelled, is sent as none.
func TestEmptyBodies(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.ReadCloser{"nil": nil, "NoBody": http.NoBody, "empty": io.NopCloser(strings.NewReader(""))} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, nil)
			req := clienttest.Request(t, "POST", "https://api.example.com/", "")
			req.Body = body
			if _, err := c.DoKey(req, "k"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// answers is a transport whose answers count their open bodies.
type answers struct {
	wire *wiretest.Wire
	open atomic.Int32
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.wire.RoundTrip(req)
	if err == nil {
		a.open.Add(1)
		resp.Body = &onceClosed{ReadCloser: resp.Body, a: a}
	}
	return resp, err
}

type onceClosed struct {
	io.ReadCloser
	a    *answers
	once atomic.Bool
}

func (o *onceClosed) Close() error {
	if o.once.CompareAndSwap(false, true) {
		o.a.open.Add(-1)
	}
	return o.ReadCloser.Close()
}

// TestAnswersAreClosed: the body of every
// answer is closed, whatever became of the operation.
func TestAnswersAreClosed(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 3<<20)
	rows := map[string][]wiretest.Reply{
		"confirmed":            {{Status: 201, Body: "ok"}},
		"retried":              {{Status: 503, Body: "a"}, {Status: 429, Body: "b"}, {Status: 201}},
		"cut off":              {{Status: 201, Body: "half", Cut: true}},
		"spent":                {{Status: 500, Body: "x"}},
		"large errors":         {{Status: 500, Body: large}},
		"large answer":         {{Status: 201, Body: large}},
		"large refusal":        {{Status: 403, Body: large}},
		"large conflict":       {{Status: 422, Header: "Content-Type: application/problem+json", Body: large}},
		"large redirect":       {{Status: 302, Header: "Location: /x", Body: large}},
		"hops":                 {{Status: 307, Header: "Location: /x", Body: large}, {Status: 201}},
		"too long a wait":      {{Status: 503, Header: "Retry-After: 9999", Body: large}},
		"101":                  {{Status: 101}},
		"already confirmed":    {{Status: 201, Body: "ok"}, {Status: 201}},
		"large, asked again":   {{Status: 201, Body: large}, {Status: 500, Body: large}},
		"large, then refused":  {{Err: wiretest.ErrLost}, {Status: 403, Body: large}},
		"large, then a replay": {{Status: 500, Body: large}, {Status: 500, Body: large, Header: "Idempotent-Replayed: true"}},
	}
	for name, replies := range rows {
		for _, method := range []string{"POST", "GET", "PUT"} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					a := &answers{wire: &wiretest.Wire{Replies: replies}}
					c, _ := clienttest.New(t, a, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 1 << 10 })
					for range 2 {
						req := clienttest.Request(t, method, "https://api.example.com/", "")
						if method == "POST" {
							req.Header.Set("Idempotency-Key", "k")
						}
						resp, err := c.Do(req)
						if (resp == nil) == (err == nil) {
							t.Fatalf("a response %v and an error %v", resp, err)
						}
						if resp != nil {
							_, _ = io.CopyN(io.Discard, resp.Body, 5)
							resp.Body.Close()
						}
					}
					for range c.Resume(t.Context()) {
						continue
					}
					if n := a.open.Load(); n != 0 {
						t.Errorf("%d bodies are still open", n)
					}
				})
			})
		}
	}
}

// TestErrorBodiesKeepConnections: error pages of up to
// 64 KiB past what is kept do not cost a connection each.
func TestErrorBodiesKeepConnections(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		size, conns int
	}{{300 << 10, 1}, {(256 + 63) << 10, 1}, {4 << 20, 5}} {
		conns, sends := atomic.Int32{}, atomic.Int32{}
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			sends.Add(1)
			w.WriteHeader(500)
			_, _ = w.Write(bytes.Repeat([]byte("e"), r.size))
		}))
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				conns.Add(1)
			}
		}
		srv.Start()
		c, _ := clienttest.New(t, wiretest.Transport(t), func(cfg *oncehttp.Config) {
			cfg.Retry, cfg.MaxResponseBytes = clienttest.Quick(5), 256<<10
		})
		_, err := c.DoKey(clienttest.Request(t, "POST", srv.URL, "{}"), "k")
		if err == nil || sends.Load() != 5 || int(conns.Load()) > r.conns {
			t.Errorf("%d bytes of error: %v, %d sends on %d connections, want 5 on %d", r.size, err, sends.Load(), conns.Load(), r.conns)
		}
		srv.Close()
	}
}

// TestDrainIsBounded: an error page that never ends holds nobody up for more than
// a second.
func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "GET"} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			rt := wiretest.Func(func(req *http.Request) (*http.Response, error) {
				n++
				if n == 2 {
					return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
				}
				return &http.Response{StatusCode: 503, Body: &drip{gap: 300 * time.Millisecond, left: 1 << 20, end: make(chan struct{})}}, nil
			})
			c, _ := clienttest.New(t, rt, func(cfg *oncehttp.Config) {
				cfg.MaxResponseBytes, cfg.Retry = 4, oncehttp.Policy{MinDelay: 1, MaxDelay: 1}
			})
			start := time.Now()
			req := clienttest.Request(t, method, "https://api.example.com/", "")
			if method == "POST" {
				req.Header.Set("Idempotency-Key", "k")
			}
			if _, err := c.Do(req); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("%s: an endless error page was read for %v", method, took)
			}
		})
	}
}

// drip is a body that gives one byte after each gap.
type drip struct {
	gap  time.Duration
	left int
	end  chan struct{}
	shut atomic.Bool
}

func (d *drip) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(d.gap):
		d.left--
		p[0] = 'x'
		return 1, nil
	case <-d.end:
		return 0, errors.New("closed")
	}
}

func (d *drip) Close() error {
	if d.shut.CompareAndSwap(false, true) {
		close(d.end)
	}
	return nil
}

// TestAnswersBelongToTheCaller: two callers of one operation get bodies and
// headers of their own, and what they do to them changes no record.
func TestAnswersBelongToTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Header: "X-A: b", Body: "paid"}}}
		c, _ := clienttest.New(t, w, nil)
		for range 3 {
			resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if err != nil || resp.Header.Get("X-A") != "b" || resp.ContentLength != 4 {
				t.Fatalf("%v: %+v", err, resp)
			}
			b, _ := io.ReadAll(resp.Body)
			if string(b) != "paid" {
				t.Errorf("body %q", b)
			}
			b[0] = 'x'
			resp.Header.Set("X-A", "changed")
			resp.Header["X-B"] = nil
		}
		if w.Count() != 1 {
			t.Errorf("%d sends", w.Count())
		}
	})
}

package oncehttp_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// quick is a policy for tests over loopback, where time is real.
func quick(attempts int) oncehttp.Policy {
	return oncehttp.Policy{MaxAttempts: attempts, MinDelay: 1, MaxDelay: time.Millisecond}
}

// TestTraceOfAuthorize: a token that Authorize fetches with the request's own
// context must not pass for a trace of the request. Otherwise a failed fetch
// would "prove" of a transport without trace events that nothing was sent.
func TestTraceOfAuthorize(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{err: errLost, silent: true}}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(req *http.Request) error {
				if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GetConn != nil {
					trace.GetConn("tokens.example.com:443") // and no connection is had
				}
				return nil
			}
		})
		_, err := c.DoKey(post(t, "{}"), "k")
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v, want outcome unknown", err)
		}
	})
}

// guarded counts what reaches the caller's own transport besides requests.
type guarded struct {
	*http.Transport
	closes atomic.Int32
}

func (g *guarded) CloseIdleConnections() { g.closes.Add(1); g.Transport.CloseIdleConnections() }

// auditedWire is a transport that writes an audit line to a host of its own before each send, with the request's context, and
// sends by another way, of which that context learns nothing. The answers to its sends are lost.
type auditedWire struct{ audit string }

func (a auditedWire) RoundTrip(req *http.Request) (*http.Response, error) {
	line, err := http.NewRequestWithContext(req.Context(), http.MethodGet, "http://"+a.audit, nil)
	if err != nil {
		return nil, err
	}
	if resp, err := http.DefaultTransport.RoundTrip(line); err == nil {
		resp.Body.Close()
	}
	resp, err := http.DefaultTransport.RoundTrip(req.Clone(context.Background()))
	if err == nil {
		resp.Body.Close()
	}
	return nil, errLost
}

// TestAuditLine: an audit line that finds nobody is no proof that the payment was not sent.
func TestAuditLine(t *testing.T) {
	t.Parallel()
	var effects atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { effects.Add(1); w.WriteHeader(http.StatusCreated) }))
	defer server.Close()
	nobody := httptest.NewServer(nil)
	nobody.Close()
	c, _ := newClient(t, auditedWire{nobody.Listener.Addr().String()}, oneAttempt)
	_, err := c.DoKey(request(t, "POST", server.URL, "{}"), "k")
	if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || effects.Load() != 1 {
		t.Errorf("%v with %d effects, want it unknown", err, effects.Load())
	}
	if rec := lookup(t, c, "k"); !rec.MaybeSent {
		t.Error("the record says that it was not sent")
	}
}

// TestPoolIsLeftAlone: go-retryablehttp closes idle connections after each failure; the
// caller's pool must not notice.
func TestPoolIsLeftAlone(t *testing.T) {
	t.Parallel()
	busy := "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"
	p := newTap(t, ok200, busy, busy, busy, busy)
	g := &guarded{Transport: private(t)}
	c, _ := newClient(t, g, func(cfg *oncehttp.Config) { cfg.Retry = quick(2) })
	if _, err := c.DoKey(request(t, "POST", "http://"+p.addr, "{}"), "fine"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DoKey(request(t, "POST", "http://"+p.addr, "{}"), "fails"); err == nil {
		t.Fatal("503 for ever is no error")
	}
	resp, err := c.StandardClient().Post("http://"+p.addr, "application/json", strings.NewReader("{}"))
	if err != nil || resp.StatusCode != 503 {
		t.Fatalf("plain HTTP: %v", err)
	}
	resp.Body.Close()
	ctx, cancel := context.WithCancel(t.Context())
	waiting, _ := newClient(t, g, func(cfg *oncehttp.Config) {
		cfg.Retry = oncehttp.Policy{MinDelay: time.Hour, MaxDelay: time.Hour, MaxElapsed: 10 * time.Hour}
		cfg.Observe = func(_ context.Context, e oncehttp.Event) {
			if e.Kind == oncehttp.EventWaiting {
				cancel()
			}
		}
	})
	p.mu.Lock()
	p.answers = append(p.answers, busy)
	p.mu.Unlock()
	if _, err := waiting.DoKey(request(t, "POST", "http://"+p.addr, "{}").WithContext(ctx), "cancelled"); err == nil {
		t.Fatal("a cancelled wait is no error")
	}
	if g.closes.Load() != 0 || p.conns != 1 {
		t.Errorf("CloseIdleConnections reached the caller's transport %d times, and %d connections were needed; want none and one", g.closes.Load(), p.conns)
	}
}

// TestBrokenTransports: a RoundTripper that breaks its contract costs an attempt, never
// a panic. A response beside an error is not an answer, and its body is closed.
func TestBrokenTransports(t *testing.T) {
	t.Parallel()
	var closed atomic.Int32
	rows := []struct {
		name string
		rt   tripper
		want error
	}{
		{"nil, nil", func(*http.Request) (*http.Response, error) { return nil, nil }, oncehttp.ErrOutcomeUnknown},
		{"response and error", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 201, Body: &counted{Reader: strings.NewReader("x"), closes: &closed}}, errLost
		}, errLost},
		{"no body, no header", func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 201}, nil }, nil},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				c, _ := newClient(t, r.rt, nil)
				resp, err := c.DoKey(post(t, "{}"), "k")
				if !errors.Is(err, r.want) {
					t.Fatalf("%v, want %v", err, r.want)
				}
				if err == nil {
					resp.Header.Set("A", "b") // a caller may, so it must not be nil
				}
				for _, method := range []string{"GET", "PUT"} { // which stream through
					resp, err := c.Do(request(t, method, "https://api.example.com/", ""))
					if (err == nil) != (r.want == nil) || err != nil && resp != nil {
						t.Errorf("%s: %v and %v", method, resp, err)
					}
				}
			})
		})
	}
	t.Cleanup(func() {
		if closed.Load() == 0 {
			t.Error("the body beside the error was never closed")
		}
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// counted is a body that counts how often it is closed.
type counted struct {
	io.Reader
	closes *atomic.Int32
}

func (c *counted) Close() error { c.closes.Add(1); return nil }

// TestSwitchingProtocols: 101 is never an answer to an operation, and its
// connection, on which nobody says anything more, is not waited for.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	p := newTap(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	c, _ := newClient(t, private(t), func(cfg *oncehttp.Config) { cfg.Retry = quick(2) })
	resp, err := c.DoKey(request(t, "POST", "http://"+p.addr, "{}"), "k")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, want the answer of the second attempt", err)
	}
}

// TestHeadersDoNotAccumulate: what a transport adds to one send must show neither on
// the next nor in the caller's header map.
func TestHeadersDoNotAccumulate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{err: errLost}, {status: 503}, {status: 201}}}
		w.before = func(_ int, req *http.Request) {
			if got := req.Header.Values("X-Try"); len(got) != 0 {
				t.Errorf("a send came with %v from an earlier one", got)
			}
			req.Header.Add("X-Try", "1")
			req.URL.RawQuery = "changed"
		}
		c, _ := newClient(t, w, nil)
		req := post(t, "{}")
		if _, err := c.DoKey(req, "k"); err != nil {
			t.Fatal(err)
		}
		if req.Header.Get("X-Try") != "" || req.Header.Get("Content-Type") != "application/json" || req.URL.RawQuery != "via=test" {
			t.Errorf("the caller's request was changed: %v %v", req.URL, req.Header)
		}
		for _, s := range w.sends {
			if s.url != "https://api.example.com/payments?via=test" || s.header.Get("Content-Type") != "application/json" {
				t.Errorf("sent %s %v", s.url, s.header)
			}
		}
	})
}

// TestRealErrorSurvives: the attempt's own error is found by type through what oncehttp
// returns, and nothing but it.
func TestRealErrorSurvives(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t, private(t), func(cfg *oncehttp.Config) { cfg.Retry = quick(2) })
	_, err := c.DoKey(request(t, "POST", "http://"+nobody, "{}"), "k")
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("no net.OpError in %v", err)
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		t.Errorf("%v wraps a url.Error, which spells out the URL", err)
	}
}

// TestAnswerBeatsCancel: an answer that arrives while the context ends counts.
func TestAnswerBeatsCancel(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			w := &wire{replies: []reply{{status: 201, body: "paid"}}}
			w.before = func(int, *http.Request) { cancel() }
			c, _ := newClient(t, w, nil)
			req := post(t, "{}").WithContext(ctx)
			req.Header.Set("Idempotency-Key", "k")
			do := c.Do
			if plain {
				do = c.Transport().RoundTrip
			}
			resp, err := do(req)
			if err != nil || resp.StatusCode != 201 || read(t, resp) != "paid" {
				t.Fatalf("the answer was lost: %v", err)
			}
			if rec := lookup(t, c, "k"); rec.State != persist.StateConfirmed || rec.Answer.Status != 201 {
				t.Errorf("record %v, want confirmed", rec.State)
			}
		})
	}
}

// TestCancelKeepsTheReason: a context that ends during a wait hides neither the last
// answer nor itself, and nothing more is sent.
func TestCancelKeepsTheReason(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]reply{"after an answer": {status: 503}, "after an error": {err: errLost}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				gone := errors.New("the shopper left")
				w := &wire{replies: []reply{first}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
					cfg.Observe = func(_ context.Context, e oncehttp.Event) {
						if e.Kind == oncehttp.EventWaiting {
							cancel(gone)
						}
					}
				})
				_, err := c.DoKey(post(t, "{}").WithContext(ctx), "k")
				exactlyOne(t, err)
				var e *oncehttp.Error
				errors.As(err, &e)
				if !errors.Is(err, gone) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, first.err) && e.Answer == nil {
					t.Errorf("%v, want the cause and the last attempt", err)
				}
				if first.status != 0 && (e.Answer == nil || e.Answer.Status != first.status) {
					t.Errorf("last answer %+v, want %d", e.Answer, first.status)
				}
				if w.count() != 1 {
					t.Errorf("%d sends, want 1", w.count())
				}
			})
		})
	}
}

// TestEvents: every step is told, in order, failures too.
func TestEvents(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var got []string
		w := &wire{replies: []reply{{err: errLost}, {status: 503}, {status: 201}}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Key != "k" || e.Method != "POST" || e.Origin != "https://api.example.com:443" || e.Path != "/payments" {
					t.Errorf("event %+v", e)
				}
				line := string(e.Kind)
				if e.Kind == oncehttp.EventAnswered || e.Kind == oncehttp.EventFinished {
					line += " " + http.StatusText(e.Status) + " " + e.Outcome.String()
				}
				if (e.Err != nil) != (e.Kind == oncehttp.EventAnswered && e.Attempt == 1) {
					t.Errorf("event %s has error %v", e.Kind, e.Err)
				}
				got = append(got, line)
			}
		})
		if _, err := c.DoKey(post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		want := "begun|attempt|answered  unknown|waiting|attempt|answered Service Unavailable unknown|waiting|attempt|answered Created confirmed|finished Created confirmed"
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("events\n%s\nwant\n%s", s, want)
		}
	})
}

// TestStandardClient: the caller of an *http.Client gets the last answer as it is, or
// one *url.Error around one *oncehttp.Error.
func TestStandardClient(t *testing.T) {
	t.Parallel()
	for _, status := range []int{409, 429, 500, 503, 403} {
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: status, header: "X-A: b", body: "the reason"}}}
			c, _ := newClient(t, w, nil)
			resp, err := c.StandardClient().Do(post(t, "{}"))
			if err != nil || resp.StatusCode != status || resp.Header.Get("X-A") != "b" || read(t, resp) != "the reason" {
				t.Errorf("%d: %v, want the answer itself", status, err)
			}
		})
	}
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{err: errLost}}}
		c, _ := newClient(t, w, nil)
		hc := c.StandardClient()
		resp, err := hc.Do(post(t, "{}"))
		var outer *url.Error
		if resp != nil || !errors.As(err, &outer) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errLost) {
			t.Fatalf("%v", err)
		}
		if _, direct := outer.Err.(*oncehttp.Error); !direct || strings.Contains(err.Error(), "giving up") {
			t.Errorf("%v (%T inside), want our own error and nothing between", err, outer.Err)
		}
		if hc.Jar != nil || hc.Timeout != 0 {
			t.Error("a jar or a timeout of its own")
		}
	})
}

// TestParallel: many callers over one client and a real server; every key is sent once,
// and no answer reaches another caller.
func TestParallel(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		key := r.Header.Get("Idempotency-Key")
		mu.Lock()
		seen[key]++
		mu.Unlock()
		_, _ = w.Write([]byte(key + " " + string(body)))
	}))
	t.Cleanup(srv.Close)
	c, _ := newClient(t, private(t), nil)
	var callers sync.WaitGroup
	for i := range 200 {
		callers.Go(func() {
			key := oncehttp.NewScope("p").Key(string(rune('a'+i%50)) + "x")
			resp, err := c.DoKey(request(t, "POST", srv.URL, string(key)), key)
			if err != nil || read(t, resp) != string(key)+" "+string(key) {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	callers.Wait()
	if len(seen) != 50 {
		t.Errorf("%d keys, want 50", len(seen))
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%s was sent %d times", key, n)
		}
	}
}

// silent is for servers whose complaints are what the test is about.
func silent() *log.Logger { return log.New(io.Discard, "", 0) }

package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestTraceOfAuthorize: a token that Authorize fetches with the request's own
// context must not pass for a trace of the request. Otherwise a failed fetch
// would "prove" of a transport without trace events that nothing was sent.
func TestTraceOfAuthorize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost, Silent: true}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(req *http.Request) error {
				if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GetConn != nil {
					trace.GetConn("tokens.example.com:443") // and no connection is had
				}
				return nil
			}
		})
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
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
	return nil, wiretest.ErrLost
}

// TestAuditLine: an audit line that finds nobody is no proof that the payment was not sent.
func TestAuditLine(t *testing.T) {
	t.Parallel()
	var effects atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { effects.Add(1); w.WriteHeader(http.StatusCreated) }))
	defer server.Close()
	nobody := httptest.NewServer(nil)
	nobody.Close()
	c, _ := clienttest.New(t, auditedWire{nobody.Listener.Addr().String()}, clienttest.OneAttempt)
	_, err := c.DoKey(clienttest.Request(t, "POST", server.URL, "{}"), "k")
	if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || effects.Load() != 1 {
		t.Errorf("%v with %d effects, want it unknown", err, effects.Load())
	}
	if rec := clienttest.Lookup(t, c, "k"); !rec.MaybeSent {
		t.Error("the record says that it was not sent")
	}
}

// TestPoolIsLeftAlone: go-retryablehttp closes idle connections after each failure; the
// caller's pool must not notice.
func TestPoolIsLeftAlone(t *testing.T) {
	t.Parallel()
	busy := "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"
	p := wiretest.NewTap(t, wiretest.OK200, busy, busy, busy, busy)
	g := &guarded{Transport: wiretest.Transport(t)}
	c, _ := clienttest.New(t, g, func(cfg *oncehttp.Config) { cfg.Retry = clienttest.Quick(2) })
	if _, err := c.DoKey(clienttest.Request(t, "POST", "http://"+p.Addr, "{}"), "fine"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DoKey(clienttest.Request(t, "POST", "http://"+p.Addr, "{}"), "fails"); err == nil {
		t.Fatal("503 for ever is no error")
	}
	resp, err := c.StandardClient().Post("http://"+p.Addr, "application/json", strings.NewReader("{}"))
	if err != nil || resp.StatusCode != 503 {
		t.Fatalf("plain HTTP: %v", err)
	}
	resp.Body.Close()
	ctx, cancel := context.WithCancel(t.Context())
	waiting, _ := clienttest.New(t, g, func(cfg *oncehttp.Config) {
		cfg.Retry = oncehttp.Policy{MinDelay: time.Hour, MaxDelay: time.Hour, MaxElapsed: 10 * time.Hour}
		cfg.Observe = func(_ context.Context, e oncehttp.Event) {
			if e.Kind == oncehttp.EventWaiting {
				cancel()
			}
		}
	})
	p.Then(busy)
	if _, err := waiting.DoKey(clienttest.Request(t, "POST", "http://"+p.Addr, "{}").WithContext(ctx), "cancelled"); err == nil {
		t.Fatal("a cancelled wait is no error")
	}
	if g.closes.Load() != 0 || p.Conns != 1 {
		t.Errorf("CloseIdleConnections reached the caller's transport %d times, and %d connections were needed; want none and one", g.closes.Load(), p.Conns)
	}
}

// TestBrokenTransports: a RoundTripper that breaks its contract costs an attempt, never
// a panic. A response beside an error is not an answer, and its body is closed.
func TestBrokenTransports(t *testing.T) {
	t.Parallel()
	var closed atomic.Int32
	rows := []struct {
		name string
		rt   wiretest.Func
		want error
	}{
		{"nil, nil", func(*http.Request) (*http.Response, error) { return nil, nil }, oncehttp.ErrOutcomeUnknown},
		{"response and error", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 201, Body: &wiretest.Counted{Reader: strings.NewReader("x"), Closes: &closed}}, wiretest.ErrLost
		}, wiretest.ErrLost},
		{"no body, no header", func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 201}, nil }, nil},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _ := clienttest.New(t, r.rt, nil)
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if !errors.Is(err, r.want) {
					t.Fatalf("%v, want %v", err, r.want)
				}
				if err == nil {
					resp.Header.Set("A", "b") // a caller may, so it must not be nil
				}
				for _, method := range []string{"GET", "PUT"} { // which stream through
					resp, err := c.Do(clienttest.Request(t, method, "https://api.example.com/", ""))
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

// TestSwitchingProtocols: 101 is never an answer to an operation, and its
// connection, on which nobody says anything more, is not waited for.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	p := wiretest.NewTap(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	c, _ := clienttest.New(t, wiretest.Transport(t), func(cfg *oncehttp.Config) { cfg.Retry = clienttest.Quick(2) })
	resp, err := c.DoKey(clienttest.Request(t, "POST", "http://"+p.Addr, "{}"), "k")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, want the answer of the second attempt", err)
	}
}

// TestHeadersDoNotAccumulate: what a transport adds to one send must show neither on
// the next nor in the caller's header map.
func TestHeadersDoNotAccumulate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 503}, {Status: 201}}}
		w.Before = func(_ int, req *http.Request) {
			if got := req.Header.Values("X-Try"); len(got) != 0 {
				t.Errorf("a send came with %v from an earlier one", got)
			}
			req.Header.Add("X-Try", "1")
			req.URL.RawQuery = "changed"
		}
		c, _ := clienttest.New(t, w, nil)
		req := clienttest.Post(t, "{}")
		if _, err := c.DoKey(req, "k"); err != nil {
			t.Fatal(err)
		}
		if req.Header.Get("X-Try") != "" || req.Header.Get("Content-Type") != "application/json" || req.URL.RawQuery != "via=test" {
			t.Errorf("the caller's request was changed: %v %v", req.URL, req.Header)
		}
		for _, s := range w.Sends {
			if s.URL != "https://api.example.com/payments?via=test" || s.Header.Get("Content-Type") != "application/json" {
				t.Errorf("sent %s %v", s.URL, s.Header)
			}
		}
	})
}

// TestRealErrorSurvives: the attempt's own error is found by type through what oncehttp
// returns, and nothing but it.
func TestRealErrorSurvives(t *testing.T) {
	t.Parallel()
	c, _ := clienttest.New(t, wiretest.Transport(t), func(cfg *oncehttp.Config) { cfg.Retry = clienttest.Quick(2) })
	_, err := c.DoKey(clienttest.Request(t, "POST", "http://"+nobody, "{}"), "k")
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
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "paid"}}}
			w.Before = func(int, *http.Request) { cancel() }
			c, _ := clienttest.New(t, w, nil)
			req := clienttest.Post(t, "{}").WithContext(ctx)
			req.Header.Set("Idempotency-Key", "k")
			do := c.Do
			if plain {
				do = c.Transport().RoundTrip
			}
			resp, err := do(req)
			if err != nil || resp.StatusCode != 201 || clienttest.Read(t, resp) != "paid" {
				t.Fatalf("the answer was lost: %v", err)
			}
			if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || rec.Answer.Status != 201 {
				t.Errorf("record %v, want confirmed", rec.State)
			}
		})
	}
}

// TestCancelKeepsTheReason: a context that ends during a wait hides neither the last
// answer nor itself, and nothing more is sent.
func TestCancelKeepsTheReason(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]wiretest.Reply{"after an answer": {Status: 503}, "after an error": {Err: wiretest.ErrLost}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				gone := errors.New("the shopper left")
				w := &wiretest.Wire{Replies: []wiretest.Reply{first}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Observe = func(_ context.Context, e oncehttp.Event) {
						if e.Kind == oncehttp.EventWaiting {
							cancel(gone)
						}
					}
				})
				_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
				clienttest.ExactlyOne(t, err)
				var e *oncehttp.Error
				errors.As(err, &e)
				if !errors.Is(err, gone) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, first.Err) && e.Answer == nil {
					t.Errorf("%v, want the cause and the last attempt", err)
				}
				if first.Status != 0 && (e.Answer == nil || e.Answer.Status != first.Status) {
					t.Errorf("last answer %+v, want %d", e.Answer, first.Status)
				}
				if w.Count() != 1 {
					t.Errorf("%d sends, want 1", w.Count())
				}
			})
		})
	}
}

// TestEvents: every step is told, in order, failures too.
func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []string
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 503}, {Status: 201}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
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
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
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
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Header: "X-A: b", Body: "the reason"}}}
			c, _ := clienttest.New(t, w, nil)
			resp, err := c.StandardClient().Do(clienttest.Post(t, "{}"))
			if err != nil || resp.StatusCode != status || resp.Header.Get("X-A") != "b" || clienttest.Read(t, resp) != "the reason" {
				t.Errorf("%d: %v, want the answer itself", status, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		c, _ := clienttest.New(t, w, nil)
		hc := c.StandardClient()
		resp, err := hc.Do(clienttest.Post(t, "{}"))
		var outer *url.Error
		if resp != nil || !errors.As(err, &outer) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, wiretest.ErrLost) {
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
	c, _ := clienttest.New(t, wiretest.Transport(t), nil)
	var callers sync.WaitGroup
	for i := range 200 {
		callers.Go(func() {
			key := oncehttp.NewScope("p").Key(string(rune('a'+i%50)) + "x")
			resp, err := c.DoKey(clienttest.Request(t, "POST", srv.URL, string(key)), key)
			if err != nil || clienttest.Read(t, resp) != string(key)+" "+string(key) {
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

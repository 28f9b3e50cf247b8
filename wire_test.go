package oncehttp_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
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
	"github.com/oncehttp/oncehttp/profile"
)

// quick is a policy for tests over loopback, where time is real.
func quick(attempts int) oncehttp.Policy {
	return oncehttp.Policy{MaxAttempts: attempts, MinDelay: 1, MaxDelay: time.Millisecond}
}

// tap is a TCP server that writes down the head of each request and answers by
// script, without a library between the test and the wire. An empty answer hangs
// up; after the script every request is answered 200.
type tap struct {
	addr    string
	mu      sync.Mutex
	answers []string
	heads   []string
	bodies  []string
	conns   int
}

// thenHangUp before an answer makes it the last on its connection.
const thenHangUp = "\x00"

const ok200 = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func newTap(t *testing.T, answers ...string) *tap {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{addr: ln.Addr().String(), answers: answers}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() { ln.Close(); serving.Wait() })
	return p
}

func (p *tap) serve(conn net.Conn) {
	defer conn.Close()
	p.mu.Lock()
	p.conns++
	p.mu.Unlock()
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(conn, &raw))
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		head, _, _ := strings.Cut(raw.String(), "\r\n\r\n")
		raw.Reset()
		p.mu.Lock()
		p.heads, p.bodies = append(p.heads, head), append(p.bodies, string(body))
		answer := ok200
		if n := len(p.heads); n <= len(p.answers) {
			answer = p.answers[n-1]
		}
		p.mu.Unlock()
		answer, last := strings.CutPrefix(answer, thenHangUp)
		if _, err := io.WriteString(conn, answer); answer == "" || last || err != nil {
			return
		}
	}
}

func (p *tap) seen() (heads, bodies []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.heads...), append([]string(nil), p.bodies...)
}

// private is a transport of the test's own that leaves nothing behind.
func private(t *testing.T) *http.Transport {
	t.Helper()
	rt := &http.Transport{}
	t.Cleanup(rt.CloseIdleConnections)
	return rt
}

// TestNoHiddenSend is RETRY-LAYER P26 and E7: net/http must not send a keyed
// request a second time when a kept-alive connection turns out to be dead.
func TestNoHiddenSend(t *testing.T) {
	t.Parallel()
	other := func(name string, enc profile.Encoding) *profile.Profile {
		p := profile.Draft07()
		p.Name, p.Carrier.Name, p.Encoding = "other", name, enc
		return p
	}
	rows := []struct {
		name, method, body string
		prof               *profile.Profile
		framing            string // a header line that must be there
	}{
		{"POST with a body", "POST", `{"amount":1}`, nil, "Content-Length: 12"},
		{"POST without a body", "POST", "", nil, "Content-Length: 0"},
		{"PATCH without a body", "PATCH", "", nil, "Content-Length: 0"},
		{"PUT without a body", "PUT", "", nil, "Content-Length: 0"},
		{"DELETE", "DELETE", "", nil, ""},
		{"X-Idempotency-Key, no body", "POST", "", other("X-Idempotency-Key", profile.Raw), "Content-Length: 0"},
		{"X-Idempotency-Key, body", "POST", "{}", other("X-Idempotency-Key", profile.Raw), "Content-Length: 2"},
		{"a quoted key, no body", "POST", "", other("Idempotency-Key", profile.SFString), "Content-Length: 0"},
		{"Authorize, no body", "POST", "", nil, "Content-Length: 0"},
		{"Authorize, body", "POST", "{}", nil, "Content-Length: 2"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			p := newTap(t, ok200, "")
			c, _ := newClient(t, private(t), func(cfg *oncehttp.Config) {
				cfg.Retry, cfg.Profile = quick(1), r.prof
				if strings.HasPrefix(r.name, "Authorize") {
					cfg.Authorize = func(*http.Request) error { return nil }
				}
			})
			resp, err := c.DoKey(request(t, r.method, "http://"+p.addr+"/warm", r.body), "warm")
			if err != nil || read(t, resp) != "ok" {
				t.Fatalf("the first request: %v", err)
			}
			_, err = c.DoKey(request(t, r.method, "http://"+p.addr+"/cold", r.body), "cold")
			if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Fatalf("on a dead connection: %v, want outcome unknown", err)
			}
			var e *oncehttp.Error
			if errors.As(err, &e); e.Sends != 1 {
				t.Errorf("Sends %d, want 1", e.Sends)
			}
			heads, bodies := p.seen()
			if len(heads) != 2 || p.conns != 1 {
				t.Fatalf("the server saw %d requests on %d connections, want 2 on one:\n%s", len(heads), p.conns, strings.Join(heads, "\n--\n"))
			}
			head := heads[1]
			if strings.Contains(strings.ToLower(head), "transfer-encoding") || !strings.Contains(head, r.framing) || bodies[1] != r.body {
				t.Errorf("framing changed, want %q and no transfer encoding:\n%s", r.framing, head)
			}
			carrier := "Idempotency-Key"
			if r.prof != nil {
				carrier = r.prof.Carrier.Name
			}
			if n := strings.Count(strings.ToLower(head), strings.ToLower("\r\n"+carrier+":")); n != 1 {
				t.Errorf("%d lines of %s, want 1:\n%s", n, carrier, head)
			}
		})
	}
}

// TestHiddenSendHTTP2: the same over HTTP/2, where a stream is reset after the
// server has read the request.
func TestHiddenSendHTTP2(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", `{"amount":1}`} {
		var seen atomic.Int32
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.ProtoMajor != 2 || r.Header.Get("Idempotency-Key") != "k2" {
				t.Errorf("%s with key %q, want HTTP/2 with k2", r.Proto, r.Header.Get("Idempotency-Key"))
			}
			seen.Add(1)
			panic(http.ErrAbortHandler)
		}))
		srv.EnableHTTP2 = true
		srv.StartTLS()
		c, _ := newClient(t, srv.Client().Transport, func(cfg *oncehttp.Config) { cfg.Retry = quick(2) })
		_, err := c.DoKey(request(t, "POST", srv.URL, body), "k2")
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Sends != 2 || seen.Load() != 2 {
			t.Errorf("body %q: %v; the server saw %d requests, want 2, unknown", body, err, seen.Load())
		}
		srv.Close()
	}
}

// TestUnsentProof: a connection that was asked for and never had is the only
// proof that nothing was sent. Real transports, real sockets.
func TestUnsentProof(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	var handled atomic.Int32
	served := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled.Add(1) }))
	served.Config.ErrorLog = silent()
	t.Cleanup(served.Close)
	closing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing.Close() })
	go func() {
		for {
			conn, err := closing.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(proxy.Close)
	proxyURL, _ := url.Parse(proxy.URL)
	dialer := func(err error) func(context.Context, string, string) (net.Conn, error) {
		return func(context.Context, string, string) (net.Conn, error) { return nil, err }
	}
	rows := []struct {
		name     string
		url      string
		rt       *http.Transport
		attempts int
		unsent   bool
	}{
		{"E16 connection refused", "http://" + gone.Addr().String(), &http.Transport{}, 3, true},
		{"E16 no such host", "http://api.invalid", &http.Transport{DialContext: dialer(&net.DNSError{Err: "no such host", Name: "api.invalid", IsNotFound: true})}, 3, true},
		{"P29 unknown authority is not asked again", served.URL, &http.Transport{}, 1, true},
		{"P29 another name in the certificate", served.URL, &http.Transport{TLSClientConfig: strange(served)}, 1, true},
		{"the proxy did not let it through", "https://api.invalid", &http.Transport{Proxy: http.ProxyURL(proxyURL)}, 3, true},
		{"accepted, then closed", "http://" + closing.Addr().String(), &http.Transport{}, 3, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(r.rt.CloseIdleConnections)
			c, _ := newClient(t, r.rt, func(cfg *oncehttp.Config) { cfg.Retry = quick(3) })
			_, err := c.DoKey(request(t, "POST", r.url, "{}"), "k")
			exactlyOne(t, err)
			var e *oncehttp.Error
			errors.As(err, &e)
			if errors.Is(err, oncehttp.ErrNotSent) != r.unsent || e.Attempts != r.attempts {
				t.Errorf("%v after %d attempts; want not sent %v after %d", err, e.Attempts, r.unsent, r.attempts)
			}
			if r.unsent && e.Sends != 0 {
				t.Errorf("%d sends of what was not sent", e.Sends)
			}
			_, err = c.Lookup(t.Context(), "k")
			if errors.Is(err, persist.ErrNotFound) != r.unsent {
				t.Errorf("Lookup afterwards: %v, want a record: %v", err, !r.unsent)
			}
		})
	}
	t.Cleanup(func() {
		if n := handled.Load(); n != 0 {
			t.Errorf("the server that is not trusted handled %d requests", n)
		}
	})
}

// strange trusts the server's certificate and asks for a name that is not in it.
func strange(s *httptest.Server) *tls.Config {
	cfg := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	cfg.ServerName = "another.invalid"
	return cfg
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

// TestPoolIsLeftAlone is RETRY-LAYER P16 and E11: go-retryablehttp closes idle
// connections after each failure; the caller's pool must not notice.
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

// TestBrokenTransports: a RoundTripper that breaks its contract costs an
// attempt, never a panic. P28: a response beside an error is not an answer, and
// its body is closed.
func TestBrokenTransports(t *testing.T) {
	t.Parallel()
	var closed atomic.Int32
	rows := []struct {
		name string
		rt   tripper
		want error
	}{
		{"nil, nil", func(*http.Request) (*http.Response, error) { return nil, nil }, oncehttp.ErrOutcomeUnknown},
		{"P28 response and error", func(*http.Request) (*http.Response, error) {
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

// TestHeadersDoNotAccumulate is RETRY-LAYER P19 and E15: what a transport adds
// to one send must show neither on the next nor in the caller's header map.
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

// TestRealErrorSurvives is RETRY-LAYER P4, P14 and P24: the attempt's own error
// is found by type through what oncehttp returns, and nothing but it.
func TestRealErrorSurvives(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	c, _ := newClient(t, private(t), func(cfg *oncehttp.Config) { cfg.Retry = quick(2) })
	_, err = c.DoKey(request(t, "POST", "http://"+ln.Addr().String(), "{}"), "k")
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("no net.OpError in %v", err)
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		t.Errorf("%v wraps a url.Error, which spells out the URL", err)
	}
}

// TestAnswerBeatsCancel is RETRY-LAYER P5, E2 and E18: an answer that arrives
// while the context ends counts.
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
			if rec := lookup(t, c, "k"); rec.State != persist.Confirmed || rec.Answer.Status != 201 {
				t.Errorf("record %v, want confirmed", rec.State)
			}
		})
	}
}

// TestCancelKeepsTheReason is RETRY-LAYER P13 and P14: a context that ends during
// a wait hides neither the last answer nor itself, and nothing more is sent.
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

// TestEvents is RETRY-LAYER P20: every step is told, in order, failures too.
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

// TestParallel: many callers over one client and a real server; every key is
// sent once, and no answer reaches another caller.
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

package conformance_test

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// phoenix serves a handler on one address, and can be killed and come back.
type phoenix struct {
	t       *testing.T
	address string
	next    func() http.Handler // what serves after a restart

	mu     sync.Mutex
	server *http.Server
}

func newPhoenix(t *testing.T, next func() http.Handler) *phoenix {
	p := &phoenix{t: t, next: next, address: "127.0.0.1:0"}
	p.rise()
	t.Cleanup(p.fall)
	return p
}

func (p *phoenix) rise() {
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Errorf("listening again: %v", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address = listener.Addr().String()
	p.server = &http.Server{Handler: p.next()}
	server := p.server
	go func() { _ = server.Serve(listener) }() // it ends with Close
}

func (p *phoenix) fall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.server.Close() // it is thrown away
}

func (p *phoenix) restart(context.Context) error {
	p.fall()
	p.rise()
	return nil
}

// A server that keeps its keys over a kill passes, and one that loses them is
// caught.
func TestRestart(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"kept": "", "lost": "restart/replay-survives ~restart/no-double-after-kill"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh := func() http.Handler {
				server := mockserver.New(mockserver.Config{})
				t.Cleanup(func() { _ = server.Close() }) // nothing of it is looked at
				return server
			}
			kept := fresh()
			p := newPhoenix(t, func() http.Handler {
				if name == "kept" {
					return kept
				}
				return fresh()
			})
			o := options("http://"+p.address, profile.Draft07())
			o.Restart, o.Run, o.Reruns = p.restart, []string{"restart/**"}, -1
			rep := run(t, o)
			if got := wrong(rep); !maps.Equal(got, parseVerdicts(want)) || rep.Summary.Skip > 0 {
				t.Errorf("got %v, want %q\n%s", got, want, text(rep))
			}
		})
	}
}

// A server whose in-flight keys stay locked over a kill is caught.
func TestRestartLocked(t *testing.T) {
	t.Parallel()
	server := mockserver.New(mockserver.Config{Bug: "stuck-after-abort"}) // a kill is an abort to the handler
	defer func() { _ = server.Close() }()                                 // nothing of it is looked at
	p := newPhoenix(t, func() http.Handler { return server })
	o := options("http://"+p.address, profile.Draft07())
	o.Restart, o.Run, o.Reruns = p.restart, []string{"restart/inflight-killed-resolves"}, -1
	o.Hold = time.Second
	if c := find(t, run(t, o), "restart/inflight-killed-resolves"); c.Verdict != conformance.VerdictFail {
		t.Errorf("got %s %s, want a failure", c.Verdict, c.Reason)
	}
}

// front is a handler before the mock.
func front(t *testing.T, cfg mockserver.Config, serve func(next http.Handler, w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	server := mockserver.New(cfg)
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(server, w, r) }))
	t.Cleanup(func() {
		outer.Close()
		_ = server.Close() // nothing of it is looked at
	})
	return outer.URL
}

// A request that is refused for its credential does not take the key; a server in which
// it does is warned about.
func TestUnauthorised(t *testing.T) {
	t.Parallel()
	var taken sync.Map
	for name, want := range map[string]conformance.Verdict{"door": conformance.VerdictPass, "takes": conformance.VerdictWarn} {
		url := front(t, mockserver.Config{}, func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			key := r.Header.Get("Idempotency-Key")
			_, known := taken.Load(key)
			switch {
			case r.Header.Get("Authorization") == "" && r.Method == http.MethodPost:
				if name == "takes" {
					taken.Store(key, true)
				}
				w.WriteHeader(http.StatusUnauthorized)
			case known:
				w.WriteHeader(http.StatusUnauthorized)
			default:
				next.ServeHTTP(w, r)
			}
		})
		o := options(url, profile.Draft07())
		o.Run = []string{"outcome/unauthorised-not-consumed"}
		if c := find(t, run(t, o), o.Run[0]); c.Verdict != want {
			t.Errorf("%s: got %s %s %s, want %s", name, c.Verdict, c.Actual, c.Reason, want)
		}
	}
}

// An outage is seen for what it is: closed, or open.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"closed": "fails closed", "open": "fails open"} {
		var out atomic.Bool
		url := front(t, mockserver.Config{}, func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			switch {
			case out.Load() && name == "closed":
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			case out.Load():
				r.Header.Del("Idempotency-Key")
			}
			next.ServeHTTP(w, r)
		})
		o := options(url, profile.Draft07())
		o.Run = []string{"outcome/store-outage"}
		o.Outage = func(context.Context) error { out.Store(true); return nil }
		o.Recover = func(context.Context) error { out.Store(false); return nil }
		if c := find(t, run(t, o), o.Run[0]); c.Verdict != conformance.VerdictSeen || !strings.Contains(c.Actual, want) {
			t.Errorf("%s: got %s %q %s, want seen %q", name, c.Verdict, c.Actual, c.Reason, want)
		}
	}
}

// The one specification with a result header and a refusal of expired requests.
func TestOASIS(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Name, p.Carrier.Name = "oasis", "Repeatability-Request-ID"
	for name, want := range map[string]conformance.Verdict{"honours": conformance.VerdictPass, "ignores": conformance.VerdictFail} {
		bodies := map[string]string{}
		var mu sync.Mutex
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			body, err := io.ReadAll(r.Body)
			sent, _ := http.ParseTime(r.Header.Get("Repeatability-First-Sent"))
			id := r.Header.Get("Repeatability-Request-ID")
			known, seen := bodies[id]
			result, status := "accepted", http.StatusCreated
			switch {
			case err != nil || name == "ignores":
				result = ""
			case !sent.IsZero() && time.Since(sent) > time.Hour:
				result, status = "rejected", http.StatusPreconditionFailed
			case seen && known != string(body):
				result, status = "rejected", http.StatusBadRequest
			}
			bodies[id] = string(body)
			w.Header().Set("Repeatability-Result", result)
			w.WriteHeader(status)
		}))
		o := conformance.Options{URL: server.URL, Profile: p, Run: []string{"oasis/**"}, Reruns: -1}
		if c := find(t, run(t, o), "oasis/repeatable-requests"); c.Verdict != want {
			t.Errorf("%s: got %s %s %s, want %s", name, c.Verdict, c.Actual, c.Reason, want)
		}
		server.Close()
	}
}

// TestRepeatableMock: the check sends both headers to the mock, which plays Azure, and finds nothing wrong.
func TestRepeatableMock(t *testing.T) {
	t.Parallel()
	p, _ := profile.ByName("azure-repeatability")
	o := options(start(t, mockserver.Config{Profile: p}), p)
	o.Run = []string{"oasis/**", "replay/answered", "replay/effects-once", "conflict/not-silent"}
	rep := run(t, o)
	for _, id := range o.Run[1:] {
		if c := find(t, rep, id); c.Verdict != conformance.VerdictPass {
			t.Errorf("%s: %s %s %s", id, c.Verdict, c.Actual, c.Reason)
		}
	}
	if c := find(t, rep, "oasis/repeatable-requests"); c.Verdict != conformance.VerdictPass {
		t.Errorf("%s: %s %s", c.ID, c.Verdict, c.Actual)
	}
}

// A gateway in front of the suite's own origin is judged as a middleware is.
func TestOrigin(t *testing.T) {
	t.Parallel()
	for bug, want := range map[string]string{"": "", "mismatch-silent": "conflict/not-silent", "no-exclusion": "inflight/once"} {
		origin := freeAddress(t)
		to := &url.URL{Scheme: "http", Host: origin}
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.Transport = &http.Transport{DisableKeepAlives: true}
		gateway := start(t, mockserver.Config{Bug: bug, Profile: releasing(), Handler: proxy})
		o := handlerOptions()
		o.URL, o.Quick, o.Hold = gateway+"/operations", true, 300*time.Millisecond
		rep, err := conformance.RunOrigin(t.Context(), origin, o)
		if err != nil {
			t.Fatalf("RunOrigin: %v", err)
		}
		if got := wrong(rep); !maps.Equal(got, parseVerdicts(want)) {
			t.Errorf("bug %q: got %v, want %q\n%s", bug, got, want, text(rep))
		}
		if c := find(t, rep, "inflight/once"); c.Witness != conformance.WitnessCounted {
			t.Errorf("bug %q: got witness %s, want counted", bug, c.Witness)
		}
	}
	if _, err := conformance.RunOrigin(t.Context(), "192.0.2.1:80", conformance.Options{URL: "http://127.0.0.1/"}); err == nil {
		t.Error("an origin that is not loopback was accepted")
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return address
}

// A server that honours another header is named with it.
func TestOtherHeader(t *testing.T) {
	t.Parallel()
	o := options(start(t, mockserver.Config{Bug: "other-header-name"}), profile.Draft07())
	o.Run, o.Reruns = []string{"replay/answered"}, -1
	if c := find(t, run(t, o), "replay/answered"); !strings.Contains(c.Actual, "honours X-Idempotency-Key") {
		t.Errorf("got %q, want it to name the header that works", c.Actual)
	}
}

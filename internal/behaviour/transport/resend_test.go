package transport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestNoHiddenSend: net/http must not send a keyed request a second time when a
// kept-alive connection turns out to be dead.
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
			p := wiretest.NewTap(t, wiretest.OK200, "")
			c, _ := clienttest.New(t, wiretest.Transport(t), func(cfg *oncehttp.Config) {
				cfg.Retry, cfg.Profile = clienttest.Quick(1), r.prof
				if strings.HasPrefix(r.name, "Authorize") {
					cfg.Authorize = func(*http.Request) error { return nil }
				}
			})
			resp, err := c.DoKey(clienttest.Request(t, r.method, "http://"+p.Addr+"/warm", r.body), "warm")
			if err != nil || clienttest.Read(t, resp) != "ok" {
				t.Fatalf("the first request: %v", err)
			}
			_, err = c.DoKey(clienttest.Request(t, r.method, "http://"+p.Addr+"/cold", r.body), "cold")
			if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Fatalf("on a dead connection: %v, want outcome unknown", err)
			}
			var e *oncehttp.Error
			if errors.As(err, &e); e.Sends != 1 {
				t.Errorf("Sends %d, want 1", e.Sends)
			}
			heads, bodies := p.Seen()
			if len(heads) != 2 || p.Conns != 1 {
				t.Fatalf("the server saw %d requests on %d connections, want 2 on one:\n%s", len(heads), p.Conns, strings.Join(heads, "\n--\n"))
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
		c, _ := clienttest.New(t, srv.Client().Transport, func(cfg *oncehttp.Config) { cfg.Retry = clienttest.Quick(2) })
		_, err := c.DoKey(clienttest.Request(t, "POST", srv.URL, body), "k2")
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Sends != 2 || seen.Load() != 2 {
			t.Errorf("body %q: %v; the server saw %d requests, want 2, unknown", body, err, seen.Load())
		}
		srv.Close()
	}
}

// nobody is an address where no connection is had: no system gives so low a port to
// those who ask for any, as other tests do.
const nobody = "127.0.0.1:1"

// TestUnsentProof: a connection that was asked for and never had is the only
// proof that nothing was sent. Real transports, real sockets.
func TestUnsentProof(t *testing.T) {
	t.Parallel()
	var handled atomic.Int32
	served := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled.Add(1) }))
	served.Config.ErrorLog = wiretest.Silent()
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
		{"connection refused", "http://" + nobody, &http.Transport{}, 3, true},
		{"no such host", "http://api.invalid", &http.Transport{DialContext: dialer(&net.DNSError{Err: "no such host", Name: "api.invalid", IsNotFound: true})}, 3, true},
		{"unknown authority is not asked again", served.URL, &http.Transport{}, 1, true},
		{"another name in the certificate", served.URL, &http.Transport{TLSClientConfig: strange(served)}, 1, true},
		{"the proxy did not let it through", "https://api.invalid", &http.Transport{Proxy: http.ProxyURL(proxyURL)}, 3, true},
		{"accepted, then closed", "http://" + closing.Addr().String(), &http.Transport{}, 3, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(r.rt.CloseIdleConnections)
			c, _ := clienttest.New(t, r.rt, func(cfg *oncehttp.Config) { cfg.Retry = clienttest.Quick(3) })
			_, err := c.DoKey(clienttest.Request(t, "POST", r.url, "{}"), "k")
			clienttest.ExactlyOne(t, err)
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

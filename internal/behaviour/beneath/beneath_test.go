// Package beneath_test tests docs/running.md: a proxy between a client and its API.
package beneath_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// send makes one attempt through a proxy.
func send(t *testing.T, target string) error {
	t.Helper()
	c, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Retry: oncehttp.Policy{MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.DoKey(req, "k")
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// hangsUp is the address of a sidecar that takes every connection, and closes it, since its API cannot be reached.
func hangsUp(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// TestBehindASidecar: a sidecar takes each connection, whether its API can be reached or not. So in plain HTTP nothing proves that nothing was
// sent. Where the program makes TLS itself, and the sidecar passes bytes on, the handshake that fails proves it.
func TestBehindASidecar(t *testing.T) {
	t.Parallel()
	nobody := httptest.NewServer(nil)
	nobody.Close()
	unreachable, err := url.Parse(nobody.URL)
	if err != nil {
		t.Fatal(err)
	}
	answers := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(unreachable) },
		ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, _ error) { rw.WriteHeader(http.StatusServiceUnavailable) },
	})
	t.Cleanup(answers.Close)
	for name, r := range map[string]struct {
		target string
		want   error
	}{
		"no sidecar":                     {nobody.URL, oncehttp.ErrNotSent},
		"it answers 503":                 {answers.URL, oncehttp.ErrOutcomeUnknown},
		"it hangs up":                    {"http://" + hangsUp(t), oncehttp.ErrOutcomeUnknown},
		"it hangs up in a TLS handshake": {"https://" + hangsUp(t), oncehttp.ErrNotSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := send(t, r.target)
			if !errors.Is(err, r.want) || errors.Is(err, oncehttp.ErrNotSent) != (r.want == oncehttp.ErrNotSent) {
				t.Errorf("%v, want %v", err, r.want)
			}
		})
	}
}

// TestRetriesBeneath: a proxy sends again by itself after a lost answer. The client counts one send, takes the 429 of the second one for the
// answer to its first, and says "no effect", which is false. Nothing in the client can see it: such retries must be off.
func TestRetriesBeneath(t *testing.T) {
	t.Parallel()
	var sends, effects atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		if sends.Add(1) == 1 {
			effects.Add(1)
			panic(http.ErrAbortHandler) // the answer is lost
		}
		rw.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(api.Close)
	proxy := func(retries int) string {
		p := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			for range 1 + retries {
				resp, err := http.Post(api.URL, req.Header.Get("Content-Type"), strings.NewReader("{}"))
				if err != nil {
					continue
				}
				_ = resp.Body.Close()
				rw.WriteHeader(resp.StatusCode)
				return
			}
			rw.WriteHeader(http.StatusServiceUnavailable)
		}))
		t.Cleanup(p.Close)
		return p.URL
	}
	err := send(t, proxy(1))
	if !errors.Is(err, oncehttp.ErrNoEffect) || effects.Load() != 1 || sends.Load() != 2 {
		t.Errorf("with retries beneath it: %v after %d sends and %d effects; docs/running.md says that this is a false ErrNoEffect", err, sends.Load(), effects.Load())
	}
	sends.Store(0)
	if err := send(t, proxy(0)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Errorf("without them: %v, want ErrOutcomeUnknown", err)
	}
}

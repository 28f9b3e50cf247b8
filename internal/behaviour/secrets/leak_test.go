package secrets_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// leaks collects every text that oncehttp gives out.
type leaks struct {
	mu    sync.Mutex
	texts []string
}

func (l *leaks) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, s)
}

func (l *leaks) Write(p []byte) (int, error) { l.add(string(p)); return len(p), nil }

// leaking is a request with a canary in userinfo, query, headers and body.
func leaking(t *testing.T, method, base string) *http.Request {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.RawQuery = url.UserPassword("u", clienttest.Canary), "token="+clienttest.Canary
	req := clienttest.Request(t, method, u.String(), `{"card":"`+clienttest.Canary+`"}`)
	req.Header.Set("Authorization", clienttest.Canary)
	req.Header.Set("X-Note", clienttest.Canary)
	return req
}

// TestNothingLeaks: over every kind of failure, no error, log line or event holds what
// stands in the userinfo, query, headers or body of a request or an answer.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	distrusted := httptest.NewTLSServer(http.NotFoundHandler())
	distrusted.Config.ErrorLog = wiretest.Silent()
	t.Cleanup(distrusted.Close)
	says := func(answer string) string { return "http://" + wiretest.NewTap(t, answer, answer, answer).Addr + "/p" }
	head := "Content-Length: 11\r\nX-Secret: " + clienttest.Canary + "\r\n\r\n" + clienttest.Canary
	fails := func(err error) http.RoundTripper {
		return wiretest.Func(func(*http.Request) (*http.Response, error) { return nil, err })
	}
	rows := map[string]struct {
		url string
		rt  http.RoundTripper
		cfg func(*oncehttp.Config)
	}{
		"refused connection":  {url: "http://" + gone.Addr().String() + "/p"},
		"unknown authority":   {url: distrusted.URL},
		"no HTTP":             {url: says(clienttest.Canary + " is no HTTP\r\n\r\n")},
		"malformed status":    {url: says("HTTP/1.1 " + clienttest.Canary + "\r\n\r\n")},
		"malformed header":    {url: says("HTTP/1.1 200 OK\r\n" + clienttest.Canary + "\r\n\r\n")},
		"malformed length":    {url: says("HTTP/1.1 200 OK\r\nContent-Length: " + clienttest.Canary + "\r\n\r\n")},
		"malformed chunk":     {url: says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + clienttest.Canary + "\r\n")},
		"malformed encoding":  {url: says("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + clienttest.Canary + "\r\n\r\n")},
		"HTTP on a TLS port":  {url: strings.Replace(says(wiretest.OK200), "http:", "https:", 1)},
		"hung up":             {url: says("")},
		"cut body":            {url: says(wiretest.ThenHangUp + "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + clienttest.Canary)},
		"400":                 {url: says("HTTP/1.1 400 Bad\r\n" + head)},
		"401":                 {url: says("HTTP/1.1 401 No\r\n" + head)},
		"409":                 {url: says("HTTP/1.1 409 Conflict\r\n" + head)},
		"422":                 {url: says("HTTP/1.1 422 No\r\nContent-Type: application/problem+json\r\n" + head)},
		"429":                 {url: says("HTTP/1.1 429 No\r\nRetry-After: 9999\r\n" + head)},
		"500":                 {url: says("HTTP/1.1 500 No " + clienttest.Canary + "\r\n" + head)},
		"replayed 500":        {url: says("HTTP/1.1 500 No\r\nIdempotent-Replayed: true\r\n" + head)},
		"redirect":            {url: says("HTTP/1.1 302 Found\r\nLocation: http://evil.example/?" + clienttest.Canary + "\r\n" + head)},
		"redirect, malformed": {url: says("HTTP/1.1 307 Found\r\nLocation: http://[" + clienttest.Canary + "\r\n" + head)},
		"a url.Error":         {rt: fails(&url.Error{Op: "Post", URL: "https://u:" + clienttest.Canary + "@h/?" + clienttest.Canary, Err: wiretest.ErrLost})},
		"a wrapped url.Error": {rt: fails(fmt.Errorf("traced: %w", &url.Error{Op: "Post", URL: "https://h/?" + clienttest.Canary, Err: wiretest.ErrLost}))},
		"a URL in a text":     {rt: fails(errors.New("POST https://u:" + clienttest.Canary + "@h/p?token=" + clienttest.Canary + ": EOF"))},
		"a target in a text":  {rt: fails(errors.New("POST /p?token=" + clienttest.Canary + " failed\nsecond line"))},
		"quoted bytes":        {rt: fails(fmt.Errorf("unexpected answer %q \\ %q", clienttest.Canary+`" `+clienttest.Canary, clienttest.Canary))},
		"Authorize fails": {url: says(wiretest.OK200), cfg: func(c *oncehttp.Config) {
			c.Authorize = func(*http.Request) error {
				return &url.Error{Op: "Post", URL: "https://auth.example/?secret=" + clienttest.Canary, Err: wiretest.ErrLost}
			}
		}},
		"NewKey fails": {url: says(wiretest.OK200), cfg: func(c *oncehttp.Config) {
			c.NewKey = func(*http.Request) (oncehttp.Key, error) {
				return "", &url.Error{Op: "Post", URL: "https://keys.example/?secret=" + clienttest.Canary, Err: wiretest.ErrLost}
			}
		}},
		"RequireKey":    {url: says(wiretest.OK200), cfg: func(c *oncehttp.Config) { c.RequireKey = true }},
		"too large":     {url: says(wiretest.OK200), cfg: func(c *oncehttp.Config) { c.MaxRequestBytes = 1 }},
		"journal fails": {url: says(wiretest.OK200), cfg: func(c *oncehttp.Config) { c.Journal = journaltest.Broken{Journal: c.Journal} }},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &leaks{}
			rt, base := r.rt, r.url
			if rt == nil {
				rt = wiretest.Transport(t)
			} else {
				base = "https://api.example.com/p"
			}
			c, _ := clienttest.New(t, rt, func(cfg *oncehttp.Config) {
				cfg.Retry = clienttest.Quick(2)
				cfg.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
				cfg.Observe = func(_ context.Context, e oncehttp.Event) { out.add(fmt.Sprintf("%+v", e)) }
				cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
					return oncehttp.Resolution{}, &url.Error{Op: "Get", URL: "https://h/?" + clienttest.Canary, Err: wiretest.ErrLost}
				}
				if r.cfg != nil {
					r.cfg(cfg)
				}
			})
			failures := 0
			keep := func(err error) {
				if err != nil {
					failures++
					out.add(err.Error())
					out.add(fmt.Sprintf("%v %s", err, err))
				}
			}
			for _, method := range []string{"POST", "GET", "PUT"} {
				resp, err := c.Do(leaking(t, method, base))
				keep(err)
				if resp != nil {
					resp.Body.Close()
				}
			}
			bad := leaking(t, "POST", base)
			bad.Body = io.NopCloser(wiretest.Failing{Err: &url.Error{Op: "Get", URL: "https://h/?" + clienttest.Canary, Err: wiretest.ErrLost}})
			_, err := c.Do(bad)
			keep(err)
			bad = leaking(t, "POST", base)
			bad.Header.Set("X-Bad", clienttest.Canary+"\n")
			_, err = c.Do(bad)
			keep(err)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			for _, err := range c.Resume(ctx) {
				keep(err)
			}
			if failures == 0 {
				t.Error("nothing failed")
			}
			for _, s := range out.texts {
				if strings.Contains(s, clienttest.Canary) || strings.Contains(s, "token=") {
					t.Errorf("leaked: %s", s)
				}
			}
		})
	}
}

// traced is what a tracing transport wraps around an error.
type traced struct{ err error }

func (e *traced) Error() string { return "traced: " + e.err.Error() }
func (e *traced) Unwrap() error { return e.err }

// TestForeignErrorsAreFound: whatever was cut from its text, an error is found by type
// and by identity as it came.
func TestForeignErrorsAreFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: &traced{&url.Error{Op: "Post", URL: "https://h/?" + clienttest.Canary, Err: wiretest.ErrLost}}}}}
		c, _ := clienttest.New(t, w, nil)
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		var wrapper *traced
		if !errors.As(err, &wrapper) || !errors.Is(err, wiretest.ErrLost) || strings.Contains(err.Error(), clienttest.Canary) {
			t.Errorf("%v, want *traced and %v without the URL", err, wiretest.ErrLost)
		}
	})
}

// TestErrorsAreOneLine: also where somebody else's error is not.
func TestErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		odd := errors.New("one\ntwo\r\n" + strings.Repeat("x", 1000))
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: odd}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 })
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if !errors.Is(err, odd) || strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 600 || !strings.HasPrefix(err.Error(), "oncehttp: ") {
			t.Errorf("%q", err)
		}
	})
}

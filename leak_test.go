package oncehttp_test

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
	"time"

	"github.com/oncehttp/oncehttp"
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
	u.User, u.RawQuery = url.UserPassword("u", canary), "token="+canary
	req := request(t, method, u.String(), `{"card":"`+canary+`"}`)
	req.Header.Set("Authorization", canary)
	req.Header.Set("X-Note", canary)
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
	distrusted.Config.ErrorLog = silent()
	t.Cleanup(distrusted.Close)
	says := func(answer string) string { return "http://" + newTap(t, answer, answer, answer).addr + "/p" }
	head := "Content-Length: 11\r\nX-Secret: " + canary + "\r\n\r\n" + canary
	fails := func(err error) http.RoundTripper {
		return tripper(func(*http.Request) (*http.Response, error) { return nil, err })
	}
	rows := map[string]struct {
		url string
		rt  http.RoundTripper
		cfg func(*oncehttp.Config)
	}{
		"refused connection":  {url: "http://" + gone.Addr().String() + "/p"},
		"unknown authority":   {url: distrusted.URL},
		"no HTTP":             {url: says(canary + " is no HTTP\r\n\r\n")},
		"malformed status":    {url: says("HTTP/1.1 " + canary + "\r\n\r\n")},
		"malformed header":    {url: says("HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n")},
		"malformed length":    {url: says("HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n")},
		"malformed chunk":     {url: says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + canary + "\r\n")},
		"malformed encoding":  {url: says("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + canary + "\r\n\r\n")},
		"HTTP on a TLS port":  {url: strings.Replace(says(ok200), "http:", "https:", 1)},
		"hung up":             {url: says("")},
		"cut body":            {url: says(thenHangUp + "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + canary)},
		"400":                 {url: says("HTTP/1.1 400 Bad\r\n" + head)},
		"401":                 {url: says("HTTP/1.1 401 No\r\n" + head)},
		"409":                 {url: says("HTTP/1.1 409 Conflict\r\n" + head)},
		"422":                 {url: says("HTTP/1.1 422 No\r\nContent-Type: application/problem+json\r\n" + head)},
		"429":                 {url: says("HTTP/1.1 429 No\r\nRetry-After: 9999\r\n" + head)},
		"500":                 {url: says("HTTP/1.1 500 No " + canary + "\r\n" + head)},
		"replayed 500":        {url: says("HTTP/1.1 500 No\r\nIdempotent-Replayed: true\r\n" + head)},
		"redirect":            {url: says("HTTP/1.1 302 Found\r\nLocation: http://evil.example/?" + canary + "\r\n" + head)},
		"redirect, malformed": {url: says("HTTP/1.1 307 Found\r\nLocation: http://[" + canary + "\r\n" + head)},
		"a url.Error":         {rt: fails(&url.Error{Op: "Post", URL: "https://u:" + canary + "@h/?" + canary, Err: errLost})},
		"a wrapped url.Error": {rt: fails(fmt.Errorf("traced: %w", &url.Error{Op: "Post", URL: "https://h/?" + canary, Err: errLost}))},
		"a URL in a text":     {rt: fails(errors.New("POST https://u:" + canary + "@h/p?token=" + canary + ": EOF"))},
		"a target in a text":  {rt: fails(errors.New("POST /p?token=" + canary + " failed\nsecond line"))},
		"quoted bytes":        {rt: fails(fmt.Errorf("unexpected answer %q \\ %q", canary+`" `+canary, canary))},
		"Authorize fails": {url: says(ok200), cfg: func(c *oncehttp.Config) {
			c.Authorize = func(*http.Request) error {
				return &url.Error{Op: "Post", URL: "https://auth.example/?secret=" + canary, Err: errLost}
			}
		}},
		"NewKey fails": {url: says(ok200), cfg: func(c *oncehttp.Config) {
			c.NewKey = func(*http.Request) (oncehttp.Key, error) {
				return "", &url.Error{Op: "Post", URL: "https://keys.example/?secret=" + canary, Err: errLost}
			}
		}},
		"RequireKey":    {url: says(ok200), cfg: func(c *oncehttp.Config) { c.RequireKey = true }},
		"too large":     {url: says(ok200), cfg: func(c *oncehttp.Config) { c.MaxRequestBytes = 1 }},
		"journal fails": {url: says(ok200), cfg: func(c *oncehttp.Config) { c.Journal = broken{c.Journal} }},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &leaks{}
			rt, base := r.rt, r.url
			if rt == nil {
				rt = private(t)
			} else {
				base = "https://api.example.com/p"
			}
			c, _ := newClient(t, rt, func(cfg *oncehttp.Config) {
				cfg.Retry = quick(2)
				cfg.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
				cfg.Observe = func(_ context.Context, e oncehttp.Event) { out.add(fmt.Sprintf("%+v", e)) }
				cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
					return oncehttp.Resolution{}, &url.Error{Op: "Get", URL: "https://h/?" + canary, Err: errLost}
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
			bad.Body = io.NopCloser(failing{&url.Error{Op: "Get", URL: "https://h/?" + canary, Err: errLost}})
			_, err := c.Do(bad)
			keep(err)
			bad = leaking(t, "POST", base)
			bad.Header.Set("X-Bad", canary+"\n")
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
				if strings.Contains(s, canary) || strings.Contains(s, "token=") {
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
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{err: &traced{&url.Error{Op: "Post", URL: "https://h/?" + canary, Err: errLost}}}}}
		c, _ := newClient(t, w, nil)
		_, err := c.DoKey(post(t, "{}"), "k")
		var wrapper *traced
		if !errors.As(err, &wrapper) || !errors.Is(err, errLost) || strings.Contains(err.Error(), canary) {
			t.Errorf("%v, want *traced and %v without the URL", err, errLost)
		}
	})
}

// TestErrorsAreOneLine: also where somebody else's error is not.
func TestErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		odd := errors.New("one\ntwo\r\n" + strings.Repeat("x", 1000))
		w := &wire{replies: []reply{{err: odd}}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 })
		_, err := c.DoKey(post(t, "{}"), "k")
		if !errors.Is(err, odd) || strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 600 || !strings.HasPrefix(err.Error(), "oncehttp: ") {
			t.Errorf("%q", err)
		}
	})
}

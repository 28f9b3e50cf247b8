package oncehttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// secretHeaders are the credentials that the rule names, and some that only look
// like one.
func secretHeaders() []string {
	return []string{
		"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Apikey", "api_key", "X-Auth-Token", "X-Client-Secret",
		"X-Signature", "X-Amz-Security-Token", "X-Password", "x-CREDENTIAL-id",
	}
}

const canary = "c4n4ry-7f3a"

// guardedRequest has a canary in every credential.
func guardedRequest(t *testing.T) *http.Request {
	t.Helper()
	req := request(t, "POST", "https://user:"+canary+"@api.example.com/payments", "{}")
	for _, name := range secretHeaders() {
		req.Header[name] = []string{canary}
	}
	req.Header.Set("X-Trace", "kept")
	return req
}

// TestCredentialsAreNeverJournaled: they are on the wire and not in the file, nor
// are those of the answer; the record names what it left out.
func TestCredentialsAreNeverJournaled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j.db")
	w := &wire{replies: []reply{{status: 201, header: "Set-Cookie: " + canary + "\nX-Refresh-Token: " + canary + "\nX-Id: 7"}, {err: errLost}}}
	c, err := oncehttp.Open(path, oncehttp.Config{Transport: w, Retry: oncehttp.Policy{MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.DoKey(guardedRequest(t), "done")
	if err != nil || resp.Header.Get("Set-Cookie") != canary {
		t.Fatalf("%v: the caller's own answer has its cookie", err)
	}
	if _, err := c.DoKey(guardedRequest(t), "lost"); err == nil {
		t.Fatal("no error")
	}
	for _, s := range w.sends {
		for _, name := range secretHeaders() {
			if got := s.header[name]; name != "Authorization" && !slices.Equal(got, []string{canary}) {
				t.Errorf("%s was sent as %v", name, got)
			}
		}
	}
	for _, key := range []oncehttp.Key{"done", "lost"} {
		rec := lookup(t, c, key)
		if rec.Header.Get("X-Trace") != "kept" || !slices.Contains(rec.Omitted, "userinfo") || !slices.Contains(rec.Omitted, "X-Api-Key") || len(rec.Omitted) != len(secretHeaders())+1 {
			t.Errorf("%s: header %v, omitted %v", key, rec.Header, rec.Omitted)
		}
	}
	if rec := lookup(t, c, "done"); rec.Answer.Header.Get("X-Id") != "7" {
		t.Errorf("the answer's header %v", rec.Answer.Header)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(raw, []byte("X-Trace")) || bytes.Contains(raw, []byte(canary)) {
		t.Errorf("the journal (%d bytes, %v) holds a credential: %v", len(raw), err, bytes.Contains(raw, []byte(canary)))
	}
}

// TestKeepHeader may keep one.
func TestKeepHeader(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201}}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
			cfg.KeepHeader = func(name string) bool { return name == "X-Page-Token" }
		})
		req := post(t, "{}")
		req.Header.Set("X-Page-Token", "7")
		if err := c.Enqueue(req, "k"); err != nil {
			t.Fatal(err)
		}
		for _, err := range c.Resume(t.Context()) {
			if err != nil {
				t.Error(err)
			}
		}
		if rec := lookup(t, c, "k"); len(rec.Omitted) != 0 || w.sends[0].header.Get("X-Page-Token") != "7" {
			t.Errorf("omitted %v, sent %v", rec.Omitted, w.sends[0].header)
		}
	})
}

// TestCredentialsOfResume: Do fills them from the caller's request, also where a
// record stands; Resume has Authorize, and without it yields an error and goes on;
// Enqueue without Authorize is ErrConfig at once.
func TestCredentialsOfResume(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		w := &wire{replies: []reply{{err: errLost}, {err: errLost}, {status: 201}}}
		cfg := oncehttp.Config{Journal: j, Transport: w, Retry: oncehttp.Policy{MaxAttempts: 1, MinDelay: 1, MaxDelay: 1}}
		c, err := oncehttp.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Enqueue(guardedRequest(t), "queued"); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("Enqueue without Authorize: %v", err)
		}
		for _, key := range []oncehttp.Key{"a", "b"} {
			req := guardedRequest(t)
			if key == "b" {
				req = post(t, "{}")
			}
			if _, err := c.DoKey(req, key); err == nil {
				t.Fatal("no error")
			}
		}
		time.Sleep(time.Minute)
		var failed, done int
		for res, err := range c.Resume(t.Context()) {
			switch {
			case errors.Is(err, oncehttp.ErrConfig) && errors.Is(err, oncehttp.ErrOutcomeUnknown) && res.Key == "a":
				failed++
			case err == nil && res.Key == "b":
				done++
			default:
				t.Errorf("%+v: %v", res, err)
			}
		}
		if failed != 1 || done != 1 || lookup(t, c, "a").State != persist.Pending {
			t.Errorf("%d failed for want of credentials, %d done; want 1 and 1", failed, done)
		}
		cfg.Authorize = func(req *http.Request) error {
			if req.Header.Get("Idempotency-Key") == "" {
				t.Error("Authorize does not see the key")
			}
			req.Header.Set("Authorization", "Bearer fresh")
			return nil
		}
		signing, err := oncehttp.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer signing.Close()
		for res, err := range signing.Resume(t.Context()) {
			if err != nil || res.Key != "a" {
				t.Errorf("%+v: %v", res, err)
			}
		}
		last := w.sends[len(w.sends)-1]
		if last.key != "a" || last.header.Get("Authorization") != "Bearer fresh" || last.header.Get("X-Api-Key") != "" {
			t.Errorf("resumed with %v", last.header)
		}
	})
}

// TestStandingRecordTakesTheCallersCredentials: they may have changed since.
func TestStandingRecordTakesTheCallersCredentials(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 })
		for _, token := range []string{"old", "new"} {
			req := post(t, "{}")
			req.Header.Set("Authorization", token)
			_, _ = c.DoKey(req, "k")
		}
		if got := w.sends[1].header.Get("Authorization"); got != "new" || w.sends[1].key != "k" {
			t.Errorf("the second call went on with %q", got)
		}
	})
}

// TestAuthorize: before every send it gets a clone; afterwards method, URL, key and
// body must be what they were, else nothing is sent.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		change func(*http.Request)
		sent   bool
	}{
		"headers":             {func(r *http.Request) { r.Header.Set("X-Sign", "s"); r.Header.Del("X-Trace") }, true},
		"reads the body":      {func(r *http.Request) { _, _ = io.ReadAll(r.Body) }, true},
		"same bytes again":    {func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("{}")) }, true},
		"uses GetBody":        {func(r *http.Request) { r.Body, _ = r.GetBody() }, true},
		"other bytes":         {func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("[]")) }, false},
		"more bytes":          {func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("{} ")) }, false},
		"no bytes":            {func(r *http.Request) { r.Body = http.NoBody }, false},
		"another method":      {func(r *http.Request) { r.Method = "PUT" }, false},
		"another path":        {func(r *http.Request) { r.URL.Path = "/x" }, false},
		"another query":       {func(r *http.Request) { r.URL.RawQuery = "" }, false},
		"another host":        {func(r *http.Request) { r.URL.Host = "evil.example" }, false},
		"another Host header": {func(r *http.Request) { r.Host = "evil.example" }, false},
		"no URL":              {func(r *http.Request) { r.URL = nil }, false},
		"another key":         {func(r *http.Request) { r.Header.Set("Idempotency-Key", "other") }, false},
		"no key":              {func(r *http.Request) { r.Header.Del("Idempotency-Key") }, false},
		"a second key":        {func(r *http.Request) { r.Header.Add("Idempotency-Key", "k") }, false},
		"a key spelled twice": {func(r *http.Request) { r.Header["idempotency-key"] = []string{"k"} }, false},
		"no headers at all":   {func(r *http.Request) { r.Header = nil }, false},
	}
	for name, r := range rows {
		for _, body := range []string{"{}", ""} {
			if body == "" && strings.Contains(strings.ToLower(name), "b") {
				continue
			}
			t.Run(name+" "+body, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
					calls := 0
					c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
						cfg.Authorize = func(req *http.Request) error {
							calls++
							if req.Header.Get("Idempotency-Key") != "k" {
								t.Errorf("Authorize sees the headers %v", req.Header)
							}
							r.change(req)
							return nil
						}
					})
					req := request(t, "POST", "https://api.example.com/payments?via=test", body)
					req.Header.Set("X-Trace", "kept")
					_, err := c.DoKey(req, "k")
					if r.sent {
						if err != nil || w.count() != 2 || calls != 2 {
							t.Fatalf("%v after %d sends and %d calls, want 2 and 2", err, w.count(), calls)
						}
						if s := w.sends[1]; s.key != "k" || s.body != body || name == "headers" && (s.header.Get("X-Sign") != "s" || s.header.Get("X-Trace") != "") {
							t.Errorf("sent %+v", s)
						}
						return
					}
					exactlyOne(t, err)
					if !errors.Is(err, oncehttp.ErrNotSent) || w.count() != 0 || calls != 1 {
						t.Errorf("%v after %d sends, want ErrNotSent", err, w.count())
					}
				})
			})
		}
	}
}

// TestAuthorizeTakesTooLong: what it takes ends with the attempt, proves that
// nothing was sent, and may be tried again.
func TestAuthorizeTakesTooLong(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w, calls := &wire{replies: []reply{{status: 201}}}, 0
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(req *http.Request) error {
				if calls++; calls == 1 {
					<-req.Context().Done()
					return req.Context().Err()
				}
				return nil
			}
		})
		start := time.Now()
		if _, err := c.DoKey(post(t, "{}"), "k"); err != nil || calls != 2 || w.count() != 1 {
			t.Errorf("%v after %d calls and %d sends", err, calls, w.count())
		}
		if took := time.Since(start); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("it took %v, want the attempt timeout", took)
		}
	})
}

// TestScopingHeaders: two accounts never share a record, however the header that
// tells them apart is spelled in the map.
func TestScopingHeaders(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201, body: "a"}, {status: 201, body: "b"}, {status: 201, body: "none"}}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() })
		for i, want := range []string{"a", "b", "none"} {
			req := post(t, "{}")
			switch i {
			case 0:
				req.Header.Set("Stripe-Account", "acct_a")
			case 1:
				req.Header["stripe-account"] = []string{"acct_b"}
			}
			resp, err := c.DoKey(req, "k")
			if err != nil || read(t, resp) != want {
				t.Errorf("account %d: %v, want an answer of its own", i, err)
			}
		}
	})
}

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

// TestNothingLeaks is RETRY-LAYER P21 and done-when "no secret or body in logs or
// errors": over every kind of failure, no error, log line or event holds what
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

// TestForeignErrorsAreFound is RETRY-LAYER P29: whatever was cut from its text, an
// error is found by type and by identity as it came.
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

package secrets_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
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

// guardedRequest has a canary in every credential.
func guardedRequest(t *testing.T) *http.Request {
	t.Helper()
	req := clienttest.Request(t, "POST", "https://user:"+clienttest.Canary+"@api.example.com/payments", "{}")
	for _, name := range secretHeaders() {
		req.Header[name] = []string{clienttest.Canary}
	}
	req.Header.Set("X-Trace", "kept")
	return req
}

// TestCredentialsAreNeverJournaled: they are on the wire and not in the file, nor
// are those of the answer; the record names what it left out.
func TestCredentialsAreNeverJournaled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testrun.Dir(t), "j.db")
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Header: "Set-Cookie: " + clienttest.Canary + "\nX-Refresh-Token: " + clienttest.Canary + "\nX-Id: 7"}, {Err: wiretest.ErrLost}}}
	c, err := oncehttp.Open(path, oncehttp.Config{Transport: w, Retry: oncehttp.Policy{MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.DoKey(guardedRequest(t), "done")
	if err != nil || resp.Header.Get("Set-Cookie") != clienttest.Canary {
		t.Fatalf("%v: the caller's own answer has its cookie", err)
	}
	if _, err := c.DoKey(guardedRequest(t), "lost"); err == nil {
		t.Fatal("no error")
	}
	for _, s := range w.Sends {
		for _, name := range secretHeaders() {
			if got := s.Header[name]; name != "Authorization" && !slices.Equal(got, []string{clienttest.Canary}) {
				t.Errorf("%s was sent as %v", name, got)
			}
		}
	}
	for _, key := range []oncehttp.Key{"done", "lost"} {
		rec := clienttest.Lookup(t, c, key)
		if rec.Header.Get("X-Trace") != "kept" || !slices.Contains(rec.Omitted, "userinfo") || !slices.Contains(rec.Omitted, "X-Api-Key") || len(rec.Omitted) != len(secretHeaders())+1 {
			t.Errorf("%s: header %v, omitted %v", key, rec.Header, rec.Omitted)
		}
	}
	if rec := clienttest.Lookup(t, c, "done"); rec.Answer.Header.Get("X-Id") != "7" {
		t.Errorf("the answer's header %v", rec.Answer.Header)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(raw, []byte("X-Trace")) || bytes.Contains(raw, []byte(clienttest.Canary)) {
		t.Errorf("the journal (%d bytes, %v) holds a credential: %v", len(raw), err, bytes.Contains(raw, []byte(clienttest.Canary)))
	}
}

// TestKeepHeader may keep one.
func TestKeepHeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.KeepHeader = func(name string) bool { return name == "X-Page-Token" }
		})
		req := clienttest.Post(t, "{}")
		req.Header.Set("X-Page-Token", "7")
		if err := c.Enqueue(req, "k"); err != nil {
			t.Fatal(err)
		}
		for _, err := range c.Resume(t.Context()) {
			if err != nil {
				t.Error(err)
			}
		}
		if rec := clienttest.Lookup(t, c, "k"); len(rec.Omitted) != 0 || w.Sends[0].Header.Get("X-Page-Token") != "7" {
			t.Errorf("omitted %v, sent %v", rec.Omitted, w.Sends[0].Header)
		}
	})
}

// TestCredentialsOfResume: Do fills them from the caller's request, also where a
// record stands; Resume has Authorize, and without it yields an error and goes on;
// Enqueue without Authorize is ErrConfig at once.
func TestCredentialsOfResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Err: wiretest.ErrLost}, {Status: 201}}}
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
				req = clienttest.Post(t, "{}")
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
		if failed != 1 || done != 1 || clienttest.Lookup(t, c, "a").State != persist.StatePending {
			t.Errorf("%d failed for want of credentials, %d done; want 1 and 1", failed, done)
		}
		cfg.Origins = clienttest.Origins()
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
		time.Sleep(time.Nanosecond) // what a pass could not run is due again after the moment at which it began
		for res, err := range signing.Resume(t.Context()) {
			if err != nil || res.Key != "a" {
				t.Errorf("%+v: %v", res, err)
			}
		}
		last := w.Sends[len(w.Sends)-1]
		if last.Key != "a" || last.Header.Get("Authorization") != "Bearer fresh" || last.Header.Get("X-Api-Key") != "" {
			t.Errorf("resumed with %v", last.Header)
		}
	})
}

// TestStandingRecordTakesTheCallersCredentials: of an account they may have changed since.
func TestStandingRecordTakesTheCallersCredentials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts, cfg.Account = 1, "shop" })
		for _, token := range []string{"old", "new"} {
			req := clienttest.Post(t, "{}")
			req.Header.Set("Authorization", token)
			_, _ = c.DoKey(req, "k")
		}
		if got := w.Sends[1].Header.Get("Authorization"); got != "new" || w.Sends[1].Key != "k" {
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
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
					calls := 0
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						cfg.Authorize = func(req *http.Request) error {
							calls++
							if req.Header.Get("Idempotency-Key") != "k" {
								t.Errorf("Authorize sees the headers %v", req.Header)
							}
							r.change(req)
							return nil
						}
					})
					req := clienttest.Request(t, "POST", "https://api.example.com/payments?via=test", body)
					req.Header.Set("X-Trace", "kept")
					_, err := c.DoKey(req, "k")
					if r.sent {
						if err != nil || w.Count() != 2 || calls != 2 {
							t.Fatalf("%v after %d sends and %d calls, want 2 and 2", err, w.Count(), calls)
						}
						if s := w.Sends[1]; s.Key != "k" || s.Body != body || name == "headers" && (s.Header.Get("X-Sign") != "s" || s.Header.Get("X-Trace") != "") {
							t.Errorf("sent %+v", s)
						}
						return
					}
					clienttest.ExactlyOne(t, err)
					if !errors.Is(err, oncehttp.ErrNotSent) || w.Count() != 0 || calls != 1 {
						t.Errorf("%v after %d sends, want ErrNotSent", err, w.Count())
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
	synctest.Test(t, func(t *testing.T) {
		w, calls := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, 0
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(req *http.Request) error {
				if calls++; calls == 1 {
					<-req.Context().Done()
					return req.Context().Err()
				}
				return nil
			}
		})
		start := time.Now()
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || calls != 2 || w.Count() != 1 {
			t.Errorf("%v after %d calls and %d sends", err, calls, w.Count())
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
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "a"}, {Status: 201, Body: "b"}, {Status: 201, Body: "none"}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() })
		for i, want := range []string{"a", "b", "none"} {
			req := clienttest.Post(t, "{}")
			switch i {
			case 0:
				req.Header.Set("Stripe-Account", "acct_a")
			case 1:
				req.Header["stripe-account"] = []string{"acct_b"}
			}
			resp, err := c.DoKey(req, "k")
			if err != nil || clienttest.Read(t, resp) != want {
				t.Errorf("account %d: %v, want an answer of its own", i, err)
			}
		}
	})
}

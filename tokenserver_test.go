package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// tokenServer is a token server and an API that takes its tokens, as a transport in virtual time. Of its first requests for a
// token some are lost after the token was made, cut off, or throttled for a minute; its tokens last for ten minutes, and
// the API takes no token that was revoked.
type tokenServer struct {
	mu       sync.Mutex
	script   []string // of the requests for a token: "lost", "cut", "throttle"; then it answers
	asked    []time.Time
	valid    map[string]time.Time
	refused  int            // requests with a token that is not valid
	effects  map[string]int // by key
	hasKey   bool           // a request for a token had an idempotency key
	openTill time.Time      // throttled until then
	early    int            // requests for a token that came while it was throttled
}

func (s *tokenServer) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	if req.URL.Path == "/token" {
		return s.token(req)
	}
	if till, known := s.valid[strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")]; !known || !time.Now().Before(till) {
		s.refused++
		return answerOf(req, 401, nil, "no"), nil
	}
	s.effects[req.Header.Get("Idempotency-Key")]++
	return answerOf(req, 201, nil, `{"id":"p"}`), nil
}

func (s *tokenServer) token(req *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, time.Now())
	s.hasKey = s.hasKey || req.Header.Get("Idempotency-Key") != ""
	if time.Now().Before(s.openTill) {
		s.early++
	}
	step := ""
	if len(s.script) > 0 {
		step, s.script = s.script[0], s.script[1:]
	}
	if step == "throttle" {
		s.openTill = time.Now().Add(time.Minute)
		return answerOf(req, 429, http.Header{"Retry-After": {"60"}}, ""), nil
	}
	token := fmt.Sprintf("token-%d", len(s.asked))
	s.valid[token] = time.Now().Add(10 * time.Minute)
	body := fmt.Sprintf(`{"access_token":%q,"expires_in":600}`, token)
	switch step {
	case "lost":
		return nil, wiretest.ErrLost
	case "cut":
		return answerOf(req, 200, nil, body[:len(body)-3]), nil
	}
	return answerOf(req, 200, nil, body), nil
}

// revoke makes every token invalid at once.
func (s *tokenServer) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.valid)
}

func answerOf(req *http.Request, status int, header http.Header, body string) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

// withTokens is a client whose Authorize is that of docs/credentials.md.
func withTokens(t *testing.T, server *tokenServer) (*oncehttp.Client, persist.Journal) {
	t.Helper()
	server.valid, server.effects = map[string]time.Time{}, map[string]int{}
	access := newAccessTokens("https://login.example.com/token")
	access.http.Transport = server
	return clienttest.New(t, server, func(cfg *oncehttp.Config) {
		cfg.Journal, cfg.Authorize, cfg.Observe = memory.New(), access.authorize, access.observe
	})
}

// TestAccessTokens: with the Authorize of docs/credentials.md, beside a token server that loses answers, throttles and revokes, each
// operation takes effect once, one token serves all workers, and no request for a token is an operation.
func TestAccessTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &tokenServer{script: []string{"lost", "cut", "throttle", "throttle"}}
		c, j := withTokens(t, server)
		const n = 20
		enqueue := func(from int) {
			for i := range n {
				req := clienttest.Request(t, "POST", "https://api.example.com/payments", "{}")
				req.Header.Set("Authorization", "Bearer of-the-caller")
				if err := c.Enqueue(req, oncehttp.Key(fmt.Sprintf("order%d", from+i))); err != nil {
					t.Fatal(err)
				}
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		paid := func(want int, asked int, what string) {
			t.Helper()
			time.Sleep(3 * time.Hour)
			synctest.Wait()
			server.mu.Lock()
			defer server.mu.Unlock()
			for key, effects := range server.effects {
				if effects != 1 {
					t.Errorf("%s: %d effects of %s", what, effects, key)
				}
			}
			if len(server.effects) != want || len(server.asked) != asked {
				t.Errorf("%s: %d operations took effect, want %d; %d requests for a token, want %d", what, len(server.effects), want, len(server.asked), asked)
			}
		}
		enqueue(0)
		paid(n, 5, "lost, cut, throttled twice")
		enqueue(n) // the token is over by now
		paid(2*n, 6, "over")
		enqueue(2 * n)
		paid(3*n, 7, "over again")
		if server.refused != 0 {
			t.Errorf("the API refused %d requests; a token that is over is not used", server.refused)
		}
		if server.early != 0 || server.hasKey {
			t.Errorf("%d requests for a token while it was throttled, one with a key: %t", server.early, server.hasKey)
		}
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for rec, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
			if err != nil || rec.State != persist.StateConfirmed || strings.Contains(fmt.Sprintf("%+v", rec), "token-") {
				t.Errorf("%v, %v: want what was confirmed, and no token", rec.State, err)
			}
		}
	})
}

// TestAccessTokenRevoked: a token that the API refuses before its time is thrown away, and the same call fetches another and succeeds. Where none is to
// be had, nothing happened, and the same call may be made again.
func TestAccessTokenRevoked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &tokenServer{}
		c, _ := withTokens(t, server)
		do := func(key oncehttp.Key) error {
			resp, err := c.DoKey(clienttest.Request(t, "POST", "https://api.example.com/payments", "{}"), key)
			if err == nil {
				_ = resp.Body.Close()
			}
			return err
		}
		if err := do("a"); err != nil {
			t.Fatal(err)
		}
		server.revoke()
		if err := do("b"); err != nil {
			t.Errorf("with a revoked token: %v; want a second send with another one", err)
		}
		if len(server.asked) != 2 || server.refused != 1 || server.effects["b"] != 1 {
			t.Errorf("%d tokens, %d refused, effects %v", len(server.asked), server.refused, server.effects)
		}
		server.revoke()
		server.script = []string{"lost"}
		if err := do("c"); !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrRefused) {
			t.Errorf("with a revoked token, and no other: %v; want ErrNoEffect and ErrRefused", err)
		}
		if err := do("c"); err != nil || server.refused != 2 || server.effects["c"] != 1 {
			t.Errorf("the second time: %v, %d refused, effects %v", err, server.refused, server.effects)
		}
	})
}

// TestAccessTokenRevokedQueue: an enqueued operation whose token the API refuses goes out with another token at once, or waits for Retry.MaxDelay where
// none is to be had.
func TestAccessTokenRevokedQueue(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]time.Duration{"": 0, "lost": 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) { testAccessTokenRevokedQueue(t, script, want) })
	}
}

func testAccessTokenRevokedQueue(t *testing.T, script string, want time.Duration) {
	server := &tokenServer{}
	c, _ := withTokens(t, server)
	resp, err := c.DoKey(clienttest.Request(t, "POST", "https://api.example.com/payments", "{}"), "a")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	server.revoke()
	server.script = []string{script}
	clienttest.Must(t, c.Enqueue(clienttest.Request(t, "POST", "https://api.example.com/payments", "{}"), "b"))
	effects := func() int {
		server.mu.Lock()
		defer server.mu.Unlock()
		return server.effects["b"]
	}
	began := time.Now()
	go func() { _ = c.Run(t.Context()) }()
	synctest.Wait()
	for effects() == 0 && time.Since(began) < time.Hour {
		time.Sleep(time.Second)
	}
	if took := time.Since(began); took < want || took > 2*want || effects() != 1 {
		t.Errorf("%q: sent %d times, after %v; docs/credentials.md says after %v", script, effects(), took, want)
	}
}

// TestAccessTokenWaits: who waits for the fetch of another leaves when its own context ends.
func TestAccessTokenWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		access := newAccessTokens("https://login.example.com/token")
		access.http.Transport = never{}
		for range 2 {
			go func() { _, _ = access.get(t.Context()) }()
		}
		synctest.Wait()
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		began := time.Now()
		if _, err := access.get(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v; want the end of its own context", err, time.Since(began))
		}
		time.Sleep(time.Minute) // the http.Client's timeout ends the others
	})
}

// never answers until the request's context ends.
type never struct{}

func (never) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, context.Cause(req.Context())
}

// TestCredentialsPageShowsTheExample: the code of docs/credentials.md is that of the example, which these tests run.
func TestCredentialsPageShowsTheExample(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("tokenserver_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/credentials.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(source), "\n// ----\n")
	if len(parts) != 3 {
		t.Fatalf("%d parts between lines of dashes", len(parts))
	}
	if code := strings.TrimSpace(parts[1]); !strings.Contains(string(page), "```go\n"+code+"\n```") {
		t.Error("docs/credentials.md does not have the code of tokenserver_example_test.go between its lines of dashes")
	}
}

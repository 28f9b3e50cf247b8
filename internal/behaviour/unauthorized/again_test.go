// Package unauthorized tests what follows when an API refuses the credentials of a send.
package unauthorized

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
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
	"github.com/oncehttp/oncehttp/profile"
)

// source gives the token of the moment, as Config.Authorize.
type source struct {
	mu    sync.Mutex
	token string
	calls int
}

func (s *source) set(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

func (s *source) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *source) authorize(req *http.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.token == "" {
		return errors.New("there is no token")
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	return nil
}

// api takes one token, which it looks at 5 ms after a request came.
type api struct {
	mu      sync.Mutex
	token   string
	effects map[string]int // by key
	sends   int
	refused int
}

func (a *api) set(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = token
}

// count returns the number of keys with an effect, and of requests, refused ones and all.
func (a *api) count() (effects, refused, sends int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.effects), a.refused, a.sends
}

func (a *api) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	time.Sleep(5 * time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	status := 201
	if a.sends++; req.Header.Get("Authorization") != "Bearer "+a.token {
		a.refused++
		status = 401
	} else {
		if a.effects == nil {
			a.effects = map[string]int{}
		}
		a.effects[wiretest.Key(req.Header)]++
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: req,
	}, nil
}

// pay makes one call, and returns its error.
func pay(t *testing.T, c *oncehttp.Client, key string) error {
	t.Helper()
	resp, err := c.DoKey(clienttest.Post(t, "{}"), oncehttp.Key(key))
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

// isRefused checks the error of a call whose credentials were refused: nothing happened.
func isRefused(t *testing.T, name string, err error) {
	t.Helper()
	if !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrRefused) {
		t.Errorf("%s: %v; want ErrNoEffect and ErrRefused", name, err)
	}
}

// TestRevokedUnderLoad: where the source already has the new token when the old one is revoked, no call fails, and each takes effect once.
func TestRevokedUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source, server := &source{token: "0"}, &api{token: "0"}
		c, _ := clienttest.New(t, server, func(cfg *oncehttp.Config) { cfg.Authorize = source.authorize })
		const callers, each = 20, 50
		var calls sync.WaitGroup
		for i := range callers {
			calls.Go(func() {
				time.Sleep(time.Duration(i) * 200 * time.Microsecond)
				for n := range each {
					if err := pay(t, c, fmt.Sprintf("order-%d-%d", i, n)); err != nil {
						t.Errorf("caller %d: %v", i, err)
					}
				}
			})
		}
		for n := 1; n < 5; n++ {
			time.Sleep(50*time.Millisecond + time.Microsecond)
			source.set(fmt.Sprint(n))
			server.set(fmt.Sprint(n))
		}
		calls.Wait()
		for key, effects := range server.effects {
			if effects != 1 {
				t.Errorf("%s took effect %d times", key, effects)
			}
		}
		effects, refused, sends := server.count()
		if effects != callers*each || refused < callers || sends != effects+refused {
			t.Errorf("%d operations took effect, want %d; %d of %d sends were refused, want some, and one more send for each", effects, callers*each, refused, sends)
		}
	})
}

// TestSourceIsLate: a source that has the new token 200 ms after the revocation does not save the calls of that time. They say so, and the same
// calls may be made again.
func TestSourceIsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source, server := &source{token: "old"}, &api{token: "new"}
		c, _ := clienttest.New(t, server, func(cfg *oncehttp.Config) { cfg.Authorize = source.authorize })
		time.AfterFunc(200*time.Millisecond, func() { source.set("new") })
		began := time.Now()
		isRefused(t, "before", pay(t, c, "k"))
		if _, refused, _ := server.count(); refused != 1 || time.Since(began) > 10*time.Millisecond || source.asked() != 2 {
			t.Errorf("%d sends in %v, the source was asked %d times; want one send, and the source asked for it and once more", refused, time.Since(began), source.asked())
		}
		time.Sleep(time.Second)
		if err := pay(t, c, "k"); err != nil {
			t.Errorf("later: %v", err)
		}
	})
}

// TestAskedOnce: the source is asked once more in a call. Other credentials that are refused, too, end it.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		server := &api{token: "none of them"}
		c, _ := clienttest.New(t, server, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(req *http.Request) error {
				req.Header.Set("Authorization", fmt.Sprint("Bearer ", calls.Add(1)))
				return nil
			}
		})
		isRefused(t, "twice", pay(t, c, "k"))
		if _, refused, _ := server.count(); refused != 2 || calls.Load() != 3 {
			t.Errorf("%d sends, and the source was asked %d times; want 2 and 3", refused, calls.Load())
		}
		isRefused(t, "again", pay(t, c, "k"))
		if _, refused, _ := server.count(); refused != 4 {
			t.Errorf("%d sends; want two more for another call", refused)
		}
	})
}

// TestNotRepeated: these are not sent again, although the source would give another token.
func TestNotRepeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		change func(*oncehttp.Config)
		bearer func(n int) string
	}{
		"the same credentials":      {401, func(*oncehttp.Config) {}, func(int) string { return "Bearer same" }},
		"a new signature":           {401, func(*oncehttp.Config) {}, func(n int) string { return fmt.Sprintf(`Signature keyId="us",signature="%d"`, n) }},
		"403":                       {403, func(*oncehttp.Config) {}, nil},
		"one attempt":               {401, clienttest.OneAttempt, nil},
		"an API without keys":       {401, func(cfg *oncehttp.Config) { cfg.Profile = profile.None() }, nil},
		"a source that fails later": {401, func(*oncehttp.Config) {}, func(n int) string { return map[bool]string{true: "Bearer 1"}[n == 1] }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: c.status}}}
			client, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
				c.change(cfg)
				cfg.Authorize = func(req *http.Request) error {
					n := int(calls.Add(1))
					value := fmt.Sprint("Bearer ", n)
					if c.bearer != nil {
						value = c.bearer(n)
					}
					if value == "" {
						return errors.New("there is no token")
					}
					req.Header.Set("Authorization", value)
					return nil
				}
			})
			isRefused(t, name, pay(t, client, "k"))
			if w.Count() != 1 {
				t.Errorf("%d sends, want one", w.Count())
			}
		})
	}
}

// TestOwnCredentials: a caller's own credentials have no source.
func TestOwnCredentials(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 401}}}
	c, _ := clienttest.New(t, w, nil)
	req := clienttest.Post(t, "{}")
	req.Header.Set("Authorization", "Bearer own")
	_, err := c.DoKey(req, "k")
	isRefused(t, "own", err)
	if w.Count() != 1 {
		t.Errorf("%d sends, want one", w.Count())
	}
}

// TestInDoubt: a lost answer and a refusal of the credentials leave the outcome open; other credentials ask for it with the same key.
func TestInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &source{token: "old"}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 401}, {Status: 201}}}
		w.Before = func(n int, _ *http.Request) {
			if n == 1 {
				source.set("new")
			}
		}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Authorize = source.authorize })
		if err := pay(t, c, "k"); err != nil || w.Count() != 3 || len(w.Keys()) != 1 {
			t.Errorf("%v, %d sends under %d keys; want a success with the third under one key", err, w.Count(), len(w.Keys()))
		}
	})
}

// TestEnqueued: an operation of the queue is repeated at once, too.
func TestEnqueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &source{token: "old"}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 401}, {Status: 201}}}
		w.Before = func(int, *http.Request) { source.set("new") }
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Authorize = source.authorize })
		clienttest.Enqueue(t, c, 1)
		stop := clienttest.Run(t, c)
		time.Sleep(time.Millisecond)
		if rec := clienttest.Lookup(t, c, "k0"); rec.State != persist.StateConfirmed || w.Count() != 2 {
			t.Errorf("%v after %d sends, want confirmed after 2", rec.State, w.Count())
		}
		clienttest.Must(t, stop())
	})
}

// TestTokensAreNowhere: neither the log nor an event nor the record has a token that was refused, or its successor.
func TestTokensAreNowhere(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var events []string
	source := &source{token: clienttest.Canary}
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 401}}}
	w.Before = func(int, *http.Request) { source.set(clienttest.Canary + "-next") }
	c, j := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.Authorize = source.authorize
		cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		cfg.Observe = func(_ context.Context, e oncehttp.Event) { events = append(events, fmt.Sprintf("%+v", e)) }
	})
	clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
	err := pay(t, c, "k")
	if err == nil || w.Count() != 2 {
		t.Fatalf("%v, %d sends", err, w.Count())
	}
	rec, getErr := j.Get(t.Context(), persist.ID{Account: persist.Account(""), Key: "k"})
	clienttest.Must(t, getErr)
	for name, text := range map[string]string{"log": log.String(), "events": strings.Join(events, "\n"), "error": err.Error(), "record": fmt.Sprintf("%+v", rec)} {
		if strings.Contains(text, clienttest.Canary) {
			t.Errorf("the %s has a token: %s", name, text)
		}
	}
}

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
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// journals returns a journal with claims and due times, one with claims alone, and one with neither: Run goes through each in another way.
func journals() map[string]persist.Journal {
	claims := memory.New()
	return map[string]persist.Journal{
		"fair": memory.New(),
		"claims": &struct {
			persist.Journal
			persist.Claimer
		}{claims, claims},
		"list": &struct{ persist.Journal }{memory.New()},
	}
}

// enqueue enqueues n operations with a caller's credential, which no journal keeps. Their keys begin with a name.
func enqueue(t *testing.T, c *oncehttp.Client, ctx context.Context, url, name string, n int) {
	t.Helper()
	for i := range n {
		req := clienttest.Request(t, "POST", url, "{}").WithContext(ctx)
		req.Header.Set("Authorization", "Bearer of-the-caller")
		clienttest.Must(t, c.Enqueue(req, oncehttp.Key(fmt.Sprint(name, i))))
	}
}

const ourURL = "https://api.example.com/payments"

// TestRunAsksWithOne: where an API refuses the credentials of a Run, one operation at a time asks again, ever more seldom. Its first other answer
// opens the way for all.
func TestRunAsksWithOne(t *testing.T) {
	t.Parallel()
	for name, j := range journals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const n = 200
				var log bytes.Buffer
				source, server := &source{token: "old"}, &api{token: "new"}
				c, _ := clienttest.New(t, server, clienttest.On(j, func(cfg *oncehttp.Config) {
					cfg.Authorize, cfg.Logger = source.authorize, slog.New(slog.NewTextHandler(&log, nil))
				}))
				enqueue(t, c, t.Context(), ourURL, "k", n)
				stop := clienttest.Run(t, c)
				time.Sleep(time.Second)
				_, first, _ := server.count()
				time.Sleep(9*time.Minute - time.Second)
				_, refused, _ := server.count()
				if first > 20 || refused-first > 12 || refused-first < 4 {
					t.Errorf("%d sends in the first second, %d in the 9 minutes after it; want those of the workers, and then one for each pause", first, refused-first)
				}
				server.set("old") // the old token is taken again
				time.Sleep(15 * time.Minute)
				if effects, now, _ := server.count(); effects != n || now-refused > 1 {
					t.Errorf("%d of %d took effect, after %d more refusals; want all with the first answer", effects, n, now-refused)
				}
				clienttest.Must(t, stop())
				if lines := strings.Count(log.String(), "refuses the credentials"); lines != 1 || !strings.Contains(log.String(), "origin=https://api.example.com:443 status=401") {
					t.Errorf("%d lines about the pause, want one with origin and status:\n%s", lines, log.String())
				}
			})
		})
	}
}

// TestDoIsNotPaused: a Do is sent at once while a Run waits, and says what happened. Its success opens the way for the Run.
func TestDoIsNotPaused(t *testing.T) {
	t.Parallel()
	for name, j := range journals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				source, server := &source{token: "old"}, &api{token: "new"}
				c, _ := clienttest.New(t, server, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Authorize = source.authorize }))
				clienttest.Enqueue(t, c, 100)
				stop := clienttest.Run(t, c)
				time.Sleep(5 * time.Minute)
				began := time.Now()
				isRefused(t, "while Run waits", pay(t, c, "do"))
				source.set("new")
				before, refused, _ := server.count()
				if err := pay(t, c, "do"); err != nil || time.Since(began) > 20*time.Millisecond || before != 0 {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				time.Sleep(3 * time.Second)
				if effects, now, _ := server.count(); effects < 70 || now != refused {
					t.Errorf("%d took effect, %d refusals more; want all without a pause of their own at once", effects, now-refused)
				}
				clienttest.Must(t, stop())
			})
		})
	}
}

// TestOthersAreNotPaused: another origin, and operations with other needs, go on.
func TestOthersAreNotPaused(t *testing.T) {
	t.Parallel()
	for name, j := range journals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var refused, others int
				var mu sync.Mutex
				w := wireFunc(func(req *http.Request) int {
					mu.Lock()
					defer mu.Unlock()
					if req.URL.Host == "api.example.com" && req.Header.Get("X-Needs") == "" {
						refused++
						return 401
					}
					others++
					return 201
				})
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.AddsNothing))
				enqueue(t, c, t.Context(), ourURL, "k", 50)
				stop := clienttest.Run(t, c)
				time.Sleep(time.Minute)
				enqueue(t, c, t.Context(), "https://one.example.com/", "other", 50)
				for i := range 50 { // without a credential of the caller
					req := clienttest.Post(t, "{}")
					req.Header.Set("X-Needs", "nothing")
					clienttest.Must(t, c.Enqueue(req, oncehttp.Key(fmt.Sprint("bare", i))))
				}
				time.Sleep(time.Second)
				clienttest.Must(t, stop())
				if others != 100 || refused > 40 {
					t.Errorf("%d of 100 others were sent, %d refusals", others, refused)
				}
			})
		})
	}
}

// TestForbiddenIsNoPause: a 403 may be about one operation.
func TestForbiddenIsNoPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 403}}}
		c, _ := clienttest.New(t, w, clienttest.On(memory.New(), clienttest.AddsNothing))
		enqueue(t, c, t.Context(), ourURL, "k", 100)
		stop := clienttest.Run(t, c)
		time.Sleep(time.Second)
		if w.Count() != 100 {
			t.Errorf("%d of 100 were sent", w.Count())
		}
		clienttest.Must(t, stop())
	})
}

// TestOneOfSeveralAccounts: in a Run of several accounts the revoked token of one delays no other.
func TestOneOfSeveralAccounts(t *testing.T) {
	t.Parallel()
	for name, j := range journals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := wireFunc(func(req *http.Request) int {
					if req.Header.Get("Authorization") == "Bearer good" {
						return 201
					}
					return 401
				})
				c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
					cfg.Authorize = func(req *http.Request) error {
						account, _ := oncehttp.AccountFromContext(req.Context())
						req.Header.Set("Authorization", "Bearer "+account)
						return nil
					}
				}))
				bad, good := oncehttp.ContextWithAccount(t.Context(), "bad"), oncehttp.ContextWithAccount(t.Context(), "good")
				enqueue(t, c, bad, ourURL, "bad", 50)
				enqueue(t, c, good, ourURL, "good", 50)
				stop := clienttest.Run(t, c)
				time.Sleep(2 * time.Second)
				for i := range 50 {
					rec, err := c.Lookup(good, oncehttp.Key(fmt.Sprint("good", i)))
					if err != nil || rec.State != persist.StateConfirmed {
						t.Fatalf("%d: %v, %v; want it confirmed at once", i, rec.State, err)
					}
				}
				clienttest.Must(t, stop())
			})
		})
	}
}

// TestCallerIsRefused: a Do whose own credentials are refused pauses no Run.
func TestCallerIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := wireFunc(func(req *http.Request) int {
			if req.Header.Get("Authorization") == "Bearer wrong" {
				return 401
			}
			return 201
		})
		c, _ := clienttest.New(t, w, clienttest.On(memory.New(), clienttest.AddsNothing))
		stop := clienttest.Run(t, c)
		req := clienttest.Post(t, "{}")
		req.Header.Set("Authorization", "Bearer wrong")
		if _, err := c.DoKey(req, "do"); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Error(err)
		}
		enqueue(t, c, t.Context(), ourURL, "k", 1)
		time.Sleep(100 * time.Millisecond)
		if rec := clienttest.Lookup(t, c, "k0"); rec.State != persist.StateConfirmed {
			t.Errorf("%v, want confirmed", rec.State)
		}
		clienttest.Must(t, stop())
	})
}

// wireFunc is a transport that answers each request with a status.
type wireFunc func(*http.Request) int

func (f wireFunc) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	return &http.Response{
		StatusCode: f(req), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: req,
	}, nil
}

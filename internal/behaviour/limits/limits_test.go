// Package limits_test holds the bounds: of attempts, sizes, waits and workers, and the pace of limiters.
package limits_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// Each bound of the package, at it and one past it. MaxElapsed, AttemptTimeout,
// MaxRetryAfter, the delays, the window and the clock skew are in run/schedule_test.go,
// stream_test.go and retryafter_test.go; the drained bytes in body_test.go; the
// hops in redirect_test.go; header bytes in headerbytes_test.go.

// TestMaxAttempts counts the attempts of every kind of failure:
// the policy is our own, whatever go-retryablehttp would do.
func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 7} {
		for _, r := range []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 503}, {Status: 429}, {Status: 409}, {Refused: true}, {Status: 201, Cut: true}} {
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{r}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = n })
				_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				want := n
				if n == 0 {
					want = 6
				}
				var e *oncehttp.Error
				if !errors.As(err, &e) || w.Count() != want || e.Attempts != want {
					t.Errorf("MaxAttempts %d, %+v: %d sends, %v; want %d", n, r, w.Count(), err, want)
				}
			})
		}
	}
}

// TestMaxInFlight: "still being processed" has a bound of its own.
func TestMaxInFlight(t *testing.T) {
	t.Parallel()
	for _, r := range []struct{ max, sends int }{{1, 2}, {2, 4}, {3, 5}, {0, 5}} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}, {Status: 409}, {Status: 503}, {Status: 409}, {Status: 201}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxInFlight = r.max })
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if w.Count() != r.sends || (err == nil) != (r.sends == 5) || err != nil && !errors.Is(err, oncehttp.ErrInFlight) {
				t.Errorf("MaxInFlight %d: %v after %d sends, want %d", r.max, err, w.Count(), r.sends)
			}
		})
	}
}

// TestMaxRequestBytes: at the bound, one past it, and far past it without reading
// what is past it, whether or not the length is said.
func TestMaxRequestBytes(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{1, 4095, 4096, 4097, 1 << 20} {
		for _, said := range []bool{true, false} {
			for _, size := range []int64{limit, limit + 1, 100 << 20} {
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.MaxRequestBytes = limit })
					req := clienttest.Request(t, "POST", "https://api.example.com/", "")
					var read atomic.Int64
					req.Body = io.NopCloser(&meter{io.LimitReader(wiretest.Zeros{}, size), &read})
					req.ContentLength = -1
					if said {
						req.ContentLength = size
					}
					_, err := c.DoKey(req, "k")
					if fits := size == limit; fits != (err == nil) || !fits && !(errors.Is(err, oncehttp.ErrBodyTooLarge) && errors.Is(err, oncehttp.ErrNoEffect)) {
						t.Errorf("limit %d, %d bytes, length said %v: %v", limit, size, said, err)
					}
					if err != nil && (w.Count() != 0 || read.Load() > limit+1 || said && read.Load() != 0) {
						t.Errorf("limit %d, %d bytes, length said %v: %d bytes were read, %d sends", limit, size, said, read.Load(), w.Count())
					}
					if err == nil && int64(len(w.Sends[0].Body)) != size {
						t.Errorf("%d bytes arrived of %d", len(w.Sends[0].Body), size)
					}
				})
			}
		}
	}
}

type meter struct {
	io.Reader
	n *atomic.Int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.n.Add(int64(n))
	return n, err
}

// TestMaxResponseBytes: an answer at the bound is kept and given again from the
// journal; one past it reaches the caller whole, and is asked for again.
func TestMaxResponseBytes(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 511, 512, 4096} {
		for past := range 2 {
			synctest.Test(t, func(t *testing.T) {
				body := strings.Repeat("b", limit+past)
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: body}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = int64(limit) })
				for i := range 2 {
					resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					if err != nil || clienttest.Read(t, resp) != body {
						t.Fatalf("limit %d, %d bytes, call %d: %v", limit, len(body), i, err)
					}
				}
				rec := clienttest.Lookup(t, c, "k")
				if w.Count() != 1+past || len(rec.Answer.Body) != limit*(1-past) || rec.Answer.BodyDropped != (past == 1) {
					t.Errorf("limit %d, %d bytes: %d sends, %d bytes kept", limit, len(body), w.Count(), len(rec.Answer.Body))
				}
			})
		}
	}
}

// TestResumeWorkers bounds how many operations one Resume drives at once.
func TestResumeWorkers(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var now, top atomic.Int32
			rt := wiretest.Func(func(*http.Request) (*http.Response, error) {
				top.Store(max(top.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
				return &http.Response{StatusCode: 201, Body: http.NoBody}, nil
			})
			c, _ := clienttest.New(t, rt, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = workers })
			for i := range 12 {
				if err := c.Enqueue(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			for _, err := range c.Resume(t.Context()) {
				if n++; err != nil {
					t.Error(err)
				}
			}
			if n != 12 || int(top.Load()) != workers {
				t.Errorf("%d operations, at most %d at once; want 12, %d", n, top.Load(), workers)
			}
		})
	}
}

// TestEnqueueMaxAge: a first send at the bound happens; one past it never does.
func TestEnqueueMaxAge(t *testing.T) {
	t.Parallel()
	for past := range 2 {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.EnqueueMaxAge = time.Hour })
			if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour + time.Duration(past))
			for _, err := range c.Resume(t.Context()) {
				if (err != nil) != (past == 1) {
					t.Errorf("%d ns past: %v", past, err)
				}
			}
			if rec := clienttest.Lookup(t, c, "k"); w.Count() != 1-past || (rec.State == persist.StateHeld) != (past == 1) {
				t.Errorf("%d ns past: %d sends, record %v", past, w.Count(), rec.State)
			}
		})
	}
}

// TestConfigBounds: negative bounds and contradictions are refused by New, each
// by its name.
func TestConfigBounds(t *testing.T) {
	t.Parallel()
	short := profile.Draft07()
	short.Name, short.Window.Floor = "short", 33*time.Second
	rows := map[string]func(*oncehttp.Config){
		"Journal":                func(c *oncehttp.Config) { c.Journal = nil },
		"Retry.MaxAttempts":      func(c *oncehttp.Config) { c.Retry.MaxAttempts = -1 },
		"Retry.MaxInFlight":      func(c *oncehttp.Config) { c.Retry.MaxInFlight = -1 },
		"Retry.SafeAttempts":     func(c *oncehttp.Config) { c.Retry.SafeAttempts = -1 },
		"Retry.MaxElapsed":       func(c *oncehttp.Config) { c.Retry.MaxElapsed = -1 },
		"Retry.AttemptTimeout":   func(c *oncehttp.Config) { c.Retry.AttemptTimeout = -1 },
		"Retry.AnswerTimeout":    func(c *oncehttp.Config) { c.Retry.AnswerTimeout = -1 },
		"Retry.MinDelay":         func(c *oncehttp.Config) { c.Retry.MinDelay = -1 },
		"Retry.MaxDelay":         func(c *oncehttp.Config) { c.Retry.MinDelay, c.Retry.MaxDelay = 2, 1 },
		"Retry.MaxRetryAfter":    func(c *oncehttp.Config) { c.Retry.MaxRetryAfter = -1 },
		"MaxRequestBytes":        func(c *oncehttp.Config) { c.MaxRequestBytes = -1 },
		"MaxResponseBytes":       func(c *oncehttp.Config) { c.MaxResponseBytes = -1 },
		"MaxRequestHeaderBytes":  func(c *oncehttp.Config) { c.MaxRequestHeaderBytes = -1 },
		"MaxResponseHeaderBytes": func(c *oncehttp.Config) { c.MaxResponseHeaderBytes = -1 },
		"ResumeWorkers":          func(c *oncehttp.Config) { c.ResumeWorkers = -1 },
		"OriginWorkers":          func(c *oncehttp.Config) { c.OriginWorkers = -1 },
		"ResultWorkers":          func(c *oncehttp.Config) { c.ResultWorkers = -1 },
		"Lease":                  func(c *oncehttp.Config) { c.Lease = -1 },
		"EnqueueMaxAge":          func(c *oncehttp.Config) { c.EnqueueMaxAge = -1 },
		"ClockSkew":              func(c *oncehttp.Config) { c.ClockSkew = -1 },
		"Methods":                func(c *oncehttp.Config) { c.Methods = []string{"POST", "GET"} },
		"window":                 func(c *oncehttp.Config) { c.Profile = short },
		"over 1073741824":        func(c *oncehttp.Config) { c.MaxResponseBytes = 1<<30 + 1 },
		" is over 1073741824":    func(c *oncehttp.Config) { c.MaxRequestHeaderBytes = 1<<30 + 1 },
		"no time to send":        func(c *oncehttp.Config) { c.Retry.AttemptTimeout = math.MaxInt64 },
		"header \"X Y\"":         func(c *oncehttp.Config) { c.Profile = strangeCarrier("X Y") },
		"header \"host\"":        func(c *oncehttp.Config) { c.Profile = strangeCarrier("host") },
		"ProfileByHost":          func(c *oncehttp.Config) { c.ProfileByHost = map[string]*profile.Profile{"API.example.com": short} },
		"unknown carrier":        func(c *oncehttp.Config) { c.Profile = strangeCarrier("x"); c.Profile.Carrier.Place = "cookie" },
		"no JSON pointer":        func(c *oncehttp.Config) { c.Profile = strangeCarrier("x"); c.Profile.Carrier.Place = profile.Body },
		"carrier":                func(c *oncehttp.Config) { c.Profile = &profile.Profile{Name: "x"} },
	}
	for name, change := range rows {
		cfg := oncehttp.Config{Journal: memory.New()}
		change(&cfg)
		c, err := oncehttp.New(cfg)
		if c != nil || !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrNoEffect) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want ErrConfig that names it", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: not one line: %q", name, err)
		}
	}
}

func strangeCarrier(name string) *profile.Profile {
	p := profile.Draft07()
	p.Name, p.Carrier.Name = "strange", name
	return p
}

// TestNoBoundOverflows: the largest values that a Config takes work as they say.
func TestNoBoundOverflows(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "GET"} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 86400"}, {Status: 201, Body: "paid"}}}
			w.Before = func(n int, req *http.Request) {
				time.Sleep(time.Hour)
				if err := context.Cause(req.Context()); err != nil {
					t.Errorf("send %d was cut off: %v", n, err)
				}
			}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
				cfg.Profile = strangeCarrier("Idempotency-Key")
				cfg.Profile.Window.Floor = math.MaxInt64
				cfg.MaxRequestBytes, cfg.MaxResponseBytes = 1<<30, 1<<30
				cfg.ClockSkew, cfg.EnqueueMaxAge, cfg.KeepAnswer, cfg.KeepKey = math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64
				cfg.Retry = oncehttp.Policy{
					MaxAttempts: math.MaxInt, MaxInFlight: math.MaxInt, MaxElapsed: math.MaxInt64, MaxRetryAfter: math.MaxInt64,
					AttemptTimeout: math.MaxInt64, MinDelay: 1, MaxDelay: math.MaxInt64,
				}
			})
			resp, err := c.Do(clienttest.Request(t, method, "https://api.example.com/", ""))
			if err != nil || clienttest.Read(t, resp) != "paid" || w.Count() != 2 {
				t.Fatalf("%s: %v after %d sends", method, err, w.Count())
			}
			if method == "GET" {
				return
			}
			if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			for _, err := range c.Resume(t.Context()) {
				if err != nil {
					t.Error(err)
				}
			}
			if n, err := c.Sweep(t.Context()); n != 0 || err != nil {
				t.Errorf("swept %d, %v", n, err)
			}
		})
	}
}

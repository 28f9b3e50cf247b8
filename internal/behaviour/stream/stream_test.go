// Package stream_test holds the bounds and the ends of bodies, in both directions.
package stream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestAttemptTimeout: an attempt that gets no answer is cut off at the bound and asked
// again; one a moment under the bound is not.
func TestAttemptTimeout(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		hang  time.Duration
		sends int32
	}{{30*time.Second - time.Millisecond, 1}, {30*time.Second + time.Millisecond, 2}} {
		synctest.Test(t, func(t *testing.T) {
			var sends atomic.Int32
			rt := pipes(t, func(w http.ResponseWriter, req *http.Request) {
				if sends.Add(1) == 1 {
					nap(req, r.hang)
				}
				_, _ = io.WriteString(w, "paid")
			})
			c, _ := clienttest.New(t, rt, nil)
			resp, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "k")
			if err != nil || clienttest.Read(t, resp) != "paid" || sends.Load() != r.sends {
				t.Errorf("hung for %v: %v after %d sends, want an answer after %d", r.hang, err, sends.Load(), r.sends)
			}
		})
	}
}

// TestAttemptTimeoutForEver: a server that never answers leaves an unknown
// outcome that names the timeout and is no end of the caller's own context.
func TestAttemptTimeoutForEver(t *testing.T) {
	t.Parallel()
	for _, partly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			rt := pipes(t, func(w http.ResponseWriter, req *http.Request) {
				if partly {
					_, _ = io.WriteString(w, "pa")
					_ = http.NewResponseController(w).Flush()
				}
				nap(req, time.Hour)
			})
			c, _ := clienttest.New(t, rt, nil)
			_, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "k")
			clienttest.ExactlyOne(t, err)
			if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "AttemptTimeout") || errors.Is(err, context.Canceled) {
				t.Errorf("partly %v: %v, want unknown for AttemptTimeout", partly, err)
			}
		})
	}
}

// TestFlowingBody: AttemptTimeout cuts no good answer that flows, however long it
// takes; one that stalls is cut and asked for again with the same key.
func TestFlowingBody(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		name  string
		gap   time.Duration
		sends int32
	}{{"slow but moving", 20 * time.Second, 1}, {"stalled", 31 * time.Second, 2}} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var sends atomic.Int32
				rt := pipes(t, func(w http.ResponseWriter, req *http.Request) {
					gap := r.gap
					if sends.Add(1) > 1 {
						gap = time.Second
					}
					for range 10 {
						if _, err := io.WriteString(w, "word "); err != nil {
							return
						}
						_ = http.NewResponseController(w).Flush()
						nap(req, gap)
					}
				})
				c, _ := clienttest.New(t, rt, func(cfg *oncehttp.Config) { cfg.Retry.AnswerTimeout = time.Hour })
				resp, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "k")
				if err != nil || clienttest.Read(t, resp) != strings.Repeat("word ", 10) || sends.Load() != r.sends {
					t.Errorf("%v after %d sends, want the whole body after %d", err, sends.Load(), r.sends)
				}
			})
		})
	}
}

// endless is an answer larger than what is kept, which then flows slowly.
func endless(w http.ResponseWriter, req *http.Request) {
	_, _ = io.WriteString(w, strings.Repeat("k", 2000))
	_ = http.NewResponseController(w).Flush()
	for range 100 {
		nap(req, 10*time.Second)
		if _, err := io.WriteString(w, "more"); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// TestLargeBodyFlows: what is too large to keep reaches the caller whole, as it
// comes, long after AttemptTimeout.
func TestLargeBodyFlows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, pipes(t, endless), func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 1000 })
		resp, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "k")
		if err != nil {
			t.Fatal(err)
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || !rec.Answer.BodyDropped {
			t.Errorf("record %v, want confirmed without its body", rec.State)
		}
		if got := clienttest.Read(t, resp); got != strings.Repeat("k", 2000)+strings.Repeat("more", 100) {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// TestLargeBodyEndsWithTheCaller: the caller's context ends a body that is still
// flowing, as it does with net/http, and what is left of it is not waited for.
func TestLargeBodyEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c, _ := clienttest.New(t, pipes(t, endless), func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 1000 })
		resp, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}").WithContext(ctx), "k")
		if err != nil {
			t.Fatal(err)
		}
		gone := errors.New("the shopper left")
		time.AfterFunc(25*time.Second, func() { cancel(gone) })
		start := time.Now()
		_, err = io.ReadAll(resp.Body)
		if took := time.Since(start); !errors.Is(err, gone) || took != 25*time.Second {
			t.Errorf("read until %v, after %v; want the caller's cause after 25s", err, took)
		}
		resp.Body.Close()
	})
}

// TestLargeBodyThatStalls: also what flows past what is kept is cut when nothing
// comes any more.
func TestLargeBodyThatStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := pipes(t, func(w http.ResponseWriter, req *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("k", 2000))
			_ = http.NewResponseController(w).Flush()
			nap(req, time.Hour)
		})
		c, _ := clienttest.New(t, rt, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 1000 })
		resp, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "k")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		time.Sleep(time.Hour / 2) // the caller may take its time
		start := time.Now()
		if _, err := io.ReadAll(resp.Body); err == nil || time.Since(start) != 30*time.Second {
			t.Errorf("%v after %v, want an error after 30s", err, time.Since(start))
		}
	})
}

// TestStreamedGET: what is not journaled streams through. Its headers are waited
// for as long as in any attempt, also under StandardClient, which must not have a
// Timeout; what flows after them is not cut.
func TestStreamedGET(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sends atomic.Int32
		rt := pipes(t, func(w http.ResponseWriter, req *http.Request) {
			if user, password, _ := req.BasicAuth(); user != "u" || password != "pw" {
				t.Errorf("userinfo did not become credentials: %q", req.Header.Get("Authorization"))
			}
			if sends.Add(1) == 1 {
				nap(req, time.Hour)
				return
			}
			_, _ = io.WriteString(w, "a")
			_ = http.NewResponseController(w).Flush()
			nap(req, 10*time.Minute)
			_, _ = io.WriteString(w, "b")
		})
		c, _ := clienttest.New(t, rt, nil)
		if _, err := c.StandardClient().Get("https://u:pw@api.example.com/"); err == nil {
			t.Fatal("a pipe is no TLS connection")
		}
		sends.Store(0)
		start := time.Now()
		req, _ := http.NewRequest("GET", "http://u:pw@api.example.com/", nil)
		req.Header = nil
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited < 30*time.Second || waited > time.Minute {
			t.Errorf("the first attempt was given up after %v, want 30s", waited)
		}
		if clienttest.Read(t, resp) != "ab" || sends.Load() != 2 || oncehttp.ResultOf(resp).Key != "" {
			t.Errorf("%d sends, result %+v", sends.Load(), oncehttp.ResultOf(resp))
		}
	})
}

// TestStreamedUpload: a large body is uploaded at its own pace, and read once.
func TestStreamedUpload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got atomic.Int64
		rt := pipes(t, func(_ http.ResponseWriter, req *http.Request) {
			n, _ := io.Copy(io.Discard, req.Body)
			got.Store(n)
		})
		c, _ := clienttest.New(t, rt, nil)
		req := clienttest.Request(t, "PUT", "http://api.example.com/", "")
		req.Body, req.ContentLength = &drip{gap: time.Minute, left: 5, end: make(chan struct{})}, -1
		start := time.Now()
		resp, err := c.Do(req)
		if err != nil || got.Load() != 5 || time.Since(start) < 5*time.Minute {
			t.Fatalf("%v, %d bytes after %v, want 5 after 5m", err, got.Load(), time.Since(start))
		}
		resp.Body.Close()
	})
}

// TestDeadline: when the next wait would overrun the caller's deadline, Do stops at
// once; it does not sleep into certain failure, and says when it is worth going on.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		after string
		sends int
	}{{"59", 2}, {"60", 1}, {"61", 1}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: " + r.after}, {Status: 201}}}
			c, _ := clienttest.New(t, w, clienttest.Unhurried)
			start := time.Now()
			_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
			if (err == nil) != (r.sends == 2) || w.Count() != r.sends {
				t.Fatalf("Retry-After %s under a deadline of 60s: %v after %d sends, want %d", r.after, err, w.Count(), r.sends)
			}
			if r.sends == 2 {
				return
			}
			clienttest.ExactlyOne(t, err)
			var e *oncehttp.Error
			errors.As(err, &e)
			if time.Since(start) != 0 || !strings.Contains(err.Error(), "deadline") || e.NextAttempt.IsZero() || e.Answer == nil {
				t.Errorf("after %v: %v, next attempt %v; want at once, with the answer and a time", time.Since(start), err, e.NextAttempt)
			}
		})
	}
}

// TestDeadlineCutsTheAttempt: a deadline ends an attempt on the wire, which may
// have had its effect.
func TestDeadlineCutsTheAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		rt := pipes(t, func(_ http.ResponseWriter, req *http.Request) { nap(req, time.Hour) })
		c, _ := clienttest.New(t, rt, nil)
		start := time.Now()
		_, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/", "{}").WithContext(ctx), "k")
		clienttest.ExactlyOne(t, err)
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v, want unknown and deadline exceeded after 5s", err, time.Since(start))
		}
	})
}

// TestStreamAnsweredBeforeItsBodyIsOut: the answer to a request that is no
// operation is not cut where the server answers while the request's body is still
// on its way out: what flows after the answer's headers is not cut.
func TestStreamAnsweredBeforeItsBodyIsOut(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		w.WriteHeader(200)
		_ = rc.Flush()
		_, _ = io.Copy(io.Discard, r.Body)
		for range 6 { // each wait is short, all of them are longer than the timeout
			time.Sleep(timeout / 3)
			_, _ = io.WriteString(w, "x")
			_ = rc.Flush()
		}
	}))
	defer server.Close()
	c, _ := clienttest.New(t, server.Client().Transport, func(cfg *oncehttp.Config) {
		cfg.Retry = oncehttp.Policy{AttemptTimeout: timeout, MaxAttempts: 1}
	})
	body, out := io.Pipe()
	req, err := http.NewRequest("PUT", server.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(out, strings.NewReader("the request's body"))
	out.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || string(got) != "xxxxxx" {
		t.Errorf("%q, %v: an answer that flowed was cut", got, err)
	}
	resp.Body.Close()
}

// Package callers_test holds the promises to callers of one operation, and of one client: who joins, who leaves, and that nothing
// is shared between them.
package callers_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestSameKeyOnARecord is the 'Same key' rule over what can stand under a key:
// what is answered, and whether anything is sent.
func TestSameKeyOnARecord(t *testing.T) {
	t.Parallel()
	lost, ok := wiretest.Reply{Err: wiretest.ErrLost}, wiretest.Reply{Status: 201, Header: "Set-Cookie: s=1\nX-Id: 7", Body: "paid"}
	settle := func(r oncehttp.Resolution) func(*testing.T, *oncehttp.Client) {
		return func(t *testing.T, c *oncehttp.Client) {
			if err := clienttest.SettleAsSeen(c, t.Context(), "k", r); err != nil {
				t.Error(err)
			}
		}
	}
	rows := []struct {
		name   string
		stands wiretest.Reply // what the first Do is answered
		then   func(t *testing.T, c *oncehttp.Client)
		state  persist.State
		body   string  // of the second Do's answer, from the journal
		is     []error // of the second Do
		other  []error // of a Do with other bytes
	}{
		{"confirmed", ok, nil, persist.StateConfirmed, "paid", nil, []error{oncehttp.ErrFinal}},
		{"confirmed and swept", ok, func(t *testing.T, c *oncehttp.Client) {
			time.Sleep(48 * time.Hour)
			if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
				t.Error(n, err)
			}
		}, persist.StateConfirmed, "", []error{oncehttp.ErrFinal, oncehttp.ErrAnswerGone}, []error{oncehttp.ErrFinal}},
		{"refused", wiretest.Reply{Status: 422, Header: "Content-Type: application/problem+json"}, nil, persist.StateMismatched, "",
			[]error{oncehttp.ErrFinal, oncehttp.ErrKeyReused}, []error{oncehttp.ErrFinal}},
		{"held", wiretest.Reply{Status: 301}, nil, persist.StateHeld, "", []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrHeld}, []error{oncehttp.ErrOutcomeUnknown}},
		{"expired", lost, func(*testing.T, *oncehttp.Client) { time.Sleep(24 * time.Hour) }, persist.StatePending, "",
			[]error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrKeyExpired, oncehttp.ErrHeld}, []error{oncehttp.ErrOutcomeUnknown}},
		{"abandoned", lost, func(t *testing.T, c *oncehttp.Client) {
			if err := c.Abandon(t.Context(), "k"); err != nil {
				t.Error(err)
			}
		}, persist.StateAbandoned, "", []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrAbandoned}, []error{oncehttp.ErrOutcomeUnknown}},
		{"settled as absent", lost, settle(oncehttp.Resolution{Effect: oncehttp.EffectAbsent}), persist.StateSettled, "",
			[]error{oncehttp.ErrNoEffect, oncehttp.ErrSettled}, []error{oncehttp.ErrFinal}},
		{"settled as happened", lost, settle(oncehttp.Resolution{Effect: oncehttp.EffectHappened}), persist.StateSettled, "",
			[]error{oncehttp.ErrFinal, oncehttp.ErrSettled, oncehttp.ErrAnswerGone}, []error{oncehttp.ErrFinal}},
		{"settled with its answer", lost, settle(oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 200, Body: []byte("found")}}),
			persist.StateSettled, "found", nil, []error{oncehttp.ErrFinal}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{r.stands}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
				_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
				if r.then != nil {
					r.then(t, c)
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.State != r.state || w.Count() != 1 {
					t.Fatalf("record %v after %d sends, want %v after one", rec.State, w.Count(), r.state)
				}
				_, err := c.DoKey(clienttest.Post(t, `{"other":1}`), "k")
				clienttest.Refused(t, err, r.state, append(r.other, oncehttp.ErrKeyReused))
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if r.is != nil {
					clienttest.Refused(t, err, clienttest.Lookup(t, c, "k").State, r.is)
				} else if err != nil || clienttest.Read(t, resp) != r.body || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal || resp.Header.Get("Set-Cookie") != "" {
					t.Errorf("%v, header %v; want %q from the journal", err, resp, r.body)
				}
				if w.Count() != 1 {
					t.Errorf("%d sends, want only the first", w.Count())
				}
			})
		})
	}
}

// TestPendingGoesOn with the recorded bytes and this caller's credentials.
func TestPendingGoesOn(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Account = "shop" }))
		do := func(token, extra string) error {
			req := clienttest.Post(t, `{"amount":1}`)
			req.Header.Set("Authorization", token)
			req.Header.Set("X-Trace", extra)
			_, err := c.DoKey(req, "k")
			return err
		}
		if err := do("Bearer old", "recorded"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		if err := do("Bearer new", "this call's"); err != nil {
			t.Fatal(err)
		}
		got := w.Sends[1]
		if got.Key != "k" || got.Body != `{"amount":1}` || got.Header.Get("X-Trace") != "recorded" || got.Header.Get("Authorization") != "Bearer new" {
			t.Errorf("sent %+v", got)
		}
	})
}

// TestJoin: the second caller of a key in flight gets the same answer, and a
// response of its own.
func TestJoin(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost, Delay: time.Second}, {Status: 201, Header: "X-Id: 7\nSet-Cookie: s", Body: "paid", Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		second, _ := clienttest.New(t, w, clienttest.On(j)) // another client on the journal shares its calls
		type got struct {
			resp *http.Response
			body string
		}
		results := make(chan got, 4)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				resp, err := []*oncehttp.Client{c, second}[i%2].DoKey(clienttest.Post(t, "{}"), "k")
				if err != nil {
					t.Error(err)
					return
				}
				resp.Header.Set("X-Id", resp.Header.Get("X-Id")+"!") // a response of one's own may be changed
				results <- got{resp, clienttest.Read(t, resp)}
			})
		}
		wg.Wait()
		close(results)
		seen := map[*http.Response]bool{}
		for g := range results {
			res := oncehttp.ResultOf(g.resp)
			if g.body != "paid" || g.resp.StatusCode != 201 || g.resp.Header.Get("X-Id") != "7!" || res.Source != oncehttp.SourceServer || res.Sends != 2 || seen[g.resp] {
				t.Errorf("%q %v %+v", g.body, g.resp.Header, res)
			}
			seen[g.resp] = true
		}
		if w.Count() != 2 || len(seen) != 4 {
			t.Errorf("%d sends for %d answers, want 2 for 4", w.Count(), len(seen))
		}
	})
}

// TestOtherBytesInFlight: refused at once, with the call left alone.
func TestOtherBytesInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
		c, _ := clienttest.New(t, w, nil)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		start := time.Now()
		_, err := c.DoKey(clienttest.Post(t, `{"other":1}`), "k")
		clienttest.Refused(t, err, persist.StatePending, []error{oncehttp.ErrKeyReused, oncehttp.ErrOutcomeUnknown})
		if time.Since(start) != 0 {
			t.Errorf("it waited %v", time.Since(start))
		}
		wg.Wait()
		if w.Count() != 1 {
			t.Errorf("%d sends", w.Count())
		}
	})
}

type valueKey struct{}

// TestCallContext: a call has the first caller's values, no caller's end of
// its own, and ends with the last who leaves.
func TestCallContext(t *testing.T) {
	t.Parallel()
	t.Run("values", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var seen []any
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost, Delay: time.Second}, {Status: 201}}}
			w.Before = func(_ int, req *http.Request) { seen = append(seen, req.Context().Value(valueKey{})) }
			c, _ := clienttest.New(t, w, nil)
			var wg sync.WaitGroup
			for _, who := range []string{"first", "second"} {
				wg.Go(func() {
					ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, who))
					defer cancel()
					if who == "first" { // leaves while it is on the wire
						time.AfterFunc(100*time.Millisecond, cancel)
					}
					_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
					if who == "first" {
						clienttest.ExactlyOne(t, err)
						if !errors.Is(err, context.Canceled) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrInFlight) {
							t.Errorf("who left: %v", err)
						}
					} else if err != nil {
						t.Errorf("who stayed: %v", err)
					}
				})
				synctest.Wait()
			}
			wg.Wait()
			if len(seen) != 2 || seen[0] != "first" || seen[1] != "first" {
				t.Errorf("the sends had the values of %v, want the first caller's", seen)
			}
		})
	})
	t.Run("last leaver", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Hour}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.AttemptTimeout = 2 * time.Hour })
			start := time.Now()
			var wg sync.WaitGroup
			for _, after := range []time.Duration{time.Second, 5 * time.Second} {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), after)
					defer cancel()
					_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
					clienttest.ExactlyOne(t, err)
					if took := time.Since(start); took != after || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("left after %v with %v, want after %v", took, err, after)
					}
					var e *oncehttp.Error
					if errors.As(err, &e) && (after == 5*time.Second) != (e.Attempts == 1) {
						t.Errorf("who left after %v learns of %d attempts", after, e.Attempts)
					}
				})
				synctest.Wait()
			}
			wg.Wait()
			if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending || !rec.MaybeSent || rec.Sends != 1 {
				t.Errorf("record %v, %d sends; want it recorded by the time the last one left", rec.State, rec.Sends)
			}
			clienttest.Free(t, c, "k")
		})
	})
	t.Run("latest deadline", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 10", Delay: time.Second}, {Status: 201}}}
			c, _ := clienttest.New(t, w, nil)
			var wg sync.WaitGroup
			for _, limit := range []time.Duration{5 * time.Second, 20 * time.Second} {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
					if (err == nil) != (limit == 20*time.Second) {
						t.Errorf("deadline %v: %v", limit, err)
					}
				})
			}
			wg.Wait()
			if w.Count() != 2 {
				t.Errorf("%d sends, want the wait to go by the later deadline", w.Count())
			}
		})
	})
}

// TestHugeAnswerOnce: with Policy.NeverAskAgain a body too large to keep flows to one waiter. The others, and later calls, are told that the operation is
// decided and its answer gone; nothing is sent again.
func TestHugeAnswerOnce(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: strings.Repeat("x", 5000), Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes, cfg.Retry.NeverAskAgain = 1000, true }))
		var wg sync.WaitGroup
		var whole, gone atomic.Int32
		call := func() {
			resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if err == nil && len(clienttest.Read(t, resp)) == 5000 {
				whole.Add(1)
				return
			}
			var e *oncehttp.Error
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrFinal) || !errors.Is(err, oncehttp.ErrAnswerGone) || !errors.As(err, &e) || e.Answer == nil || e.Answer.Status != 201 {
				t.Errorf("%v, want ErrAnswerGone with the status", err)
			}
			gone.Add(1)
		}
		for range 3 {
			wg.Go(call)
		}
		wg.Wait()
		call()
		if w.Count() != 1 || whole.Load() != 1 || gone.Load() != 3 {
			t.Errorf("%d sends, %d whole answers, %d told that it is gone; want 1, 1 and 3", w.Count(), whole.Load(), gone.Load())
		}
	})
}

// TestHugeAnswerTwice: a body too large to keep flows to one waiter; the other
// has the server asked again, and each gets it whole.
func TestHugeAnswerTwice(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		huge := strings.Repeat("x", 5000)
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: huge, Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 1000 }))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if err != nil {
					t.Error(err)
				} else if got := clienttest.Read(t, resp); got != huge {
					t.Errorf("got %d bytes, want %d", len(got), len(huge))
				}
			})
		}
		wg.Wait()
		if w.Count() < 2 || w.Count() > 3 || len(w.Keys()) != 1 {
			t.Errorf("%d sends under %v", w.Count(), w.Keys())
		}
		rec := clienttest.Lookup(t, c, "k")
		if rec.State != persist.StateConfirmed || rec.Answer == nil || !rec.Answer.BodyDropped || len(rec.Answer.Body) != 0 {
			t.Errorf("record %v, answer %+v", rec.State, rec.Answer)
		}
		time.Sleep(25 * time.Hour)
		sends := w.Count()
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrAnswerGone) || w.Count() != sends {
			t.Errorf("past the window: %v after %d more sends, want ErrAnswerGone after none", err, w.Count()-sends)
		}
		if bytes.Contains([]byte(err.Error()), []byte("xxx")) {
			t.Error("the body is in the error")
		}
	})
}

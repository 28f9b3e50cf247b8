package rekey_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestResumeEndsWithItsContext: a Resume returns when its context ends, also where others have joined what it runs. For them the
// attempt on the wire goes on, and nothing is sent beside it.
func TestResumeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	do := func(t *testing.T, c *oncehttp.Client) (*http.Response, error) {
		return c.DoKey(clienttest.Post(t, "{}"), "k")
	}
	for name, r := range map[string]struct {
		join  func(*testing.T, *oncehttp.Client) (*http.Response, error)
		sends int // after the one that left the operation in doubt
	}{
		"alone": {nil, 1},
		"Do":    {do, 1},
		"Transport": {func(t *testing.T, c *oncehttp.Client) (*http.Response, error) {
			req := clienttest.Post(t, "{}")
			req.Header.Set("Idempotency-Key", "k")
			return c.Transport().RoundTrip(req)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Delay: 10 * time.Minute}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
					cfg.Retry.AttemptTimeout, cfg.Retry.AnswerTimeout = 20*time.Minute, 30*time.Minute
				}))
				_, _ = do(t, c)
				time.Sleep(time.Hour)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				var others sync.WaitGroup
				if r.join != nil {
					others.Go(func() {
						time.Sleep(500 * time.Millisecond)
						if resp, err := r.join(t, c); err != nil || resp.StatusCode != 201 {
							t.Errorf("who joined: %v", err)
						}
					})
				}
				yielded := 0
				for _, err := range c.Resume(ctx) {
					if yielded++; !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("yielded %v", err)
					}
				}
				if took := time.Since(start); took != time.Second || yielded == 0 {
					t.Errorf("it took %v and yielded %d, want 1s and that it was cut off", took, yielded)
				}
				others.Wait()
				if n := w.Count() - 1; n != r.sends {
					t.Errorf("%d sends, want %d", n, r.sends)
				}
				synctest.Wait()
				clienttest.Free(t, c, "k")
			})
		})
	}
}

// TestRekeyEndsWithItsContext: a Rekey returns when its context ends, also where a Do waits for it, and goes on with nothing: what was
// not found by then is not settled, nothing is begun, and the same Rekey goes on.
func TestRekeyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, ends := range []string{"while it waits", "when it asks", "when it is answered"} {
		for _, joins := range []bool{false, true} {
			for _, found := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, joined %t, found %t", ends, joins, found), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { testRekeyEnds(t, ends, joins, found) })
				})
			}
		}
	}
}

func testRekeyEnds(t *testing.T, ends string, joins, found bool) {
	s := &servertest.Shop{}
	if found {
		s.Orders = []map[string]any{{"number": "A/1&x", "amount": 100.}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended time.Time
	end := journaltest.Once(func() error { ended = time.Now(); cancel(); return nil })
	c, w, _ := servertest.LostOrder(t, s, func(cfg *oncehttp.Config) {
		servertest.Promising(cfg)
		cfg.Profile.Reference.FoundWithin = 10 * time.Minute
	})
	switch ends {
	case "while it waits":
		time.AfterFunc(time.Second, func() { _ = end() })
	case "when it asks":
		w.At = func(*http.Request) { _ = end() }
	default:
		w.Through = wiretest.Func(func(req *http.Request) (*http.Response, error) {
			defer func() { _ = end() }()
			return s.RoundTrip(req)
		})
	}
	var others sync.WaitGroup
	if joins {
		others.Go(func() {
			time.Sleep(500 * time.Millisecond)
			if _, err := c.DoKey(clienttest.Post(t, servertest.OrderOne), "k"); err == nil && !found {
				t.Error("the old key was sent while it is rekeyed")
			}
		})
	}
	err := clienttest.RekeyAsSeen(c, ctx, "k", "k2", servertest.Why)
	if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || time.Since(ended) > 0 {
		t.Errorf("%v, %v after its context had ended; want the outcome unknown, at once", err, time.Since(ended))
	}
	others.Wait()
	old := clienttest.Lookup(t, c, "k")
	if _, err := c.Lookup(t.Context(), "k2"); !errors.Is(err, persist.ErrNotFound) {
		t.Errorf("the new operation: %v, want none", err)
	}
	if held := old.State == persist.StateHeld && old.HoldReason == persist.HoldRekey; !held {
		if !found || old.State.Final() && !joins { // else the Rekey has said so, and who waited has found it
			t.Errorf("it is %v for %q, want it held for the same Rekey", old.State, old.HoldReason)
		}
		return
	}
	w.At, w.Through = nil, s
	if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why); (err == nil) == found || s.Posts != 0 {
		t.Errorf("the same Rekey again: %v after %d orders", err, s.Posts)
	}
}

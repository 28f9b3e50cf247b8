package limits_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// called is what a call returned.
type called struct {
	resp *http.Response
	err  error
}

// calling lets a client send an order with a key, in a goroutine.
func calling(t *testing.T, ctx context.Context, c *oncehttp.Client) <-chan called {
	req, result := clienttest.Post(t, `{"n":1}`).WithContext(ctx), make(chan called, 1)
	go func() {
		resp, err := c.DoKey(req, "k")
		result <- called{resp, err}
	}()
	return result
}

// TestCallInALimiterIsTakenOver: while the limiter of one client lets its call not go out, the operation is nobody's, and a call of
// another client with the key sends it. The first call gets that answer once its turn comes, and sends nothing.
func TestCallInALimiterIsTakenOver(t *testing.T) {
	t.Parallel()
	journaltest.Two(t, func(t *testing.T, one, other persist.Journal) {
		none, live := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "none"}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "live"}}}
		limiter := &clienttest.Bucket{Period: time.Hour}
		waits, _ := clienttest.New(t, none, clienttest.On(one, clienttest.LimitedBy(limiter)))
		free, _ := clienttest.New(t, live, clienttest.On(other))
		first := calling(t, t.Context(), waits)
		time.Sleep(time.Minute)
		rec := clienttest.Lookup(t, free, "k")
		if rec.State != persist.StatePending || rec.MaybeSent || rec.LeaseOwner != "" || rec.Attempts != 0 || rec.NextAttempt.After(time.Now()) || rec.SendBefore.IsZero() {
			t.Errorf("%v, maybe sent %t, lease of %q, %d attempts, due at %v, to be sent before %v", rec.State, rec.MaybeSent, rec.LeaseOwner, rec.Attempts, rec.NextAttempt, rec.SendBefore)
		}
		resp, err := free.DoKey(clienttest.Post(t, `{"n":1}`), "k")
		if err != nil || clienttest.Read(t, resp) != "live" || live.Count() != 1 {
			t.Fatalf("the other: %v after %d sends", err, live.Count())
		}
		time.Sleep(2 * time.Hour)
		got := <-first
		if got.err != nil || clienttest.Read(t, got.resp) != "live" || none.Count() != 0 || limiter.Count() != 1 {
			t.Errorf("the first: %v, %d sends, %d waits; want the recorded answer", got.err, none.Count(), limiter.Count())
		}
	})
}

// TestCallWaitsForItsLimiter: a call whose operation nobody takes is sent when its turn comes, for which it has asked once.
func TestCallWaitsForItsLimiter(t *testing.T) {
	t.Parallel()
	journaltest.Two(t, func(t *testing.T, j, _ persist.Journal) {
		w, limiter := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}, &clienttest.Bucket{Period: time.Hour}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(limiter)))
		began := time.Now()
		got := <-calling(t, t.Context(), c)
		if got.err != nil || w.Count() != 1 || limiter.Count() != 1 || time.Since(began) != time.Hour || clienttest.Lookup(t, c, "k").State != persist.StateConfirmed {
			t.Errorf("%v after %v, %d sends, %d waits", got.err, time.Since(began), w.Count(), limiter.Count())
		}
	})
}

// TestCallLeavesItsLimiter: a call whose context ends, or whose client is closed, while it waits for its limiter has had no effect and
// leaves nothing, unless somebody else has the operation.
func TestCallLeavesItsLimiter(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*oncehttp.Client, context.CancelFunc) error{
		"its context ends": func(_ *oncehttp.Client, cancel context.CancelFunc) error { cancel(); return nil },
		"it is closed":     func(c *oncehttp.Client, _ context.CancelFunc) error { return c.Close() },
	} {
		for _, waited := range []time.Duration{time.Second, time.Minute} {
			for _, enqueued := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					journaltest.Two(t, func(t *testing.T, j, other persist.Journal) {
						w, limiter := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}, &clienttest.Bucket{Period: time.Hour}
						c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(limiter)))
						free, _ := clienttest.New(t, w, clienttest.On(other))
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						first := calling(t, ctx, c)
						time.Sleep(waited)
						if enqueued {
							if err := free.Enqueue(clienttest.Post(t, `{"n":1}`), "k"); err != nil {
								t.Fatal(err)
							}
						}
						if err := end(c, cancel); err != nil {
							t.Fatal(err)
						}
						got := <-first
						clienttest.ExactlyOne(t, got.err)
						want := map[bool]error{false: oncehttp.ErrNoEffect, true: oncehttp.ErrOutcomeUnknown}[enqueued]
						_, err := free.Lookup(t.Context(), "k")
						if !errors.Is(got.err, want) || w.Count() != 0 || errors.Is(err, persist.ErrNotFound) == enqueued {
							t.Errorf("%v, %d sends, and in the journal: %v; want %v", got.err, w.Count(), err, want)
						}
					})
				})
			}
		}
	}
}

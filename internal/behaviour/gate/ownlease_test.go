package gate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestPassLeavesTheOwnCall: a client without Authorize sends an operation with the credentials of its caller, and meanwhile makes passes over
// another one, which it cannot send. They leave the lease of the call alone: another process that wants the same is told that it is in flight.
// Invariant 12.
func TestPassLeavesTheOwnCall(t *testing.T) {
	t.Parallel()
	for name, pass := range map[string]func(*testing.T, *oncehttp.Client){
		"Resume": func(t *testing.T, c *oncehttp.Client) {
			n := 0
			for res, err := range c.Resume(t.Context()) {
				if n++; res.Key != "g0" || !errors.Is(err, oncehttp.ErrConfig) {
					t.Errorf("a pass says of %s: %v", res.Key, err)
				}
			}
			if n != 1 {
				t.Errorf("a pass tells %d times of the one that it cannot send", n)
			}
		},
		"Run": func(t *testing.T, c *oncehttp.Client) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_ = c.Run(ctx) // it ends with its context, and says so
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := memory.New()
				var events eventLog
				slow := func(cfg *oncehttp.Config) { cfg.Retry.AttemptTimeout = 5 * time.Minute }
				first, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Minute}}}, clienttest.On(newOtherProcess(j), slow, events.observe))
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				second, _ := clienttest.New(t, w, clienttest.On(newOtherProcess(j), clienttest.OneAttempt))
				able, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(newOtherProcess(j), authorized))
				enqueueGuarded(t, able, 1)
				done := make(chan error)
				go func() {
					req := clienttest.Post(t, "{}")
					req.Header.Set("Authorization", "Bearer x")
					_, err := first.DoKey(req, "k")
					done <- err
				}()
				for range 4 {
					time.Sleep(5 * time.Second)
					pass(t, first)
					if rec, err := j.Get(t.Context(), persist.ID{Key: "k"}); err != nil || rec.LeaseOwner == "" {
						t.Fatalf("the lease of the call is %q, error %v", rec.LeaseOwner, err)
					}
					req := clienttest.Post(t, "{}")
					req.Header.Set("Authorization", "Bearer x")
					if _, err := second.DoKey(req, "k"); !errors.Is(err, oncehttp.ErrInFlight) || w.Count() != 0 {
						t.Errorf("another process: %v, %d sends", err, w.Count())
					}
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				events.mu.Lock()
				defer events.mu.Unlock()
				for _, e := range events.all {
					if e.Kind == oncehttp.EventUnserved && e.Count != 1 {
						t.Errorf("Run tells of %d operations, want the one that waits", e.Count)
					}
				}
			})
		})
	}
}

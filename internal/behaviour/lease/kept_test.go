package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestPassLeavesLeases: a pass that has listed an operation as held, and finds that a caller goes on with it, does not end the
// lease of that caller's run.
func TestPassLeavesLeases(t *testing.T) {
	t.Parallel()
	passes := map[string]func(context.Context, *oncehttp.Client){
		"Resume": func(ctx context.Context, c *oncehttp.Client) {
			for range c.Resume(ctx) {
			}
		},
		"Run": func(ctx context.Context, c *oncehttp.Client) { _ = c.Run(ctx) },
	}
	for name, pass := range passes {
		for _, journal := range []func(*memory.Journal) persist.Journal{journaltest.NewLeasing, journaltest.NewFairLeasing} {
			synctest.Test(t, func(t *testing.T) {
				j := memory.New()
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}, {Status: 201, Delay: 4 * time.Minute}}}
				c, _ := clienttest.New(t, w, clienttest.On(journal(j), clienttest.OneAttempt, slowAnswers, func(cfg *oncehttp.Config) {
					cfg.ResumeWorkers = 1
					cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
						time.Sleep(20 * time.Second)
						return oncehttp.Resolution{}, nil
					}
				}))
				send := func() {
					req := clienttest.Post(t, "{}")
					req.Header.Set("Idempotency-Key", "k")
					if _, err := c.StandardClient().Do(req); err != nil {
						t.Error(err)
					}
				}
				clienttest.HoldAt(t, c, j, "held.example", 1) // keeps the only worker busy
				send()                                        // is held for the caller
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go pass(ctx, c) // lists both
				time.Sleep(time.Second)
				done := make(chan bool)
				go func() { send(); close(done) }()
				other := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				next, _ := clienttest.New(t, other, clienttest.On(journaltest.NewLeasing(j)))
				for range 23 {
					time.Sleep(10 * time.Second)
					clienttest.Resume(t, next)
					if rec := clienttest.Lookup(t, c, "k"); !rec.Leased("", time.Now()) || other.Count() != 0 {
						t.Fatalf("%s: while it is on the wire, its lease ends at %v; it is %v, and another process has sent it %d times",
							name, rec.LeaseUntil, time.Now(), other.Count())
					}
				}
				if <-done; clienttest.Lookup(t, c, "k").State != persist.StateConfirmed {
					t.Errorf("%s: it is %v", name, clienttest.Lookup(t, c, "k").State)
				}
			})
		}
	}
}

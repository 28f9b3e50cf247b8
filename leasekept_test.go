package oncehttp_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
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
		for _, journal := range []func(*memory.Journal) persist.Journal{newLeasing, newFairLeasing} {
			bubble(t, func(t *testing.T) {
				j := memory.New()
				w := &wire{replies: []reply{{status: 503}, {status: 201, delay: 4 * time.Minute}}}
				c, _ := newClient(t, w, on(journal(j), oneAttempt, slowAnswers, func(cfg *oncehttp.Config) {
					cfg.ResumeWorkers = 1
					cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
						time.Sleep(20 * time.Second)
						return oncehttp.Resolution{}, nil
					}
				}))
				send := func() {
					req := post(t, "{}")
					req.Header.Set("Idempotency-Key", "k")
					if _, err := c.StandardClient().Do(req); err != nil {
						t.Error(err)
					}
				}
				holdAt(t, c, j, "held.example", 1) // keeps the only worker busy
				send()                             // is held for the caller
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go pass(ctx, c) // lists both
				time.Sleep(time.Second)
				done := make(chan bool)
				go func() { send(); close(done) }()
				other := &wire{replies: []reply{{status: 201}}}
				next, _ := newClient(t, other, on(newLeasing(j)))
				for range 23 {
					time.Sleep(10 * time.Second)
					resume(t, next)
					if rec := lookup(t, c, "k"); !rec.Leased("", time.Now()) || other.count() != 0 {
						t.Fatalf("%s: while it is on the wire, its lease ends at %v; it is %v, and another process has sent it %d times",
							name, rec.LeaseUntil, time.Now(), other.count())
					}
				}
				if <-done; lookup(t, c, "k").State != persist.StateConfirmed {
					t.Errorf("%s: it is %v", name, lookup(t, c, "k").State)
				}
			})
		}
	}
}

// TestNoLeaseNoSend: of an operation of whose lease it does not know, a client sends nothing.
func TestNoLeaseNoSend(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 503}, {status: 201}}}
		c, _ := newClient(t, w, nil)
		w.before = func(int, *http.Request) { oncehttp.DropLease(c, lookup(t, c, "k").ID) }
		_, err := c.DoKey(post(t, "{}"), "k")
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != 1 {
			t.Errorf("%v after %d sends, want ErrOutcomeUnknown and 1", err, w.count())
		}
		w.before = nil
		time.Sleep(time.Hour)
		if got := resume(t, c); got["k"].err != nil || w.count() != 2 {
			t.Errorf("later: %v, %d sends", got, w.count())
		}
	})
}

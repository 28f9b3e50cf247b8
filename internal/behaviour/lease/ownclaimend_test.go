package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
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

// observeEnds lets Config.Observe take a while at the end of each run.
func observeEnds(takes time.Duration) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		cfg.Observe = func(_ context.Context, e oncehttp.Event) {
			if e.Kind == oncehttp.EventFinished {
				time.Sleep(takes)
			}
		}
	}
}

// TestOwnClaimAfterEnd: what a run has left pending, and is due again while Observe is told of its end, is run again soon after.
func TestOwnClaimAfterEnd(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, 300 * time.Millisecond, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}, {Status: 201}}}
			c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(memory.New()), observeEnds(takes), func(cfg *oncehttp.Config) {
				cfg.Retry = oncehttp.Policy{MaxAttempts: 1, MinDelay: time.Millisecond, MaxDelay: 20 * time.Millisecond, MaxPause: 20 * time.Millisecond}
			}))
			stop, start := clienttest.Run(t, c), time.Now()
			if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			if w.Count() != 2 || w.All()[1].At.Sub(start) > takes+1100*time.Millisecond {
				t.Errorf("Observe takes %v: sends %v, want the second a second later at most", takes, w.All())
			}
			if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed {
				t.Errorf("Observe takes %v: it is %v", takes, rec.State)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOwnClaimAfterForget: an operation that a call has forgotten, and another process has enqueued since, is none of that call's.
func TestOwnClaimAfterForget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		var asked atomic.Int32
		c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(j), observeEnds(15*time.Second), func(cfg *oncehttp.Config) {
			cfg.Limiter = func(string) oncehttp.Limiter {
				if asked.Add(1) == 1 {
					return clienttest.Refuser{}
				}
				return nil
			}
		}))
		other, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(j)))
		stop, start := clienttest.Run(t, c), time.Now()
		time.AfterFunc(time.Second, func() {
			if err := other.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Error(err)
			}
			c.Wake()
		})
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("%v, want ErrNoEffect", err)
		}
		time.Sleep(2 * time.Minute)
		if w.Count() != 1 || w.All()[0].At.Sub(start) > 17*time.Second {
			t.Errorf("sends %v, want one when the call has returned", w.All())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

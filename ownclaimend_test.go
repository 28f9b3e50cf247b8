package oncehttp_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
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
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: 503}, {status: 201}}}
			c, _ := newClient(t, w, on(newFairLeasing(memory.New()), observeEnds(takes), func(cfg *oncehttp.Config) {
				cfg.Retry = oncehttp.Policy{MaxAttempts: 1, MinDelay: time.Millisecond, MaxDelay: 20 * time.Millisecond, MaxPause: 20 * time.Millisecond}
			}))
			stop, start := running(t, c), time.Now()
			if err := c.Enqueue(post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			if w.count() != 2 || w.all()[1].at.Sub(start) > takes+1100*time.Millisecond {
				t.Errorf("Observe takes %v: sends %v, want the second a second later at most", takes, w.all())
			}
			if rec := lookup(t, c, "k"); rec.State != persist.StateConfirmed {
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
	bubble(t, func(t *testing.T) {
		j := memory.New()
		w := &wire{replies: []reply{{status: 201}}}
		var asked atomic.Int32
		c, _ := newClient(t, w, on(newFairLeasing(j), observeEnds(15*time.Second), func(cfg *oncehttp.Config) {
			cfg.Limiter = func(string) oncehttp.Limiter {
				if asked.Add(1) == 1 {
					return refuser{}
				}
				return nil
			}
		}))
		other, _ := newClient(t, w, on(newFairLeasing(j)))
		stop, start := running(t, c), time.Now()
		time.AfterFunc(time.Second, func() {
			if err := other.Enqueue(post(t, "{}"), "k"); err != nil {
				t.Error(err)
			}
			c.Wake()
		})
		_, err := c.DoKey(post(t, "{}"), "k")
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("%v, want ErrNoEffect", err)
		}
		time.Sleep(2 * time.Minute)
		if w.count() != 1 || w.all()[0].at.Sub(start) > 17*time.Second {
			t.Errorf("sends %v, want one when the call has returned", w.all())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

package oncehttp_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// closedFor is a limiter that lets each send go out after so long.
func closedFor(d time.Duration) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		cfg.Limiter = func(string) oncehttp.Limiter {
			return limiterFunc(func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(d):
					return nil
				}
			})
		}
	}
}

// TestLimiterLeavesToOthers: of two processes the limiter of one lets nothing go out for hours. Nothing stays in its hands: the other
// sends all of it, and its records say nothing of the limiter.
func TestLimiterLeavesToOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const n = 20
		j := memory.New()
		none, live := &wire{replies: []reply{{status: 201}}}, &wire{replies: []reply{{status: 201}}}
		waits, _ := newClient(t, none, on(newFairLeasing(j), closedFor(6*time.Hour)))
		free, _ := newClient(t, live, on(newFairLeasing(j)))
		enqueue(t, waits, n)
		stop := running(t, waits)
		time.Sleep(5 * time.Minute)
		for rec := range waits.Unfinished(t.Context()) {
			if rec.Attempts != 0 || rec.Sends != 0 || rec.NextAttempt.After(time.Now()) || rec.MaybeSent || rec.LeaseOwner != "" {
				t.Errorf("%s: %d attempts, due at %v, maybe sent %t, lease of %q; want none, and due at once", rec.Key, rec.Attempts, rec.NextAttempt, rec.MaybeSent, rec.LeaseOwner)
			}
		}
		stopFree := running(t, free)
		time.Sleep(time.Minute)
		if len(live.keys()) != n || none.count() != 0 {
			t.Errorf("%d of %d were sent by the client that can, %d by the other", len(live.keys()), n, none.count())
		}
		if err := errors.Join(stop(), stopFree()); err != nil {
			t.Error(err)
		}
	})
}

// TestSlowLimiterAlone: a process whose limiter takes longer than a third of a lease, and that is alone, sends at the pace of the limiter.
func TestSlowLimiterAlone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const n = 5
		w := &wire{replies: []reply{{status: 201}}}
		c, _ := newClient(t, w, on(newFairLeasing(memory.New()), closedFor(10*time.Minute)))
		enqueue(t, c, n)
		stop := running(t, c)
		time.Sleep(n*10*time.Minute + 5*time.Minute)
		if err := stop(); err != nil || len(w.keys()) != n || w.count() != n {
			t.Errorf("%v after %d sends of %d operations, want %d of each", err, w.count(), len(w.keys()), n)
		}
	})
}

// TestAuthorizeFailsLocally: what one client's Authorize refuses is no attempt, and due as before: another client sends it at once. The one
// that cannot tries it again ever more seldom.
func TestAuthorizeFailsLocally(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, one, other persist.Journal) {
		const n = 20
		var asked atomic.Int32
		none, live := &wire{replies: []reply{{status: 201}}}, &wire{replies: []reply{{status: 201}}}
		fails, _ := newClient(t, none, on(one, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(*http.Request) error {
				asked.Add(1)
				return errors.New("no token")
			}
		}))
		can, _ := newClient(t, live, on(other))
		enqueue(t, can, n)
		stop := running(t, fails)
		time.Sleep(3 * time.Hour)
		for rec := range fails.Unfinished(t.Context()) {
			if rec.Attempts != 0 || rec.NextAttempt.After(time.Now()) || rec.MaybeSent || rec.State != persist.StatePending {
				t.Errorf("%s: %v, %d attempts, due at %v, maybe sent %t; want none, and due at once", rec.Key, rec.State, rec.Attempts, rec.NextAttempt, rec.MaybeSent)
			}
		}
		if got := asked.Load(); got < n || got > 40*n {
			t.Errorf("Authorize was asked %d times for %d operations in three hours", got, n)
		}
		stopCan := running(t, can)
		time.Sleep(2 * time.Minute)
		if len(live.keys()) != n || none.count() != 0 {
			t.Errorf("%d of %d were sent by the client that can, %d by the other", len(live.keys()), n, none.count())
		}
		_ = stop()
		if err := stopCan(); err != nil {
			t.Error(err)
		}
	}
	eachJournal(t, func(t *testing.T, j persist.Journal) { test(t, j, j) })
	bubbleOf(t, func(t *testing.T) {
		j := memory.New()
		test(t, newFairLeasing(j), newFairLeasing(j))
	})
}

// TestLongTimeoutHoldsNothing: a client whose AttemptTimeout leaves no time in the window leaves an operation alone; it is not held before
// its window is over for everybody, and a client of usual timeouts sends it.
func TestLongTimeoutHoldsNothing(t *testing.T) {
	t.Parallel()
	long := func(cfg *oncehttp.Config) {
		cfg.Retry.AttemptTimeout, cfg.Retry.AnswerTimeout = 10*time.Hour, 10*time.Hour
		cfg.Profile = ownWindow(24 * time.Hour)
	}
	usual := func(cfg *oncehttp.Config) { cfg.Profile = ownWindow(24 * time.Hour) }
	for _, how := range []string{"Do", "Resume"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			eachJournal(t, func(t *testing.T, j persist.Journal) {
				w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
				begins, _ := newClient(t, w, on(j, oneAttempt, usual))
				holds, _ := newClient(t, w, on(j, oneAttempt, long))
				_, _ = begins.DoKey(post(t, "{}"), "k")
				time.Sleep(16 * time.Hour)
				if how == "Do" {
					_, err := holds.DoKey(post(t, "{}"), "k")
					if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Error(err)
					}
				} else {
					resume(t, holds)
				}
				if rec := lookup(t, holds, "k"); rec.State != persist.StatePending || w.count() != 1 || rec.NextAttempt.After(time.Now().Add(time.Second)) {
					t.Fatalf("it is %v, due at %v, after %d sends", rec.State, rec.NextAttempt, w.count())
				}
				if _, err := begins.DoKey(post(t, "{}"), "k"); err != nil || w.count() != 2 {
					t.Errorf("%v after %d sends", err, w.count())
				}
			})
		})
	}
}

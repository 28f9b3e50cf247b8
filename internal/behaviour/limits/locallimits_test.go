package limits_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestAuthorizeFailsLocally: what one client's Authorize refuses is no attempt, and due as before: another client sends it at once. The one
// that cannot tries it again ever more seldom.
func TestAuthorizeFailsLocally(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, one, other persist.Journal) {
		const n = 20
		var asked atomic.Int32
		none, live := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		fails, _ := clienttest.New(t, none, clienttest.On(one, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(*http.Request) error {
				asked.Add(1)
				return errors.New("no token")
			}
		}))
		can, _ := clienttest.New(t, live, clienttest.On(other, clienttest.AddsNothing))
		clienttest.Enqueue(t, can, n)
		stop := clienttest.Run(t, fails)
		time.Sleep(3 * time.Hour)
		for rec := range fails.Unfinished(t.Context()) {
			if rec.Attempts != 0 || rec.NextAttempt.After(time.Now()) || rec.MaybeSent || rec.State != persist.StatePending {
				t.Errorf("%s: %v, %d attempts, due at %v, maybe sent %t; want none, and due at once", rec.Key, rec.State, rec.Attempts, rec.NextAttempt, rec.MaybeSent)
			}
		}
		if got := asked.Load(); got < n || got > 40*n {
			t.Errorf("Authorize was asked %d times for %d operations in three hours", got, n)
		}
		stopCan := clienttest.Run(t, can)
		time.Sleep(2 * time.Minute)
		if len(live.Keys()) != n || none.Count() != 0 {
			t.Errorf("%d of %d were sent by the client that can, %d by the other", len(live.Keys()), n, none.Count())
		}
		_ = stop()
		if err := stopCan(); err != nil {
			t.Error(err)
		}
	}
	journaltest.Each(t, func(t *testing.T, j persist.Journal) { test(t, j, j) })
	journaltest.TwoProcesses(t, func(t *testing.T) {
		j := memory.New()
		test(t, journaltest.NewFairLeasing(j), journaltest.NewFairLeasing(j))
	})
}

// TestLongTimeoutHoldsNothing: a client whose AttemptTimeout leaves no time in the window leaves an operation alone; it is not held before
// its window is over for everybody, and a client of usual timeouts sends it.
func TestLongTimeoutHoldsNothing(t *testing.T) {
	t.Parallel()
	long := func(cfg *oncehttp.Config) {
		cfg.Retry.AttemptTimeout, cfg.Retry.AnswerTimeout = 10*time.Hour, 10*time.Hour
		cfg.Profile = clienttest.OwnWindow(24 * time.Hour)
	}
	usual := func(cfg *oncehttp.Config) { cfg.Profile = clienttest.OwnWindow(24 * time.Hour) }
	for _, how := range []string{"Do", "Resume"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
				begins, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, usual))
				holds, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, long))
				_, _ = begins.DoKey(clienttest.Post(t, "{}"), "k")
				time.Sleep(16 * time.Hour)
				if how == "Do" {
					_, err := holds.DoKey(clienttest.Post(t, "{}"), "k")
					if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Error(err)
					}
				} else {
					clienttest.Resume(t, holds)
				}
				if rec := clienttest.Lookup(t, holds, "k"); rec.State != persist.StatePending || w.Count() != 1 || rec.NextAttempt.After(time.Now().Add(time.Second)) {
					t.Fatalf("it is %v, due at %v, after %d sends", rec.State, rec.NextAttempt, w.Count())
				}
				if _, err := begins.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || w.Count() != 2 {
					t.Errorf("%v after %d sends", err, w.Count())
				}
			})
		})
	}
}

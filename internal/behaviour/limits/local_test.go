package limits_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// This file tests that what one client lacks or is told stays with that client: see Config.Journal.

// TestADeadProxyIsLocal: of two clients of one journal one reaches no server. What it tried in vain is due as before, so that
// the other sends it at once, whether they run at the same time or one after the other.
func TestADeadProxyIsLocal(t *testing.T) {
	t.Parallel()
	const n = 20
	for _, together := range []bool{true, false} {
		journaltest.Each(t, func(t *testing.T, j persist.Journal) {
			cut, live := &wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			dead, _ := clienttest.New(t, cut, clienttest.On(j))
			healthy, _ := clienttest.New(t, live, clienttest.On(j))
			clienttest.Enqueue(t, dead, n)
			stop := clienttest.Run(t, dead)
			time.Sleep(time.Hour)
			for rec := range dead.Unfinished(t.Context()) {
				if rec.Attempts != 0 || rec.NextAttempt.After(time.Now()) || rec.MaybeSent {
					t.Errorf("%s: %d attempts, due at %v, maybe sent %t; want none, and due at once", rec.Key, rec.Attempts, rec.NextAttempt, rec.MaybeSent)
				}
			}
			if !together {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}
			stopHealthy := clienttest.Run(t, healthy)
			time.Sleep(30 * time.Second)
			if got := len(live.Keys()); got != n {
				t.Errorf("together %t: %d of %d were sent by the client that can", together, got, n)
			}
			if err := stopHealthy(); err != nil {
				t.Error(err)
			}
			if together {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestPausesAreTheRecords: a client whose own pauses are of hours tries in vain what another began. The pauses of the one that
// began it count, whoever tries.
func TestPausesAreTheRecords(t *testing.T) {
	t.Parallel()
	patient := func(cfg *oncehttp.Config) {
		cfg.Retry = oncehttp.Policy{MaxAttempts: 1, MaxDelay: 8 * time.Hour, MaxPause: 8 * time.Hour}
	}
	short := func(cfg *oncehttp.Config) {
		cfg.Retry = oncehttp.Policy{MaxAttempts: 2, MaxDelay: 10 * time.Second, MaxPause: time.Minute}
	}
	usual := func(*oncehttp.Config) {}
	for _, c := range []struct {
		name          string
		begins, tries func(*oncehttp.Config)
		passes        int // in vain
		want          time.Duration
	}{
		{"the usual pause, tried by a patient client", usual, patient, 1, 30 * time.Second},
		{"short pauses, tried by a patient client", short, patient, 1, 10 * time.Second},
		{"short pauses, tried so by a patient client that the pause grows", short, patient, 5, 40 * time.Second},
		{"the longest of the short pauses", short, patient, 9, time.Minute},
		{"long pauses, tried by the usual client", patient, usual, 1, 8 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				beginner, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(j, c.begins))
				trier, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500}}}, clienttest.On(j, c.tries, func(cfg *oncehttp.Config) { cfg.Retry.MaxElapsed = time.Minute }))
				clienttest.Enqueue(t, beginner, 1)
				for range c.passes {
					time.Sleep(8 * time.Hour / 10)
					if got := clienttest.Resume(t, trier); len(got) != 1 {
						t.Fatalf("%v", got)
					}
				}
				if rec := clienttest.Lookup(t, beginner, "k0"); time.Until(rec.NextAttempt).Round(time.Second) != c.want {
					t.Errorf("due in %v, want in %v, after %d attempts", time.Until(rec.NextAttempt), c.want, rec.Attempts)
				}
			})
		})
	}
}

// TestCloseCutsItsOwn: two clients of one journal are closed at once. The one with the shorter AttemptTimeout cuts what it has
// on the wire, and not what the other has.
func TestCloseCutsItsOwn(t *testing.T) {
	t.Parallel()
	for _, resumes := range []bool{false, true} {
		test := func(t *testing.T, shared enginetest.Shared) {
			j := shared.Open()
			var asked atomic.Bool
			limit := func(d time.Duration) func(*oncehttp.Config) {
				return func(cfg *oncehttp.Config) { cfg.Retry.AttemptTimeout, cfg.Retry.AnswerTimeout = d, time.Hour }
			}
			slow := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: shared.Time(20*time.Second, time.Second)}}}
			patient, _ := clienttest.New(t, slow, clienttest.On(j, limit(time.Minute), clienttest.AddsNothing))
			hasty, _ := clienttest.New(t, slow, clienttest.On(j, limit(shared.Time(time.Second, 100*time.Millisecond)), func(cfg *oncehttp.Config) {
				cfg.Authorize = func(*http.Request) error { // so that there is something to cut
					asked.Store(true)
					time.Sleep(shared.Time(10*time.Second, 600*time.Millisecond))
					return nil
				}
			}))
			var calls sync.WaitGroup
			calls.Go(func() {
				if resumes {
					if err := patient.Enqueue(clienttest.Post(t, "{}"), "patient"); err != nil {
						t.Error(err)
					}
					ended := 0
					for res, err := range patient.Resume(context.Background()) {
						switch {
						case res.Outcome == oncehttp.OutcomeConfirmed && err == nil:
							ended++
						case res.Key != "" || !errors.Is(err, oncehttp.ErrClosed): // the pass may be told so before it knows that nothing else is due
							t.Errorf("resume: %+v, %v", res, err)
						}
					}
					if ended != 1 {
						t.Errorf("%d operations ended, want 1: its attempt was cut", ended)
					}
				} else if _, err := patient.DoKey(clienttest.Post(t, "{}"), "patient"); err != nil {
					t.Errorf("its attempt was cut: %v", err)
				}
			})
			calls.Go(func() {
				if _, err := hasty.DoKey(clienttest.Post(t, "{}"), "hasty"); err == nil {
					t.Error("its call was not cut")
				}
			})
			shared.Await(time.Second/2, func() bool { return slow.Count() == 1 && asked.Load() })
			calls.Go(func() { _ = patient.Close() })
			calls.Go(func() { _ = hasty.Close() })
			calls.Wait()
		}
		t.Run(fmt.Sprintf("resumes %t", resumes), func(t *testing.T) {
			t.Parallel()
			enginetest.OnEach(t, enginetest.Engines(), test)
		})
	}
}

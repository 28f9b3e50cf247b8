package enqueue_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/seal"
	"github.com/oncehttp/oncehttp/profile"
)

// lateAge is EnqueueMaxAge of these tests, and so where SendBefore stands.
const lateAge = time.Hour

// lateLife is a journal that processes claim from, which die.
type lateLife struct {
	*testing.T
	j *memory.Journal
	w *wiretest.Wire
}

// dies is a process that claims everything and is killed. before is how long that is before SendBefore of k0.
func (l lateLife) dies(toSend bool, before time.Duration) {
	l.Helper()
	l.until(before)
	var err error
	if toSend {
		_, _, err = l.j.ClaimToSend(l.Context(), persist.Query{AllAccounts: true}, "dies", time.Minute, time.Hour, 10)
	} else {
		_, _, err = l.j.Claim(l.Context(), persist.Query{AllAccounts: true}, "dies", time.Minute, 10)
	}
	if err != nil {
		l.Error(err)
	}
}

// until waits until it is so long before SendBefore of k0.
func (l lateLife) until(before time.Duration) {
	l.Helper()
	rec, err := l.j.Get(l.Context(), persist.ID{Key: "k0"})
	if err != nil {
		l.Fatal(err)
	}
	time.Sleep(time.Until(rec.SendBefore.Add(-before)))
}

// runs is a process that runs for an hour.
func (l lateLife) runs(changes ...func(*oncehttp.Config)) *oncehttp.Client {
	l.Helper()
	c := l.client(changes...)
	stop := clienttest.Run(l.T, c)
	time.Sleep(time.Hour)
	if err := stop(); err != nil {
		l.Error(err)
	}
	return c
}

// client is a process of its own.
func (l lateLife) client(changes ...func(*oncehttp.Config)) *oncehttp.Client {
	l.Helper()
	changes = append([]func(*oncehttp.Config){func(cfg *oncehttp.Config) { cfg.EnqueueMaxAge = lateAge }}, changes...)
	c, _ := clienttest.New(l.T, l.w, clienttest.On(journaltest.NewLeasing(l.j), changes...))
	return c
}

// aged sets EnqueueMaxAge of another life.
func aged(age time.Duration) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.EnqueueMaxAge = age }
}

// claimedLate is one row: what becomes of k0 between its Enqueue and the end, and how often it is sent. Without a send it ends as held
// and never sent.
type claimedLate struct {
	change  func(*oncehttp.Config) // of the process that enqueues
	replies []wiretest.Reply
	act     func(l lateLife) *oncehttp.Client
	sends   int
}

// What was enqueued is sent for the first time before SendBefore or not at all: by whichever claim, call and configuration it is met.
func TestNeighbourClaimedLate(t *testing.T) {
	t.Parallel()
	done := []wiretest.Reply{{Status: 201}}
	for name, row := range map[string]claimedLate{
		"Claim in time marks nothing": {nil, done, func(l lateLife) *oncehttp.Client {
			l.dies(false, time.Nanosecond)
			return l.runs()
		}, 0},
		"Claim whose lease ends in time": {nil, done, func(l lateLife) *oncehttp.Client {
			l.dies(false, 2*time.Minute)
			return l.runs()
		}, 1},
		"Claim in time, ClaimToSend at it": {nil, done, func(l lateLife) *oncehttp.Client {
			l.dies(false, time.Minute)
			l.dies(true, 0)
			time.Sleep(time.Minute)
			return l.runs()
		}, 0},
		"a longer EnqueueMaxAge in the next life": {nil, done, func(l lateLife) *oncehttp.Client {
			l.dies(true, 0)
			return l.runs(aged(24 * time.Hour))
		}, 0},
		"a shorter EnqueueMaxAge in the next life": {nil, done, func(l lateLife) *oncehttp.Client {
			l.until(time.Minute)
			return l.runs(aged(time.Second))
		}, 1},
		"Do after a late claim": {nil, done, func(l lateLife) *oncehttp.Client {
			l.dies(true, 0)
			time.Sleep(time.Hour)
			c := l.client()
			_, err := c.DoKey(clienttest.Post(l.T, `{"n":0}`), "k0")
			if clienttest.ExactlyOne(l.T, err); !errors.Is(err, oncehttp.ErrHeld) || !errors.Is(err, oncehttp.ErrKeyExpired) {
				l.Errorf("Do: %v", err)
			}
			return c
		}, 0},
		"enqueued once more after it was held": {nil, done, func(l lateLife) *oncehttp.Client {
			l.dies(true, 0)
			l.runs()
			if n := l.w.Count(); n != 0 {
				l.Errorf("%d sends before it was enqueued once more", n)
			}
			clienttest.Enqueue(l.T, l.client(), 1)
			return l.runs()
		}, 1},
		"not connected in time, claimed past it": {nil, []wiretest.Reply{{Refused: true}, {Status: 201}}, func(l lateLife) *oncehttp.Client {
			l.until(30 * time.Second)
			c := l.client(func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 })
			for range c.Resume(l.Context()) {
				continue
			}
			l.dies(true, 0)
			return l.runs()
		}, 1}, // the one that had no connection
		"answered 503 in time, claimed past it": {nil, []wiretest.Reply{{Status: 503}, {Status: 201}}, func(l lateLife) *oncehttp.Client {
			l.until(30 * time.Second)
			c := l.client(func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 })
			for range c.Resume(l.Context()) {
				continue
			}
			l.dies(true, 0)
			return l.runs()
		}, 2},
		"no key protects it, claimed in time": {func(cfg *oncehttp.Config) { cfg.Profile = profile.None() }, done, func(l lateLife) *oncehttp.Client {
			l.dies(true, time.Nanosecond)
			return l.runs(func(cfg *oncehttp.Config) { cfg.Profile = profile.None() })
		}, 0},
		"assigned after a late claim": {nil, done, func(l lateLife) *oncehttp.Client {
			l.dies(true, 0)
			time.Sleep(2 * time.Minute)
			alice := func(cfg *oncehttp.Config) { cfg.Account = "alice" }
			if err := l.client(alice).Assign(l.Context(), "k0"); err != nil {
				l.Error(err)
			}
			return l.runs(alice)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := lateLife{t, memory.New(), &wiretest.Wire{Replies: row.replies}}
				first := row.change
				if first == nil {
					first = func(*oncehttp.Config) {}
				}
				clienttest.Enqueue(t, l.client(first), 1)
				endedAs(t, row.act(l), l.w.Count(), row.sends, row.sends == 0 || row.replies[0].Refused)
			})
		})
	}
}

// Of many that one process has claimed in time, and that wait for its one worker, none is sent for the first time past SendBefore,
// and what was not sent says so. A sealed record that a dead process had claimed in time likewise.
func TestNeighbourQueuedLate(t *testing.T) {
	t.Parallel()
	sealer, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "k1", Secret: make([]byte, 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, sealed := range []bool{false, true} {
		for _, workers := range []int{1, 2, 8} {
			synctest.Test(t, func(t *testing.T) {
				const n = 12
				m, w := memory.New(), &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 4 * time.Second}}}
				j := persist.Journal(m)
				if sealed {
					if j, err = sealer.Journal(context.Background(), m); err != nil {
						t.Fatal(err)
					}
				}
				client, _ := clienttest.New(t, w, clienttest.On(j, aged(lateAge), func(cfg *oncehttp.Config) {
					cfg.ResumeWorkers = workers
					cfg.Authorize = func(*http.Request) error { return nil }
				}))
				clienttest.Enqueue(t, client, n)
				end := time.Now().Add(lateAge)
				time.Sleep(lateAge - 10*time.Second)
				if sealed {
					if _, _, err := m.ClaimToSend(t.Context(), persist.Query{}, "dies", 5*time.Second, time.Hour, 3); err != nil {
						t.Error(err)
					}
				}
				stop := clienttest.Run(t, client)
				time.Sleep(time.Hour)
				if err := stop(); err != nil {
					t.Error(err)
				}
				sent := map[string]bool{}
				for _, s := range w.All() {
					if s.At.After(end) {
						t.Errorf("%d workers: %s is sent %v past SendBefore", workers, s.Key, s.At.Sub(end))
					}
					if sent[s.Key] {
						t.Errorf("%d workers: %s is sent twice", workers, s.Key)
					}
					sent[s.Key] = true
				}
				if len(sent) == 0 {
					t.Errorf("%d workers: nothing was sent in time", workers)
				}
				held := 0
				for rec, err := range j.List(t.Context(), persist.Query{}) {
					switch was := sent[rec.Key] || sent[`"`+rec.Key+`"`]; {
					case err != nil:
						t.Error(err)
					case was != (rec.State == persist.StateConfirmed):
						t.Errorf("%d workers: %s was sent %t and is %v", workers, rec.Key, was, rec.State)
					case !was && (rec.HoldReason != persist.HoldExpired || rec.MaybeSent || rec.Sends != 0):
						t.Errorf("%d workers: %s is %v for %q, maybe sent %t", workers, rec.Key, rec.State, rec.HoldReason, rec.MaybeSent)
					case !was:
						held++
					}
				}
				if workers < 8 && held == 0 {
					t.Errorf("%d workers: all were sent in time, so nothing was tested", workers)
				}
			})
		}
	}
}

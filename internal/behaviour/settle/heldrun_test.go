package settle_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
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

// slowReconcile is a Config.Reconcile whose API does not answer. It notes how often it was asked, and how many at once at most.
type slowReconcile struct{ asked, now, ever atomic.Int32 }

func (s *slowReconcile) ask(context.Context, persist.Record) (oncehttp.Resolution, error) {
	s.asked.Add(1)
	s.ever.Store(max(s.ever.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	time.Sleep(30 * time.Second)
	return oncehttp.Resolution{}, errors.New("no answer")
}

// TestHeldKeepNothingWaiting: while Reconcile is slow, and cannot resolve what is held, what is pending is sent at once. A quarter
// of the workers ask it, and a minute passes between the last that is asked of in one round and the first of the next.
func TestHeldKeepNothingWaiting(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]int32{2: 1, 8: 2} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			var slow slowReconcile
			c, j := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Reconcile, cfg.ResumeWorkers = slow.ask, workers })
			const held = 80
			clienttest.HoldAt(t, c, j, "held.example", held)
			start := time.Now()
			stop := clienttest.Run(t, c)
			for i := range 20 {
				time.Sleep(time.Minute)
				clienttest.EnqueueAt(t, c, fmt.Sprintf("host%d.example", i), 3)
				time.Sleep(time.Millisecond)
				if w.Count() != 3*(i+1) {
					t.Fatalf("%d workers: %d of %d were sent after %v", workers, w.Count(), 3*(i+1), time.Since(start))
				}
			}
			round := held * 30 * time.Second / time.Duration(want)
			time.Sleep(time.Until(start.Add(round + 29*time.Second))) // the last were begun half a minute before the end
			first := slow.asked.Load()
			time.Sleep(2 * time.Second)
			if first != held || slow.asked.Load() != held+want || slow.ever.Load() != want {
				t.Errorf("%d workers: asked %d times in the first round, %d a minute after it, %d at once; want %d, %d, %d",
					workers, first, slow.asked.Load(), slow.ever.Load(), held, held+want, want)
			}
			began := time.Now()
			if err := stop(); err != nil || time.Since(began) > 30*time.Second {
				t.Errorf("%d workers: %v, %v after it was told to stop", workers, err, time.Since(began))
			}
		})
	}
}

// TestHeldIsEnqueued: what was held when Run listed it, and is pending when its turn comes, is claimed as everything else.
func TestHeldIsEnqueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(j), clienttest.OneAttempt, func(cfg *oncehttp.Config) {
			cfg.ResumeWorkers = 1
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
				time.Sleep(25 * time.Second)
				return oncehttp.Resolution{}, nil
			}
		}))
		other, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(j)))
		clienttest.HoldAt(t, c, j, "held.example", 1)
		req := clienttest.Post(t, "{}")
		req.Header.Set("Idempotency-Key", "k")
		if _, err := c.StandardClient().Do(req); err != nil {
			t.Fatal(err)
		}
		start, stop := time.Now(), clienttest.Run(t, c) // it asks of the first
		time.Sleep(24 * time.Second)
		if err := other.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := stop(); err != nil || w.Count() != 2 || w.All()[1].At.Sub(start) != 30*time.Second {
			t.Errorf("%v, sends %v; want the second at 30 s, when Run looks at the journal", err, w.All())
		}
	})
}

// turning yields what is held as it is a moment later: pending again, since a call goes on with it.
type turning struct{ *memory.Journal }

func (j *turning) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		for rec, err := range j.Journal.List(ctx, q) {
			if err == nil && rec.State == persist.StateHeld && len(q.States) == 1 {
				rec.State, rec.HoldReason, rec.NextAttempt = persist.StatePending, "", time.Time{}
				rec, err = j.Journal.Update(ctx, rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// TestRunListsWhatIsNoMoreHeld: an operation that is pending again by the time at which the listing of what is held yields it is left
// to the claims, as any other.
func TestRunListsWhatIsNoMoreHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 301}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(&turning{memory.New()}, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) { return oncehttp.Resolution{}, nil }
		}))
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrHeld) {
			t.Fatal(err)
		}
		stop := clienttest.Run(t, c)
		time.Sleep(time.Hour)
		if err := stop(); err != nil || w.Count() != 2 || clienttest.Lookup(t, c, "k").State != persist.StateConfirmed {
			t.Errorf("%v, %d sends, it is %v", err, w.Count(), clienttest.Lookup(t, c, "k").State)
		}
	})
}

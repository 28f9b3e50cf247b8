package limits_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestLimiterLeavesToOthers: while the limiter of one client lets nothing go out for hours, nothing stays in its hands: the other sends all
// of it, and the records say nothing of the limiter.
func TestLimiterLeavesToOthers(t *testing.T) {
	t.Parallel()
	journaltest.Two(t, func(t *testing.T, one, other persist.Journal) {
		const n = 20
		none, live := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		waits, _ := clienttest.New(t, none, clienttest.On(one, clienttest.LimitedBy(&clienttest.Bucket{Period: 6 * time.Hour})))
		free, _ := clienttest.New(t, live, clienttest.On(other))
		clienttest.Enqueue(t, waits, n)
		stop := clienttest.Run(t, waits)
		time.Sleep(5 * time.Minute)
		for rec := range waits.Unfinished(t.Context()) {
			if rec.Attempts != 0 || rec.Sends != 0 || rec.NextAttempt.After(time.Now()) || rec.MaybeSent || rec.LeaseOwner != "" {
				t.Errorf("%s: %d attempts, due at %v, maybe sent %t, lease of %q; want none, and due at once", rec.Key, rec.Attempts, rec.NextAttempt, rec.MaybeSent, rec.LeaseOwner)
			}
		}
		stopFree := clienttest.Run(t, free)
		time.Sleep(time.Minute)
		if len(live.Keys()) != n || none.Count() != 0 {
			t.Errorf("%d of %d were sent by the client that can, %d by the other", len(live.Keys()), n, none.Count())
		}
		if err := errors.Join(stop(), stopFree()); err != nil {
			t.Error(err)
		}
	})
}

// TestSlowLimiterKeepsItsPace: a client whose limiter takes longer than a third of a lease, and whose turns are lost with the wait for them,
// sends one operation each turn. It asks once for each, and at most once more for each of its workers: what one has just given back may
// have been claimed for another.
func TestSlowLimiterKeepsItsPace(t *testing.T) {
	t.Parallel()
	journaltest.Two(t, func(t *testing.T, j, _ persist.Journal) {
		const n, period, workers = 30, 10 * time.Minute, 14
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		limiter := &clienttest.Bucket{Period: period}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.LimitedBy(limiter)))
		clienttest.Enqueue(t, c, n)
		began := time.Now()
		stop := clienttest.Run(t, c)
		time.Sleep(n*period + time.Minute)
		if err := stop(); err != nil || w.Count() != n || len(w.Keys()) != n || limiter.Count() < n || limiter.Count() > n+workers {
			t.Errorf("%v after %d sends of %d operations, and %d waits; want %d of each", err, w.Count(), len(w.Keys()), limiter.Count(), n)
		}
		for i, s := range w.All() {
			if off := s.At.Sub(began) - time.Duration(i+1)*period; off < 0 || off > time.Second {
				t.Errorf("send %d comes %v late", i, off)
			}
		}
	})
}

// TestSlowLimiterOfTwo: of two processes with one slow limiter each, both send at their pace, and nothing twice.
func TestSlowLimiterOfTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n, period = 40, 10 * time.Minute
		j, w := memory.New(), &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		var stops []func() error
		for i := range 2 {
			c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(j), clienttest.LimitedBy(&clienttest.Bucket{Period: period})))
			if i == 0 {
				clienttest.Enqueue(t, c, n)
			}
			stops = append(stops, clienttest.Run(t, c))
		}
		time.Sleep((n/2 + 2) * period)
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if w.Count() != n || len(w.Keys()) != n {
			t.Errorf("%d sends of %d operations, want %d of each", w.Count(), len(w.Keys()), n)
		}
	})
}

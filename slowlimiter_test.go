package oncehttp_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// bucket is a limiter that lets one send go out each period, and takes the turn of a wait with the call: one that is ended is lost.
type bucket struct {
	period time.Duration

	mu    sync.Mutex
	next  time.Time
	asked int
}

func (b *bucket) Wait(ctx context.Context) error {
	b.mu.Lock()
	b.asked++
	b.next = latest(b.next, time.Now()).Add(b.period)
	at := b.next
	b.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(at)):
		return nil
	}
}

func (b *bucket) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// limitedBy gives a client this limiter.
func limitedBy(l oncehttp.Limiter) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.Limiter = func(string) oncehttp.Limiter { return l } }
}

// twoOf are the journals of two clients, in one process and in two.
func twoOf(t *testing.T, test func(t *testing.T, one, other persist.Journal)) {
	t.Helper()
	eachJournal(t, func(t *testing.T, j persist.Journal) { test(t, j, j) })
	t.Run("two processes", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T) {
			j := memory.New()
			test(t, newFairLeasing(j), newFairLeasing(j))
		})
	})
}

// TestLimiterLeavesToOthers: while the limiter of one client lets nothing go out for hours, nothing stays in its hands: the other sends all
// of it, and the records say nothing of the limiter.
func TestLimiterLeavesToOthers(t *testing.T) {
	t.Parallel()
	twoOf(t, func(t *testing.T, one, other persist.Journal) {
		const n = 20
		none, live := &wire{replies: []reply{{status: 201}}}, &wire{replies: []reply{{status: 201}}}
		waits, _ := newClient(t, none, on(one, limitedBy(&bucket{period: 6 * time.Hour})))
		free, _ := newClient(t, live, on(other))
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

// TestSlowLimiterKeepsItsPace: a client whose limiter takes longer than a third of a lease, and whose turns are lost with the wait for them,
// sends one operation each turn. It asks once for each, and at most once more for each of its workers: what one has just given back may
// have been claimed for another.
func TestSlowLimiterKeepsItsPace(t *testing.T) {
	t.Parallel()
	twoOf(t, func(t *testing.T, j, _ persist.Journal) {
		const n, period, workers = 30, 10 * time.Minute, 14
		w := &wire{replies: []reply{{status: 201}}}
		limiter := &bucket{period: period}
		c, _ := newClient(t, w, on(j, limitedBy(limiter)))
		enqueue(t, c, n)
		began := time.Now()
		stop := running(t, c)
		time.Sleep(n*period + time.Minute)
		if err := stop(); err != nil || w.count() != n || len(w.keys()) != n || limiter.count() < n || limiter.count() > n+workers {
			t.Errorf("%v after %d sends of %d operations, and %d waits; want %d of each", err, w.count(), len(w.keys()), limiter.count(), n)
		}
		for i, s := range w.all() {
			if off := s.at.Sub(began) - time.Duration(i+1)*period; off < 0 || off > time.Second {
				t.Errorf("send %d comes %v late", i, off)
			}
		}
	})
}

// TestSlowLimiterOfTwo: of two processes with one slow limiter each, both send at their pace, and nothing twice.
func TestSlowLimiterOfTwo(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const n, period = 40, 10 * time.Minute
		j, w := memory.New(), &wire{replies: []reply{{status: 201}}}
		var stops []func() error
		for i := range 2 {
			c, _ := newClient(t, w, on(newFairLeasing(j), limitedBy(&bucket{period: period})))
			if i == 0 {
				enqueue(t, c, n)
			}
			stops = append(stops, running(t, c))
		}
		time.Sleep((n/2 + 2) * period)
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if w.count() != n || len(w.keys()) != n {
			t.Errorf("%d sends of %d operations, want %d of each", w.count(), len(w.keys()), n)
		}
	})
}

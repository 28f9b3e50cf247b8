package run_test

import (
	"context"
	"fmt"
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

// hanging is a journal on a server that answers no write from some moment on: each ends after nine seconds.
type hanging struct {
	*memory.Journal
	down atomic.Bool
}

func (h *hanging) wait() error {
	if !h.down.Load() {
		return nil
	}
	time.Sleep(9 * time.Second)
	return persist.ErrUncertain
}

func (h *hanging) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := h.wait(); err != nil {
		return rec, err
	}
	return h.Journal.Update(ctx, rec)
}

func (h *hanging) Finish(ctx context.Context, rec persist.Record) error {
	if err := h.wait(); err != nil {
		return err
	}
	return h.Journal.Finish(ctx, rec)
}

// TestRunStopsWhileTheJournalHangs: what Run has claimed and not begun is given back all at once, so that it ends one call of the
// journal after the attempts on the wire, or after what it was writing.
func TestRunStopsWhileTheJournalHangs(t *testing.T) {
	t.Parallel()
	fair := func(h *hanging) persist.Journal { return h }
	other := func(h *hanging) persist.Journal {
		return &struct {
			persist.Journal
			persist.Claimer
		}{h, h}
	}
	for _, c := range []struct {
		attempt, down, stop, want time.Duration // down and stop after the start, want after stop
	}{
		{20 * time.Second, 5 * time.Second, 5 * time.Second, 24 * time.Second}, // the attempts end after 15 s
		{10 * time.Second, 9 * time.Second, 20 * time.Second, 9 * time.Second}, // at 19 s workers have begun with others
	} {
		for _, workers := range []int{2, 64} {
			for _, journal := range []func(*hanging) persist.Journal{fair, other} {
				synctest.Test(t, func(t *testing.T) {
					h := &hanging{Journal: memory.New()}
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: c.attempt}}}
					client, _ := clienttest.New(t, w, clienttest.On(journal(h), func(cfg *oncehttp.Config) { cfg.ResumeWorkers = workers }))
					clienttest.EnqueueAt(t, client, "one.example", 1000)
					stop := clienttest.Run(t, client)
					time.AfterFunc(c.down, func() { h.down.Store(true) })
					time.Sleep(c.stop)
					start := time.Now()
					if err := stop(); err != nil || time.Since(start) > c.want {
						t.Errorf("%d workers, down after %v: it ended with %v, %v after it was told to stop; want %v at most",
							workers, c.down, err, time.Since(start), c.want)
					}
				})
			}
		}
	}
}

// unreachable is a journal on a server that answers no claim while it is down.
type unreachable struct {
	*memory.Journal
	down atomic.Bool
}

func (u *unreachable) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	if u.down.Load() {
		return nil, time.Time{}, journaltest.ErrOutage
	}
	return u.Journal.ClaimToSend(ctx, q, owner, lease, sending, n)
}

// TestRunForgetsOutages: after an outage that was long, and an hour in which it worked, Run goes on a second after a short one.
func TestRunForgetsOutages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &unreachable{Journal: memory.New()}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(u))
		stop := clienttest.Run(t, c)
		for i, outage := range []time.Duration{10 * time.Minute, 500 * time.Millisecond} {
			u.down.Store(true)
			clienttest.EnqueueAt(t, c, fmt.Sprintf("host%d.example", i), 1)
			time.Sleep(outage)
			u.down.Store(false)
			time.Sleep(map[bool]time.Duration{true: time.Minute, false: time.Second}[outage > time.Minute])
			if w.Count() != i+1 {
				t.Errorf("after an outage of %v: %d sends, want %d", outage, w.Count(), i+1)
			}
			time.Sleep(time.Hour)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

package run

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/persist"
)

// Wake implements oncehttp.Client.Wake: the Run of this client and, on a persist.Notifier, of others looks at the journal at once.
func (c *Client) Wake() {
	if unusable(context.Background(), c) == nil {
		c.engine.wakeAll()
	}
}

// notifier returns the journal's means to wake other processes; nil if it has none.
func notifier(j persist.Journal) persist.Notifier {
	n, _ := persist.As[persist.Notifier](j)
	return n
}

// wakeAll wakes Run, in this process and in others: something may be due. It does not wait for them.
func (e *engine) wakeAll() {
	e.wake()
	if e.notifier != nil {
		e.notifier.Notify()
	}
}

// hearing is the state of one Run for hearing of the enqueues of other processes. The goroutine of Listen uses it.
type hearing struct {
	*runner
	hears, polls bool          // the state told last: EventListening, EventPolling; both false at first
	woken        chan struct{} // gets a value with a wake
}

// listen wakes Run when another process may have enqueued something, until ctx ends; the journal must be a
// persist.Notifier. Many wakes become one in pauseMin. If Listen fails, listen says so and returns; Run looks now
// and then in any case.
func (h *hearing) listen(ctx context.Context) {
	// Its end stops the goroutine of pass, also when Listen has failed.
	waking, stop := context.WithCancel(ctx)
	var passing sync.WaitGroup
	defer passing.Wait()
	defer stop()
	passing.Go(func() { h.pass(waking) })
	var err error
	crashed := h.cfg.guard(ctx, "the journal has crashed in Listen", func() {
		err = h.engine.notifier.Listen(ctx, func(err error) { h.heard(ctx, err) })
	})
	if crashed != nil {
		err = crashed.err()
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, persist.ErrClosed) { // Run itself learns of ErrClosed
		h.heard(ctx, err)
	}
}

// pass hands on the wakes, the first at once, then one in pauseMin. It returns when ctx ends.
func (h *hearing) pass(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.woken:
		}
		// Run of this process alone: the others hear by themselves.
		h.engine.wake()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pauseMin):
		}
	}
}

// heard is called for each notification of the journal that another process has enqueued something; err is the reason if there will be none. It wakes Run for
// its next pass. Config.Observe is told when the journal begins to notify (hears), and when it stops (polls). pausing: Run waits after a failed pass. After a
// failed pass an enqueue is no reason to begin early; it is one if the journal hears again after a lost connection.
func (h *hearing) heard(ctx context.Context, err error) {
	if err != nil {
		if !h.polls {
			every := h.engine.pollEvery()
			h.cfg.log(ctx, slog.LevelWarn, "run does not hear what other processes enqueue, and looks by itself", "", err, slog.Duration("every", every))
			h.cfg.observe(ctx, &Event{Kind: EventPolling, Wait: every, Err: err})
		}
		h.hears, h.polls = false, true
		return
	}
	if h.polls {
		h.cfg.log(ctx, slog.LevelInfo, "run hears again what other processes enqueue", "", nil)
	}
	if !h.hears {
		h.cfg.observe(ctx, &Event{Kind: EventListening})
	} else if h.pausing.Load() {
		return
	}
	h.hears, h.polls = true, false
	select {
	case h.woken <- struct{}{}:
	default: // it is woken already
	}
}

// pollEvery returns the longest wait of Run before it looks at the journal again. If several processes share the journal, it is at most a
// third of a lease, since the lease of a dead process may end at any time.
func (e *engine) pollEvery() time.Duration {
	if !e.journalShared {
		return pauseMax
	}
	return min(pauseMax, e.cfg.Lease/lease.Renewals)
}

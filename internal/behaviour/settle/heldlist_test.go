package settle_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
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

// heldFails is a shared journal in which only the listing of what is held fails, while it has an error for it.
type heldFails struct {
	*journaltest.FairLeasing
	err   atomic.Pointer[error]
	tried atomic.Int32
}

func newHeldFails(err error) *heldFails {
	m := memory.New()
	h := &heldFails{FairLeasing: journaltest.NewFairLeasing(m).(*journaltest.FairLeasing)}
	h.err.Store(&err)
	return h
}

func (h *heldFails) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if slices.Equal(q.States, []persist.State{persist.StateHeld}) {
		h.tried.Add(1)
		if err := h.err.Load(); err != nil {
			return func(yield func(persist.Record, error) bool) { yield(persist.Record{}, *err) }
		}
	}
	return h.FairLeasing.List(ctx, q)
}

var errSlowListing = errors.New("statement timeout")

// TestHeldListFails: while what is held cannot be listed, Run sends what others have enqueued as soon as it would otherwise, and
// tells of each listing that failed. Once it can be, Reconcile is asked within a minute.
func TestHeldListFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newHeldFails(errSlowListing)
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		var out clienttest.Log
		var told, asked atomic.Int32
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Logger = out.Logger()
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
				asked.Add(1)
				return oncehttp.Resolution{}, nil
			}
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventBlocked && errors.Is(e.Err, errSlowListing) {
					told.Add(1)
				}
			}
		}))
		other, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(j.To)))
		clienttest.HoldAt(t, c, j.To, "held.example", 1)
		stop := clienttest.Run(t, c)
		time.Sleep(5 * time.Minute)
		for i := range 10 {
			if err := other.Enqueue(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10*time.Second + time.Millisecond) // a third of a lease
			if w.Count() != i+1 {
				t.Fatalf("%d of %d were sent", w.Count(), i+1)
			}
		}
		if n := told.Load(); n < 8 || n > 20 || j.tried.Load() != n || asked.Load() != 0 {
			t.Errorf("tried %d times, told %d times, asked %d times", j.tried.Load(), n, asked.Load())
		}
		j.err.Store(nil)
		time.Sleep(61 * time.Second)
		if err := stop(); err != nil || asked.Load() == 0 || !out.Has("statement timeout") {
			t.Errorf("%v, Reconcile was asked %d times once the listing works; log %s", err, asked.Load(), &out)
		}
	})
}

// TestHeldListTakesNoMore: a journal that takes nothing more ends Run, also where the listing of what is held shows it.
func TestHeldListTakesNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(newHeldFails(persist.ErrClosed), func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) { return oncehttp.Resolution{}, nil }
		}))
		if err := c.Run(t.Context()); !errors.Is(err, persist.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

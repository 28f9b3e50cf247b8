package rekey_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestRekeyIsNotReconciled: what a Rekey that was cut off has begun is not asked of Config.Reconcile, which would not find
// it and settle it as absent before it was ever sent. The same holds of an operation that waits for its lookup.
func TestRekeyIsNotReconciled(t *testing.T) {
	t.Parallel()
	reconciles := func(t *testing.T) func(cfg *oncehttp.Config) {
		return func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(_ context.Context, rec persist.Record) (oncehttp.Resolution, error) {
				t.Errorf("asked of %s, held for %q", rec.Key, rec.HoldReason)
				return oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, nil
			}
		}
	}
	t.Run("begun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
			j := &journaltest.Faulty{Journal: memory.New()}
			c, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt, reconciles(t)))
			servertest.InDoubt(t, c, "k")
			clienttest.Absent(t, c, "k")
			j.OnUpdate = journaltest.Fails(journaltest.ErrDisk)
			if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why); !errors.Is(err, journaltest.ErrDisk) {
				t.Fatal(err)
			}
			j.OnUpdate = nil
			stop := clienttest.Run(t, c)
			time.Sleep(2 * time.Minute)
			if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			_ = stop()
			if rec := clienttest.Lookup(t, c, "k2"); rec.State != persist.StateConfirmed || servertest.Effects(server) != 1 {
				t.Errorf("%v, %d effects", rec.State, servertest.Effects(server))
			}
		})
	})
	t.Run("waits for its lookup", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &servertest.Shop{}
			c, _, j := servertest.LostOrder(t, s, servertest.Promising)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := clienttest.RekeyAsSeen(c, ctx, "k", "k2", servertest.Why); !errors.Is(err, oncehttp.ErrHeld) {
				t.Fatal(err)
			}
			next, _ := clienttest.New(t, s, clienttest.On(journaltest.Survivors(t, j), servertest.Promising, reconciles(t)))
			time.Sleep(time.Hour)
			clienttest.Pass(t, next)
			if err := clienttest.RekeyAsSeen(next, t.Context(), "k", "k2", servertest.Why); err != nil {
				t.Error(err)
			}
			if clienttest.Pass(t, next); s.Effects != 1 {
				t.Errorf("%d effects", s.Effects)
			}
		})
	})
}

// TestRekeyOfWhatEnded: Rekey says nil only where the new operation goes on or took place. One that was ended otherwise, or is
// held, has the error that Enqueue has; one that was not sent in time is sent now.
func TestRekeyOfWhatEnded(t *testing.T) {
	t.Parallel()
	hold := func(why persist.HoldReason) func(*testing.T, *oncehttp.Client, persist.Journal) {
		return func(t *testing.T, c *oncehttp.Client, j persist.Journal) {
			rec := clienttest.Lookup(t, c, "k2")
			rec.State, rec.HoldReason = persist.StateHeld, why
			if _, err := j.Update(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, r := range map[string]struct {
		after func(t *testing.T, c *oncehttp.Client, j persist.Journal)
		is    []error
		sends int
	}{
		"absent": {func(t *testing.T, c *oncehttp.Client, _ persist.Journal) { clienttest.Absent(t, c, "k2") }, []error{oncehttp.ErrSettled, oncehttp.ErrNoEffect}, 0},
		"abandoned": {func(t *testing.T, c *oncehttp.Client, _ persist.Journal) {
			if err := c.Abandon(t.Context(), "k2"); err != nil {
				t.Fatal(err)
			}
		}, []error{oncehttp.ErrAbandoned, oncehttp.ErrOutcomeUnknown}, 0},
		"happened": {func(t *testing.T, c *oncehttp.Client, _ persist.Journal) {
			if err := c.Settle(t.Context(), "k2", oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
				t.Fatal(err)
			}
		}, nil, 0},
		"held":           {hold(persist.HoldMismatch), []error{oncehttp.ErrHeld, oncehttp.ErrOutcomeUnknown}, 0},
		"rekeyed itself": {hold(persist.HoldRekey), []error{oncehttp.ErrHeld, oncehttp.ErrOutcomeUnknown}, 0},
		"too late":       {func(*testing.T, *oncehttp.Client, persist.Journal) { time.Sleep(48 * time.Hour) }, nil, 1},
		"held, too late": {func(t *testing.T, c *oncehttp.Client, _ persist.Journal) {
			time.Sleep(48 * time.Hour)
			clienttest.Resume(t, c)
		}, nil, 1},
		"sent": {func(t *testing.T, c *oncehttp.Client, _ persist.Journal) { clienttest.Pass(t, c) }, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
				c, j := clienttest.New(t, w, clienttest.OneAttempt)
				servertest.InDoubt(t, c, "k")
				clienttest.Absent(t, c, "k")
				if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why); err != nil {
					t.Fatal(err)
				}
				r.after(t, c, j)
				err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why)
				if r.is == nil && err != nil {
					t.Errorf("%v, want nil", err)
				}
				for _, want := range r.is {
					if clienttest.ExactlyOne(t, err); !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
				}
				clienttest.Resume(t, c)
				if w.Count() != 1+r.sends {
					t.Errorf("%d sends of the new key, want %d", w.Count()-1, r.sends)
				}
			})
		})
	}
}

// TestRekeyFindsItAfterACut: a Rekey is cut off while it waits, and called again; what the lookup finds then, or does not tell,
// ends it. Nobody acts on the operation any more, so that it is what it was before the first call: a pending one is sent
// again under its own key, within its window. One that was held stays held, and the error says that a person has to settle it.
func TestRekeyFindsItAfterACut(t *testing.T) {
	t.Parallel()
	mine, other := map[string]any{"number": "A/1&x", "amount": 100.}, map[string]any{"number": "A/1&x", "amount": 7.}
	same := func(s *servertest.Shop) { s.Orders = append(s.Orders, mine) }
	held := func(why persist.HoldReason) func(*persist.Record) {
		return func(rec *persist.Record) { rec.State, rec.HoldReason = persist.StateHeld, why }
	}
	for name, r := range map[string]struct {
		before func(*persist.Record)
		then   func(*servertest.Shop)
		back   persist.HoldReason // "": pending
		after  time.Duration      // the next pass
		posts  int
		ends   persist.State
	}{
		"it took effect":      {nil, same, "", 0, 1, persist.StateConfirmed},
		"something else":      {nil, func(s *servertest.Shop) { s.Orders = append(s.Orders, other) }, "", 0, 1, persist.StateHeld},
		"no answer":           {nil, func(s *servertest.Shop) { s.Broken = true }, "", 0, 1, persist.StateConfirmed},
		"the window is over":  {nil, func(s *servertest.Shop) { s.Broken = true }, "", 48 * time.Hour, 0, persist.StateHeld},
		"held before":         {held(persist.HoldMismatch), same, persist.HoldUnclear, 0, 0, persist.StateHeld},
		"undone before":       {held(persist.HoldUndo), same, persist.HoldUnclear, 0, 0, persist.StateHeld},
		"held for its caller": {held(persist.HoldCaller), same, persist.HoldUnclear, 0, 0, persist.StateHeld},
		"begun by a Rekey": {func(rec *persist.Record) {
			held(persist.HoldRekey)(rec)
			rec.Replaces, rec.NextAttempt = "k0", time.Time{}
		}, same, persist.HoldRekey, 0, 0, persist.StateHeld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &servertest.Shop{}
				c, _, j := servertest.LostOrder(t, s, servertest.Promising)
				if r.before != nil {
					rec := clienttest.Lookup(t, c, "k")
					r.before(&rec)
					if _, err := j.Update(t.Context(), rec); err != nil {
						t.Fatal(err)
					}
				}
				next, _ := clienttest.New(t, s, clienttest.On(journaltest.Survivors(t, j), servertest.Promising))
				for range 2 {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					if err := clienttest.RekeyAsSeen(next, ctx, "k", "k2", servertest.Why); !errors.Is(err, oncehttp.ErrHeld) {
						t.Errorf("cut off: %v, want ErrHeld", err)
					}
					cancel()
				}
				r.then(s)
				err := clienttest.RekeyAsSeen(next, t.Context(), "k", "k2", servertest.Why)
				clienttest.ExactlyOne(t, err)
				if stays := r.back != ""; !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrHeld) != stays {
					t.Errorf("%v, want ErrHeld: %t", err, stays)
				}
				if rec := clienttest.Lookup(t, next, "k"); rec.HoldReason != r.back || (rec.State == persist.StatePending) != (r.back == "") || !rec.NextAttempt.IsZero() {
					t.Errorf("%v for %q, next attempt %v; want %q", rec.State, rec.HoldReason, rec.NextAttempt, r.back)
				}
				time.Sleep(r.after)
				clienttest.Resume(t, next)
				if rec := clienttest.Lookup(t, next, "k"); rec.State != r.ends || s.Posts != r.posts {
					t.Errorf("after a pass: %v for %q, %d orders; want %v, %d", rec.State, rec.HoldReason, s.Posts, r.ends, r.posts)
				}
			})
		})
	}
}

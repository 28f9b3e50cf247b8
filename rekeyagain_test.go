package oncehttp_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
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
		bubble(t, func(t *testing.T) {
			server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
			j := &faulty{Journal: memory.New()}
			c, _ := newClient(t, transport, on(j, oneAttempt, reconciles(t)))
			inDoubt(t, c, "k")
			settleAbsent(t, c, "k")
			j.update = fails(errDisk)
			if err := rekeyAsSeen(c, t.Context(), "k", "k2", why); !errors.Is(err, errDisk) {
				t.Fatal(err)
			}
			j.update = nil
			stop := running(t, c)
			time.Sleep(2 * time.Minute)
			if err := rekeyAsSeen(c, t.Context(), "k", "k2", why); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			_ = stop()
			if rec := lookup(t, c, "k2"); rec.State != persist.StateConfirmed || effects(server) != 1 {
				t.Errorf("%v, %d effects", rec.State, effects(server))
			}
		})
	})
	t.Run("waits for its lookup", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := &shop{}
			c, _, j := lostOrder(t, s, promising)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := rekeyAsSeen(c, ctx, "k", "k2", why); !errors.Is(err, oncehttp.ErrHeld) {
				t.Fatal(err)
			}
			next, _ := newClient(t, s, on(survivors(t, j), promising, reconciles(t)))
			time.Sleep(time.Hour)
			pass(t, next)
			if err := rekeyAsSeen(next, t.Context(), "k", "k2", why); err != nil {
				t.Error(err)
			}
			if pass(t, next); s.effects != 1 {
				t.Errorf("%d effects", s.effects)
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
			rec := lookup(t, c, "k2")
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
		"absent": {func(t *testing.T, c *oncehttp.Client, _ persist.Journal) { settleAbsent(t, c, "k2") }, []error{oncehttp.ErrSettled, oncehttp.ErrNoEffect}, 0},
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
		"held, too late": {func(t *testing.T, c *oncehttp.Client, _ persist.Journal) { time.Sleep(48 * time.Hour); resume(t, c) }, nil, 1},
		"sent":           {func(t *testing.T, c *oncehttp.Client, _ persist.Journal) { pass(t, c) }, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
				c, j := newClient(t, w, oneAttempt)
				inDoubt(t, c, "k")
				settleAbsent(t, c, "k")
				if err := rekeyAsSeen(c, t.Context(), "k", "k2", why); err != nil {
					t.Fatal(err)
				}
				r.after(t, c, j)
				err := rekeyAsSeen(c, t.Context(), "k", "k2", why)
				if r.is == nil && err != nil {
					t.Errorf("%v, want nil", err)
				}
				for _, want := range r.is {
					if exactlyOne(t, err); !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
				}
				resume(t, c)
				if w.count() != 1+r.sends {
					t.Errorf("%d sends of the new key, want %d", w.count()-1, r.sends)
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
	same := func(s *shop) { s.orders = append(s.orders, mine) }
	held := func(why persist.HoldReason) func(*persist.Record) {
		return func(rec *persist.Record) { rec.State, rec.HoldReason = persist.StateHeld, why }
	}
	for name, r := range map[string]struct {
		before func(*persist.Record)
		then   func(*shop)
		back   persist.HoldReason // "": pending
		after  time.Duration      // the next pass
		posts  int
		ends   persist.State
	}{
		"it took effect":      {nil, same, "", 0, 1, persist.StateConfirmed},
		"something else":      {nil, func(s *shop) { s.orders = append(s.orders, other) }, "", 0, 1, persist.StateHeld},
		"no answer":           {nil, func(s *shop) { s.broken = true }, "", 0, 1, persist.StateConfirmed},
		"the window is over":  {nil, func(s *shop) { s.broken = true }, "", 48 * time.Hour, 0, persist.StateHeld},
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
			bubble(t, func(t *testing.T) {
				s := &shop{}
				c, _, j := lostOrder(t, s, promising)
				if r.before != nil {
					rec := lookup(t, c, "k")
					r.before(&rec)
					if _, err := j.Update(t.Context(), rec); err != nil {
						t.Fatal(err)
					}
				}
				next, _ := newClient(t, s, on(survivors(t, j), promising))
				for range 2 {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					if err := rekeyAsSeen(next, ctx, "k", "k2", why); !errors.Is(err, oncehttp.ErrHeld) {
						t.Errorf("cut off: %v, want ErrHeld", err)
					}
					cancel()
				}
				r.then(s)
				err := rekeyAsSeen(next, t.Context(), "k", "k2", why)
				exactlyOne(t, err)
				if stays := r.back != ""; !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrHeld) != stays {
					t.Errorf("%v, want ErrHeld: %t", err, stays)
				}
				if rec := lookup(t, next, "k"); rec.HoldReason != r.back || (rec.State == persist.StatePending) != (r.back == "") || !rec.NextAttempt.IsZero() {
					t.Errorf("%v for %q, next attempt %v; want %q", rec.State, rec.HoldReason, rec.NextAttempt, r.back)
				}
				time.Sleep(r.after)
				resume(t, next)
				if rec := lookup(t, next, "k"); rec.State != r.ends || s.posts != r.posts {
					t.Errorf("after a pass: %v for %q, %d orders; want %v, %d", rec.State, rec.HoldReason, s.posts, r.ends, r.posts)
				}
			})
		})
	}
}

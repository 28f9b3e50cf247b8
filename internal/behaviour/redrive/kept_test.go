package redrive_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// keeper is a program on a journal whose first charge was refused. The API takes a second one.
type keeper struct {
	*oncehttp.Client
	wire   *wiretest.Wire
	events clienttest.Events
	key    oncehttp.Key // of the first charge
}

// newKeeper makes the first charge, under a key that was chosen or generated.
func newKeeper(t *testing.T, j persist.Journal, generated bool, change func(*oncehttp.Config)) *keeper {
	t.Helper()
	k := &keeper{key: "k", wire: &wiretest.Wire{Replies: []wiretest.Reply{cardError, paid}}}
	k.Client, _ = clienttest.New(t, k.wire, clienttest.On(j, func(cfg *oncehttp.Config) {
		cfg.Profile, cfg.Retry.MaxAttempts, cfg.EnqueueMaxAge, cfg.Observe = profile.StripeV1(), 1, 365*24*time.Hour, k.events.Observe
		if change != nil {
			change(cfg)
		}
	}))
	req := clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "amount=100&currency=eur")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var resp *http.Response
	var err error
	if generated {
		resp, err = k.Do(req)
	} else {
		resp, err = k.DoKey(req, "k")
	}
	clienttest.Must(t, err)
	_ = resp.Body.Close()
	k.key = oncehttp.ResultOf(resp).Key
	return k
}

// sweeps sweeps three times: a record may lose its answer first, and go then.
func (k *keeper) sweeps(t *testing.T, prune bool) {
	t.Helper()
	for range 3 {
		var err error
		if prune {
			_, err = k.Prune(t.Context(), oncehttp.Keeping{KeepKey: -1})
		} else {
			_, err = k.Sweep(t.Context())
		}
		clienttest.Must(t, err)
	}
}

// holdsNext requires the next generation to be held, and never sent.
func (k *keeper) holdsNext(t *testing.T) {
	t.Helper()
	if _, err := k.Lookup(t.Context(), k.key); err != nil {
		t.Errorf("a sweep has forgotten the first: %v", err)
	}
	clienttest.Resume(t, k.Client)
	rec := clienttest.Lookup(t, k.Client, k.key.Generation(2))
	if rec.State != persist.StateHeld || rec.HoldReason != persist.HoldPredecessor || k.wire.Count() != 1 {
		t.Errorf("the second is %v %q, after %d sends; want it held (predecessor), after 1", rec.State, rec.HoldReason, k.wire.Count())
	}
}

// TestContradictedIsKept: a charge was refused, another one is begun in its place, and an event proves the first. No worker runs until sweeps have taken what they may.
// They keep the first with its evidence, whoever has begun the second, so that this is held. (Invariant 56.)
func TestContradictedIsKept(t *testing.T) {
	t.Parallel()
	forgets := func(cfg *oncehttp.Config) { cfg.KeepAnswer, cfg.KeepKey = 25*time.Hour, 26*time.Hour }
	for name, row := range map[string]struct {
		generated, byProgram, prune bool
		change                      func(*oncehttp.Config)
	}{
		"redriven, under a generated key":                 {generated: true},
		"redriven, pruned":                                {prune: true},
		"redriven, under a generated key, pruned":         {generated: true, prune: true},
		"the program's generation, with KeepKey":          {byProgram: true, change: forgets},
		"the program's generation, pruned":                {byProgram: true, prune: true},
		"the program's generation, under a generated key": {generated: true, byProgram: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				k := newKeeper(t, j, row.generated, row.change)
				if row.byProgram {
					enqueueCharge(t, k.Client, k.key.Generation(2))
				} else {
					_, err := k.Redrive(t.Context(), k.key)
					clienttest.Must(t, err)
				}
				charged(t, k.Client, string(k.key))
				if n := len(k.events.Of(oncehttp.EventContradicted)); n != 1 {
					t.Fatalf("%d events contradicted, want 1", n)
				}
				time.Sleep(60 * 24 * time.Hour)
				k.sweeps(t, row.prune)
				k.holdsNext(t)
			})
		})
	}
}

// TestReplacedGeneratedIsKept: a person has begun another charge in the place of one under a generated key. No sweep forgets the first while the journal keeps such a
// link for ever: an event that comes late finds it. (Invariants 34 and 54.)
func TestReplacedGeneratedIsKept(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		k := newKeeper(t, j, true, nil)
		_, err := k.Redrive(t.Context(), k.key)
		clienttest.Must(t, err)
		time.Sleep(60 * 24 * time.Hour)
		k.sweeps(t, false)
		charged(t, k.Client, string(k.key))
		k.holdsNext(t)
	})
}

// TestGeneratedSuccessorIsKept: Redrive has told a person the key of the other charge, which took effect. A call under this key years later sends nothing, also where the
// first key was a generated one. (Invariants 17 and 54.)
func TestGeneratedSuccessorIsKept(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		k := newKeeper(t, j, true, nil)
		next, err := k.Redrive(t.Context(), k.key)
		clienttest.Must(t, err)
		clienttest.Resume(t, k.Client)
		time.Sleep(600 * 24 * time.Hour)
		k.sweeps(t, false)
		req := clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "amount=100&currency=eur")
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if _, err := k.DoKey(req, next); !errors.Is(err, oncehttp.ErrFinal) || effectOf(err) != persist.EffectHappened || k.wire.Count() != 2 {
			t.Errorf("%v, effect %q, after %d sends; want ErrFinal, happened, after 2", err, effectOf(err), k.wire.Count())
		}
	})
}

// effectOf returns the effect that an error names.
func effectOf(err error) persist.Effect {
	if e := (*oncehttp.Error)(nil); errors.As(err, &e) {
		return e.Effect()
	}
	return "no *Error"
}

package oncehttp_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// TestReconcile is asked of held operations, once each and in this account only,
// and its word is final.
func TestReconcile(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 301}}}
		say := map[string]oncehttp.Resolution{
			"k0": {Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 200, Body: []byte("found")}}, "k1": {Effect: oncehttp.EffectAbsent},
			"k2": {}, "k4": {Effect: "nonsense"}, "k5": {Effect: oncehttp.EffectHappened},
		}
		var mu sync.Mutex
		var asked []string
		c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(_ context.Context, rec persist.Record) (oncehttp.Resolution, error) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, rec.Key)
				if rec.Key == "k3" {
					return oncehttp.Resolution{}, errLost
				}
				return say[rec.Key], nil
			}
		}))
		other, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) { cfg.Account = "other" }))
		enqueue(t, c, 6)
		_, _ = other.DoKey(post(t, "{}"), "theirs")
		resume(t, c) // the redirect holds them
		if len(asked) != 0 {
			t.Errorf("asked of %v while they were pending", asked)
		}
		got := resume(t, c)
		slices.Sort(asked)
		if !slices.Equal(asked, []string{"k0", "k1", "k2", "k3", "k4", "k5"}) || w.count() != 7 {
			t.Errorf("asked of %v, %d sends", asked, w.count())
		}
		for _, key := range []oncehttp.Key{"k2", "k3", "k4"} {
			exactlyOne(t, got[key].err)
			if rec := lookup(t, c, key); rec.State != persist.StateHeld || !errors.Is(got[key].err, oncehttp.ErrHeld) {
				t.Errorf("%s: %v, record %v", key, got[key].err, rec.State)
			}
		}
		r := got["k0"].result
		if r.Answer == nil || string(r.Answer.Body) != "found" || r.Outcome != oncehttp.OutcomeConfirmed || got["k1"].result.Outcome != oncehttp.OutcomeNotSent || got["k5"].err != nil || got["k5"].result.Answer != nil {
			t.Errorf("%+v", got)
		}
		for key, effect := range map[oncehttp.Key]persist.Effect{"k0": oncehttp.EffectHappened, "k1": oncehttp.EffectAbsent, "k5": oncehttp.EffectHappened} {
			if rec := lookup(t, c, key); rec.State != persist.StateSettled || rec.Effect != effect {
				t.Errorf("%s: %v %q", key, rec.State, rec.Effect)
			}
		}
		synctest.Wait()
	})
}

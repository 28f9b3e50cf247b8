package settle_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestReconcile is asked of held operations, once each and in this account only,
// and its word is final.
func TestReconcile(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 301}}}
		say := map[string]oncehttp.Resolution{
			"k0": {Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 200, Body: []byte("found")}}, "k1": {Effect: oncehttp.EffectAbsent},
			"k2": {}, "k4": {Effect: "nonsense"}, "k5": {Effect: oncehttp.EffectHappened},
		}
		var mu sync.Mutex
		var asked []string
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(_ context.Context, rec persist.Record) (oncehttp.Resolution, error) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, rec.Key)
				if rec.Key == "k3" {
					return oncehttp.Resolution{}, wiretest.ErrLost
				}
				return say[rec.Key], nil
			}
		}))
		other, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Account = "other" }))
		clienttest.Enqueue(t, c, 6)
		_, _ = other.DoKey(clienttest.Post(t, "{}"), "theirs")
		clienttest.Resume(t, c) // the redirect holds them
		if len(asked) != 0 {
			t.Errorf("asked of %v while they were pending", asked)
		}
		got := clienttest.Resume(t, c)
		slices.Sort(asked)
		if !slices.Equal(asked, []string{"k0", "k1", "k2", "k3", "k4", "k5"}) || w.Count() != 7 {
			t.Errorf("asked of %v, %d sends", asked, w.Count())
		}
		for _, key := range []oncehttp.Key{"k2", "k3", "k4"} {
			clienttest.ExactlyOne(t, got[key].Err)
			if rec := clienttest.Lookup(t, c, key); rec.State != persist.StateHeld || !errors.Is(got[key].Err, oncehttp.ErrHeld) {
				t.Errorf("%s: %v, record %v", key, got[key].Err, rec.State)
			}
		}
		r := got["k0"].Result
		if r.Answer == nil || string(r.Answer.Body) != "found" || r.Outcome != oncehttp.OutcomeConfirmed || got["k1"].Result.Outcome != oncehttp.OutcomeNotSent || got["k5"].Err != nil || got["k5"].Result.Answer != nil {
			t.Errorf("%+v", got)
		}
		for key, effect := range map[oncehttp.Key]persist.Effect{"k0": oncehttp.EffectHappened, "k1": oncehttp.EffectAbsent, "k5": oncehttp.EffectHappened} {
			if rec := clienttest.Lookup(t, c, key); rec.State != persist.StateSettled || rec.Effect != effect {
				t.Errorf("%s: %v %q", key, rec.State, rec.Effect)
			}
		}
		synctest.Wait()
	})
}

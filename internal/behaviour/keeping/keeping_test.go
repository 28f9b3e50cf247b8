// Package keeping_test holds for how long answers and keys are kept, and what is kept of them.
package keeping_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// keepingFor sets how long a client keeps answers and keys.
func keepingFor(answer, key time.Duration) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.KeepAnswer, cfg.KeepKey = answer, key }
}

// TestKeepingIsRecorded: the record says how long it is kept, by the Config of the client that began it. Who ends it may only
// lengthen that, by what its Config sets.
func TestKeepingIsRecorded(t *testing.T) {
	t.Parallel()
	const window, long, longer = 24 * time.Hour, 100 * time.Hour, 200 * time.Hour
	rows := map[string]struct {
		begins, ends [2]time.Duration // KeepAnswer and KeepKey
		begun, ended [2]time.Duration // of the record
	}{
		"defaults":              {ended: [2]time.Duration{window, 0}, begun: [2]time.Duration{window, 0}},
		"set":                   {[2]time.Duration{long, longer}, [2]time.Duration{}, [2]time.Duration{long, longer}, [2]time.Duration{long, longer}},
		"not at all":            {[2]time.Duration{-1, 0}, [2]time.Duration{}, [2]time.Duration{-1, 0}, [2]time.Duration{-1, 0}},
		"no key after":          {[2]time.Duration{long, -1}, [2]time.Duration{}, [2]time.Duration{long, -1}, [2]time.Duration{long, -1}},
		"the end is longer":     {[2]time.Duration{long, long}, [2]time.Duration{longer, longer}, [2]time.Duration{long, long}, [2]time.Duration{longer, longer}},
		"the end is shorter":    {[2]time.Duration{longer, longer}, [2]time.Duration{long, long}, [2]time.Duration{longer, longer}, [2]time.Duration{longer, longer}},
		"the end is not at all": {[2]time.Duration{long, long}, [2]time.Duration{0, -1}, [2]time.Duration{long, long}, [2]time.Duration{long, long}},
		"for ever stays":        {[2]time.Duration{}, [2]time.Duration{-1, long}, [2]time.Duration{window, 0}, [2]time.Duration{window, 0}},
		"none becomes long":     {[2]time.Duration{-1, 0}, [2]time.Duration{long, 0}, [2]time.Duration{-1, 0}, [2]time.Duration{long, 0}},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Err: wiretest.ErrLost}, {Err: wiretest.ErrLost}, {Status: 201, Body: "paid"}}}
				first, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, keepingFor(r.begins[0], r.begins[1])))
				last, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, keepingFor(r.ends[0], r.ends[1])))
				for _, key := range []oncehttp.Key{"settled", "abandoned", "sent"} {
					_, _ = first.DoKey(clienttest.Post(t, "{}"), key)
					if rec := clienttest.Lookup(t, last, key); [2]time.Duration{rec.KeepAnswer, rec.KeepKey} != r.begun {
						t.Errorf("%s: begun with %v and %v, want %v", key, rec.KeepAnswer, rec.KeepKey, r.begun)
					}
				}
				if err := last.Settle(t.Context(), "settled", oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
					t.Error(err)
				}
				if err := last.Abandon(t.Context(), "abandoned"); err != nil {
					t.Error(err)
				}
				if _, err := last.DoKey(clienttest.Post(t, "{}"), "sent"); err != nil {
					t.Error(err)
				}
				for _, key := range []oncehttp.Key{"settled", "abandoned", "sent"} {
					if rec := clienttest.Lookup(t, first, key); [2]time.Duration{rec.KeepAnswer, rec.KeepKey} != r.ended {
						t.Errorf("%s: ended with %v and %v, want %v", key, rec.KeepAnswer, rec.KeepKey, r.ended)
					}
				}
			})
		})
	}
}

// TestKeepingOfAnotherClient: a sweep by a client that keeps answers or keys for another time, also one of another account, takes
// nothing that the client keeps which began it. So its key is not sent again before its own time.
func TestKeepingOfAnotherClient(t *testing.T) {
	t.Parallel()
	const window, ever = 24 * time.Hour, 1 << 62
	keepings := []struct{ answer, key, answerTo, keyTo time.Duration }{
		{0, 0, window, ever}, {-1, 0, 0, ever}, {100 * time.Hour, 0, 100 * time.Hour, ever}, {30 * time.Hour, 50 * time.Hour, 30 * time.Hour, 50 * time.Hour},
		{0, -1, window, window}, {0, window, window, window}, {60 * time.Hour, -1, 60 * time.Hour, 60 * time.Hour},
	}
	for i, mine := range keepings {
		for k, other := range keepings {
			for _, account := range []string{"", "another"} {
				t.Run(fmt.Sprint(i, k, account), func(t *testing.T) {
					t.Parallel()
					journaltest.Each(t, func(t *testing.T, j persist.Journal) {
						w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "paid"}}}
						c, _ := clienttest.New(t, w, clienttest.On(j, keepingFor(mine.answer, mine.key)))
						sweeper, _ := clienttest.New(t, w, clienttest.On(j, keepingFor(other.answer, other.key), func(cfg *oncehttp.Config) { cfg.Account = account }))
						if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
							t.Fatal(err)
						}
						begun := time.Now()
						for _, after := range []time.Duration{0, window - 1, window, 50*time.Hour - 1, 50 * time.Hour, 100 * time.Hour, 10_000 * time.Hour} {
							time.Sleep(time.Until(begun.Add(after)))
							if _, err := sweeper.Sweep(t.Context()); err != nil {
								t.Fatal(err)
							}
							if after >= mine.keyTo {
								break
							}
							switch _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); {
							case after < mine.answerTo && err != nil, after >= mine.answerTo && !errors.Is(err, oncehttp.ErrAnswerGone):
								t.Errorf("after %v: %v, with an answer that is kept for %v", after, err, mine.answerTo)
							case w.Count() != 1:
								t.Fatalf("after %v: sent %d times, with a key that is kept for %v", after, w.Count(), mine.keyTo)
							}
						}
					})
				})
			}
		}
	}
}

// TestSweepForgetsInTime: a sweep by another forgets a key once the client that began it would.
func TestSweepForgetsInTime(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "paid"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, keepingFor(30*time.Hour, 50*time.Hour)))
		sweeper, _ := clienttest.New(t, w, clienttest.On(j, keepingFor(1000*time.Hour, 0)))
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Hour)
		if n, err := sweeper.Sweep(t.Context()); n != 1 || err != nil {
			t.Errorf("swept %d, error %v", n, err)
		}
		if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("it is there: %v", err)
		}
	})
}

// TestPrune shortens what the records say, and refuses what no Config may say.
func TestPrune(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "paid"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, keepingFor(100*time.Hour, 0)))
		pruner, _ := clienttest.New(t, w, clienttest.On(j))
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		for _, keep := range []oncehttp.Keeping{{KeepAnswer: 30}, {KeepKey: 30}, {KeepKey: time.Hour}, {KeepAnswer: -1, KeepKey: -1}} {
			if n, err := pruner.Prune(t.Context(), keep); n != 0 || !errors.Is(err, oncehttp.ErrConfig) {
				t.Errorf("%+v: pruned %d, error %v", keep, n, err)
			}
		}
		time.Sleep(30 * time.Hour)
		for _, step := range []struct {
			keep oncehttp.Keeping
			want int
		}{{oncehttp.Keeping{}, 0}, {oncehttp.Keeping{KeepAnswer: 31 * time.Hour}, 0}, {oncehttp.Keeping{KeepAnswer: 30 * time.Hour}, 1}, {oncehttp.Keeping{KeepKey: 31 * time.Hour}, 0}, {oncehttp.Keeping{KeepKey: 30 * time.Hour}, 1}} {
			if n, err := pruner.Prune(t.Context(), step.keep); n != step.want || err != nil {
				t.Errorf("%+v: pruned %d, error %v; want %d", step.keep, n, err, step.want)
			}
		}
		if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) || w.Count() != 1 {
			t.Errorf("it is there: %v; %d sends", err, w.Count())
		}
	})
}

package keyless_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
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

// counting counts the records that listings yield, and lets each take a while.
type counting struct {
	persist.Journal
	rows, lists atomic.Int32
}

func (j *counting) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	j.lists.Add(1)
	time.Sleep(time.Millisecond)
	return func(yield func(persist.Record, error) bool) {
		for rec, err := range j.Journal.List(ctx, q) {
			if j.rows.Add(1); !yield(rec, err) {
				return
			}
		}
	}
}

// countingShared is one that other processes share.
type countingShared struct {
	*counting
	persist.Claimer
}

// TestKeylessCallersBesideEachOther: many callers at a time without a key cost no more each where there are more of them: neither where
// they send the same nor where each sends its own.
func TestKeylessCallersBesideEachOther(t *testing.T) {
	t.Parallel()
	const callers, waves = 64, 8
	for name, r := range map[string]struct {
		shared bool
		body   func(n int) string
	}{
		"the same":            {false, func(int) string { return "{}" }},
		"the same, shared":    {true, func(int) string { return "{}" }},
		"their own":           {false, func(n int) string { return fmt.Sprint(n) }},
		"their own, shared":   {true, func(n int) string { return fmt.Sprint(n) }},
		"by halves":           {false, func(n int) string { return fmt.Sprint(n % 2) }},
		"by halves, shared":   {true, func(n int) string { return fmt.Sprint(n % 2) }},
		"the same in a while": {true, func(n int) string { return fmt.Sprint(n / callers) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				counted := &counting{Journal: store}
				var j persist.Journal = counted
				if r.shared {
					j = countingShared{counted, store}
				}
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Hour}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
					cfg.Retry.AttemptTimeout, cfg.Retry.AnswerTimeout = 2*time.Hour, 2*time.Hour
				}))
				var all sync.WaitGroup
				for wave := range waves {
					for i := range callers {
						all.Go(func() {
							if _, err := c.Do(clienttest.Post(t, r.body(wave*callers+i))); err != nil {
								t.Error(err)
							}
						})
					}
					time.Sleep(time.Minute) // those before are on the wire
				}
				all.Wait()
				if n := w.Count(); n != callers*waves {
					t.Errorf("%d sends, want %d", n, callers*waves)
				}
				if rows := counted.rows.Load(); rows > 2*callers*waves*waves {
					t.Errorf("the listings for %d calls yielded %d records", callers*waves, rows)
				}
			})
		})
	}
}

// TestLookalikeAmongCallers: of callers who share a look each is refused for what stands in its own way, and for nothing else.
func TestLookalikeAmongCallers(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New()
			counted := &counting{Journal: store}
			var j persist.Journal = counted
			if shared {
				j = countingShared{counted, store}
			}
			lost, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
			inDoubt := map[int]oncehttp.Key{}
			for n := range 4 {
				_, err := lost.Do(clienttest.Post(t, fmt.Sprint(n)))
				var e *oncehttp.Error
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				inDoubt[n] = e.Key
			}
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(j))
			var all sync.WaitGroup
			for i := range 64 {
				n := i % 8
				all.Go(func() {
					_, err := c.Do(clienttest.Post(t, fmt.Sprint(n)))
					var e *oncehttp.Error
					errors.As(err, &e)
					switch key, refused := inDoubt[n]; {
					case refused && (!errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Key != key):
						t.Errorf("%d: %v, want it refused for %q", n, err, key)
					case !refused && err != nil:
						t.Errorf("%d: %v", n, err)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestBusinessKeyAfterAGeneratedOne: where Config.NewKey makes keys of the business from now on, a request that is in doubt under a
// generated key is not sent under its business key, too.
func TestBusinessKeyAfterAGeneratedOne(t *testing.T) {
	t.Parallel()
	type world struct {
		c   *oncehttp.Client // with keys of the business
		key oncehttp.Key     // the generated one
	}
	const body = clienttest.OrderSeven
	for name, r := range map[string]struct {
		then    func(*testing.T, world)
		body    string
		refused bool
	}{
		"in doubt":        {nil, body, true},
		"another request": {nil, `{"order":{"id":8},"amount":100}`, false},
		"unreported":      {func(t *testing.T, w world) { time.Sleep(time.Hour); clienttest.Pass(t, w.c) }, body, true},
		"told": {func(t *testing.T, w world) {
			if _, err := w.c.DoKey(clienttest.Post(t, body), w.key); err != nil {
				t.Error(err)
			}
		}, body, false},
		"settled as absent": {func(t *testing.T, w world) { clienttest.Absent(t, w.c, w.key) }, body, false},
		"the business key was used": {func(t *testing.T, w world) {
			if _, err := w.c.DoKey(clienttest.Post(t, body), "idemp:order:7"); err != nil {
				t.Error(err)
			}
		}, body, false},
	} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " plain ", plain), func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
					before, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
					_, err := before.Do(clienttest.Post(t, body))
					var e *oncehttp.Error
					if !errors.As(err, &e) {
						t.Fatal(err)
					}
					c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.FromOrder))
					if r.then != nil {
						r.then(t, world{c, e.Key})
					}
					sends, do := w.Count(), c.Do
					if plain {
						do = c.StandardClient().Do
					}
					_, err = do(clienttest.Post(t, r.body))
					var refused *oncehttp.Error
					if !r.refused {
						if err != nil {
							t.Errorf("%v, want it sent or answered", err)
						}
						return
					}
					if !errors.As(err, &refused) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || refused.Key != e.Key || w.Count() != sends {
						t.Errorf("%v after %d sends, want it refused for %q", err, w.Count()-sends, e.Key)
					}
					failing := clienttest.Post(t, r.body)
					failing.Header.Set("X-Bad", "a\nb")
					if _, err := c.Do(failing); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("one that cannot be sent: %v, want the outcome unknown", err)
					}
				})
			})
		}
	}
}

// TestBusinessKeyAfterALostBegin: the same where the generated key's Begin had no answer.
func TestBusinessKeyAfterALostBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Shaky{Journal: memory.New(), Fails: fmt.Errorf("%w: no answer", persist.ErrUncertain)}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		before, _ := clienttest.New(t, w, clienttest.On(j))
		_, err := before.Do(clienttest.Post(t, clienttest.OrderSeven))
		var e *oncehttp.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		j.Fails = nil
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.FromOrder))
		for name, change := range map[string]string{"it": "", "one that cannot be sent": "a\nb"} {
			req := clienttest.Post(t, clienttest.OrderSeven)
			if change != "" {
				req.Header.Set("X-Bad", change)
			}
			_, err = c.Do(req)
			var refused *oncehttp.Error
			if !errors.As(err, &refused) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || refused.Key != e.Key || w.Count() != 0 {
				t.Errorf("%s: %v after %d sends, want it refused for %q", name, err, w.Count(), e.Key)
			}
		}
	})
}

// TestALostBeginHidesNothing: a Begin under the business key was lost, and never landed. Meanwhile a process without such keys has begun the same request
// under a key that it generated, and its outcome is unknown. The lost Begin proves no record: the same request is not begun under the business key.
func TestALostBeginHidesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := memory.New()
		j := &journaltest.Shaky{Journal: table, Fails: fmt.Errorf("%w: no answer", persist.ErrUncertain)}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: errors.New("connection reset")}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.FromOrder))
		if _, err := c.Do(clienttest.Post(t, clienttest.OrderSeven)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		j.Fails = nil
		other, _ := clienttest.New(t, w, clienttest.On(journaltest.NewFairLeasing(table)))
		_, err := other.Do(clienttest.Post(t, clienttest.OrderSeven))
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // no lease is left
		sends := w.Count()
		_, err = c.Do(clienttest.Post(t, clienttest.OrderSeven))
		var refused *oncehttp.Error
		if !errors.As(err, &refused) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || refused.Key != e.Key || w.Count() != sends {
			t.Errorf("%v after %d sends, want it refused for %q", err, w.Count()-sends, e.Key)
		}
	})
}

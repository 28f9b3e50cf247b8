package lease_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// toldEnds are the ways in which an operation can end after an error told its generated key.
func toldEnds() map[string]func(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
	return map[string]func(t *testing.T, c *oncehttp.Client, key oncehttp.Key){
		"Resume": func(t *testing.T, c *oncehttp.Client, _ oncehttp.Key) { clienttest.Resume(t, c) },
		"Resume, and DoKey is told": func(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
			clienttest.Resume(t, c)
			if _, err := c.DoKey(clienttest.Post(t, "{}"), key); err != nil {
				t.Error(err)
			}
		},
		"DoKey": func(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
			if _, err := c.DoKey(clienttest.Post(t, "{}"), key); err != nil {
				t.Error(err)
			}
		},
		"Settle": func(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
			if err := c.Settle(t.Context(), key, oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
				t.Error(err)
			}
		},
		"Abandon": func(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
			if err := c.Abandon(t.Context(), key); err != nil {
				t.Error(err)
			}
		},
		"Reconcile": func(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
			time.Sleep(25 * time.Hour) // the key's window is over, so that it is held
			clienttest.Resume(t, c)
			clienttest.Resume(t, c)
		},
	}
}

// TestToldKeyIsKept: an error that named a generated key has no end, so that the key is kept like a caller's: whoever goes on with
// it sends nothing, however long after the answer was swept. Invariant 1.
func TestToldKeyIsKept(t *testing.T) {
	t.Parallel()
	for name, end := range toldEnds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
					cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
						return oncehttp.Resolution{Effect: oncehttp.EffectHappened}, nil
					}
				}))
				_, err := c.Do(clienttest.Post(t, "{}"))
				var e *oncehttp.Error
				if !errors.As(err, &e) || e.Key == "" {
					t.Fatalf("%v, want an error that names the key", err)
				}
				time.Sleep(time.Minute)
				end(t, c, e.Key)
				sent := w.Count()
				for range 3 {
					time.Sleep(25 * time.Hour)
					if _, err := c.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if rec := clienttest.Lookup(t, c, e.Key); !rec.Swept || rec.Answer != nil {
					t.Errorf("swept %t, answer %v: want a tombstone", rec.Swept, rec.Answer)
				}
				_, err = c.DoKey(clienttest.Post(t, "{}"), e.Key)
				if clienttest.ExactlyOne(t, err); w.Count() != sent || errors.Is(err, oncehttp.ErrNoEffect) {
					t.Errorf("days later, with the key that the error named: %d sends more, %v", w.Count()-sent, err)
				}
				if _, err := c.Do(clienttest.Post(t, "{}")); errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("the same without a key, after the window: %v, want a new operation", err)
				}
			})
		})
	}
}

// TestUntoldKeyIsForgotten: the key of a Do that gave its own answer is forgotten with it.
func TestUntoldKeyIsForgotten(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		resp, err := c.Do(clienttest.Post(t, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Hour)
		if _, err := c.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if rec, err := c.Lookup(t.Context(), oncehttp.ResultOf(resp).Key); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("%v, state %v; want nothing", err, rec.State)
		}
	})
}

// TestKeyIsToldToWhoLeft: the caller that began a call leaves it to another one, is told the key, and the call ends later.
func TestKeyIsToldToWhoLeft(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return "made", nil }
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond*100)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Do(clienttest.Post(t, "{}").WithContext(ctx)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("%v, want it unknown", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "made"); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		time.Sleep(25 * time.Hour)
		if _, err := c.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "made"); !errors.Is(err, oncehttp.ErrFinal) || w.Count() != 1 {
			t.Errorf("a day later: %d sends, %v; want one, and ErrFinal", w.Count(), err)
		}
	})
}

// TestNoKeyOfWhoSends: while another process sends the same request, a call without a key is refused and told no key, also where NewKey
// makes the same for both: the other's call may end the operation, and its key is forgotten with the answer then.
func TestNoKeyOfWhoSends(t *testing.T) {
	t.Parallel()
	for name, newKey := range map[string]func(*http.Request) (oncehttp.Key, error){
		"random": nil, "the same": func(*http.Request) (oncehttp.Key, error) { return "made", nil },
	} {
		for _, corrected := range []bool{false, true} { // by the second client's profile another header counts
			t.Run(fmt.Sprintf("%s, another recipe %t", name, corrected), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { noKeyOfWhoSends(t, newKey, corrected) })
			})
		}
	}
}

func noKeyOfWhoSends(t *testing.T, newKey func(*http.Request) (oncehttp.Key, error), corrected bool) {
	configured := func(cfg *oncehttp.Config) { cfg.NewKey = newKey }
	j := memory.New()
	first, _ := clienttest.New(t, &wiretest.Wire{Replies: replies(accepted(time.Minute))}, clienttest.On(journaltest.NewLeasing(j), slowAnswers, configured))
	w := &wiretest.Wire{Replies: replies(accepted(0))}
	second, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), clienttest.OneAttempt, configured, func(cfg *oncehttp.Config) {
		if corrected {
			cfg.Profile = profile.Draft07()
			cfg.Profile.Fingerprint = []string{"X-Version"}
		}
	}))
	done := make(chan error)
	go func() { _, err := first.Do(clienttest.Post(t, "{}")); done <- err }()
	for range 3 {
		time.Sleep(15 * time.Second)
		unread := clienttest.Post(t, "{}")
		unread.ContentLength = 100 // it has less
		for name, req := range map[string]*http.Request{"the same": clienttest.Post(t, "{}"), "one that cannot be read": unread} {
			_, err := second.Do(req)
			var e *oncehttp.Error
			if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrInFlight) || e.Key != "" || w.Count() != 0 {
				t.Errorf("%s, while another process sends it: %v after %d sends", name, err, w.Count())
			}
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestNoKeyOfWhatHasEnded: where NewKey gives a key again, and the journal fails before it says what stands under it, the error names no key:
// that of an operation that its own call has ended is forgotten with the answer, and whoever came back with it would begin a second one.
func TestNoKeyOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"in doubt": fmt.Errorf("%w: no answer", persist.ErrUncertain), "not written": journaltest.ErrDisk} {
		for _, unread := range []bool{false, true} { // the journal answers no look either
			t.Run(fmt.Sprint(name, unread), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := &journaltest.Faulty{Journal: memory.New()}
					w := &wiretest.Wire{Replies: replies(accepted(0))}
					c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
						cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return "made", nil }
					}))
					if _, err := c.Do(clienttest.Post(t, "{}")); err != nil {
						t.Fatal(err)
					}
					if j.OnBegin = journaltest.Fails(err); unread {
						j.OnGet = journaltest.Fails(err)
					}
					_, err := c.Do(clienttest.Post(t, "{}"))
					var e *oncehttp.Error
					if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || errors.Is(err, oncehttp.ErrOutcomeUnknown) && e.Key != "" {
						t.Errorf("%v, want no advice to go on with a key", err)
					}
				})
			})
		}
	}
}

// TestKeyOfAFrozenProcess: a process freezes past its lease, another one is told the key, and the first ends the operation all the
// same. The key is kept, since whoever was told it may come back.
func TestKeyOfAFrozenProcess(t *testing.T) {
	t.Parallel()
	for name, thaws := range map[string]time.Duration{"it has thawed before the answer": time.Minute, "it has not": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := memory.New()
				f := &journaltest.Freezing{Journal: &journaltest.Leasing{Journal: j, Claimer: j}, Claimer: j}
				first, _ := clienttest.New(t, &wiretest.Wire{Replies: replies(accepted(90 * time.Second))}, clienttest.On(f, slowAnswers))
				w := &wiretest.Wire{Replies: replies(accepted(0))}
				second, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), clienttest.OneAttempt))
				done := make(chan error)
				f.Freeze(0, thaws)
				go func() { _, err := first.Do(clienttest.Post(t, "{}")); done <- err }()
				time.Sleep(45 * time.Second)
				_, err := second.Do(clienttest.Post(t, "{}"))
				var e *oncehttp.Error
				if !errors.As(err, &e) || errors.Is(err, oncehttp.ErrInFlight) || e.Key == "" {
					t.Fatalf("past the lease: %v, want the key", err)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				time.Sleep(25 * time.Hour)
				if _, err := second.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := second.DoKey(clienttest.Post(t, "{}"), e.Key); !errors.Is(err, oncehttp.ErrFinal) || w.Count() != 0 {
					t.Errorf("a day later, with the key: %v after %d sends; want ErrFinal", err, w.Count())
				}
			})
		})
	}
}

// TestKeyOfWhoLeavesAnothersCall: NewKey makes the same key for two calls of one process. An error that the second is told, since it leaves
// or would wait for itself, names no key, or the key is kept: whoever goes on with it a day later sends nothing.
func TestKeyOfWhoLeavesAnothersCall(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]bool{"it leaves": false, "it would wait for itself": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: replies(accepted(time.Minute))}
				var c *oncehttp.Client
				var second error
				ask := func(ctx context.Context) {
					_, second = c.Do(clienttest.Post(t, "{}").WithContext(ctx))
				}
				c, _ = clienttest.New(t, w, clienttest.On(memory.New(), slowAnswers, func(cfg *oncehttp.Config) {
					cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return "made", nil }
					if inside {
						cfg.Authorize = func(req *http.Request) error {
							ask(req.Context())
							req.Header.Set("Authorization", "Bearer x")
							return nil
						}
					}
				}))
				done := make(chan error)
				go func() { _, err := c.Do(clienttest.Post(t, "{}")); done <- err }()
				if !inside {
					time.Sleep(time.Second)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					ask(ctx)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				var e *oncehttp.Error
				if clienttest.ExactlyOne(t, second); !errors.As(second, &e) {
					t.Fatalf("the second call: %v", second)
				}
				for range 3 {
					time.Sleep(25 * time.Hour)
					if _, err := c.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if e.Key == "" {
					return
				}
				if _, err := c.DoKey(clienttest.Post(t, "{}"), e.Key); w.Count() != 1 {
					t.Errorf("%v; a day later %d sends, %v; want one", second, w.Count(), err)
				}
			})
		})
	}
}

package oncehttp_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestKeylessAfterAPass: an operation under a generated key that a pass ended stands
// in the way of the same request without a key, in this process life and in the
// next, until a caller with its key was told.
func TestKeylessAfterAPass(t *testing.T) {
	t.Parallel()
	type client func() *oncehttp.Client
	whole := func(t *testing.T, c client) { resume(t, c()) }
	passes := map[string]func(t *testing.T, c client){
		"a Resume": whole,
		"a Resume that is broken off": func(t *testing.T, c client) {
			for range c().Resume(t.Context()) {
				break
			}
		},
		"a Run": func(t *testing.T, c client) {
			stop := running(t, c())
			time.Sleep(time.Minute)
			if err := stop(); err != nil {
				t.Error(err)
			}
		},
		"a Resume of another client": func(t *testing.T, c client) { whole(t, c); c() },
	}
	for name, pass := range passes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachJournal(t, func(t *testing.T, j persist.Journal) {
				server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}, {Kind: mockserver.DropAfter}}})
				next := func() *oncehttp.Client {
					c, _ := newClient(t, transport, on(j, oneAttempt, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 2 }))
					return c
				}
				c := next()
				keys := map[string]oncehttp.Key{}
				for _, body := range []string{`{"amount":1}`, `{"amount":2}`} {
					_, err := c.Do(pay(t, body))
					var e *oncehttp.Error
					if !errors.As(err, &e) {
						t.Fatal(err)
					}
					keys[body] = e.Key
				}
				time.Sleep(time.Minute)
				pass(t, next)
				synctest.Wait()
				for body, key := range keys {
					for range 2 {
						_, err := next().Do(pay(t, body))
						var e *oncehttp.Error
						if exactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Key != key || e.State != lookup(t, c, key).State {
							t.Errorf("the same again: %v, want it refused for %q", err, key)
						}
					}
				}
				if effects(server) != 2 {
					t.Fatalf("%d effects, want 2", effects(server))
				}
				for body, key := range keys {
					if resp, err := next().DoKey(pay(t, body), key); err != nil || resp.StatusCode != 201 {
						t.Errorf("with the key: %v", err)
					}
					if lookup(t, c, key).Unreported {
						t.Errorf("%s is still unreported", key)
					}
					if _, err := next().Do(pay(t, body)); err != nil {
						t.Errorf("once it was told: %v", err)
					}
				}
				if effects(server) != 4 {
					t.Errorf("%d effects, want 4", effects(server))
				}
			})
		})
	}
}

// TestKeylessInTheNextProcess: the mark is in the journal.
func TestKeylessInTheNextProcess(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
		c, j := newClient(t, w, oneAttempt)
		_, _ = c.Do(post(t, "{}"))
		time.Sleep(time.Minute)
		resume(t, c)
		next, _ := newClient(t, w, on(snapshot(t, j)))
		if _, err := next.Do(post(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != 2 {
			t.Errorf("%v after %d sends, want it refused", err, w.count())
		}
	})
}

// TestKeylessIsSwept: the refusal ends with the operation's window, however short
// its answer is kept.
func TestKeylessIsSwept(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
		c, _ := newClient(t, w, on(j, oneAttempt, func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }))
		_, _ = c.Do(post(t, "{}"))
		time.Sleep(time.Minute)
		resume(t, c)
		for _, r := range []struct {
			after   time.Duration
			refused bool
		}{{2 * time.Hour, true}, {21 * time.Hour, true}, {2 * time.Hour, false}} {
			time.Sleep(r.after)
			if _, err := c.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Do(post(t, "{}")); errors.Is(err, oncehttp.ErrOutcomeUnknown) != r.refused {
				t.Errorf("%v later: %v, want it refused %v", r.after, err, r.refused)
			}
		}
	})
}

// passOverKeyless begins a pass over an unresolved operation without a key of its own: when it returns, the pass
// waits for the server's answer. wait returns when the pass has ended.
func passOverKeyless(t *testing.T, j persist.Journal) (w *wire, c *oncehttp.Client, key oncehttp.Key, wait func()) {
	t.Helper()
	w = &wire{replies: []reply{{err: errLost}, {status: 201, delay: time.Second}}}
	c, _ = newClient(t, w, on(j, oneAttempt))
	_, err := c.Do(post(t, "{}"))
	var e *oncehttp.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	var wg sync.WaitGroup
	wg.Go(func() { resume(t, c) })
	synctest.Wait()
	return w, c, e.Key, wg.Wait
}

// TestKeylessJoined: who joins a pass with the key is told by it.
func TestKeylessJoined(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w, c, key, wait := passOverKeyless(t, j)
		if _, err := c.DoKey(post(t, "{}"), key); err != nil {
			t.Error(err)
		}
		wait()
		if rec := lookup(t, c, key); rec.Unreported || w.count() != 2 {
			t.Errorf("unreported %v after %d sends", rec.Unreported, w.count())
		}
	})
}

// TestKeylessLeftAndTold: who asks for the answer and leaves before it comes was
// not told.
func TestKeylessLeftAndTold(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w, c, key, wait := passOverKeyless(t, j)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.DoKey(post(t, "{}").WithContext(ctx), key); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wait()
		if rec := lookup(t, c, key); !rec.Unreported {
			t.Error("it counts as reported")
		}
		if _, err := c.Do(post(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != 2 {
			t.Errorf("%v after %d sends, want it refused", err, w.count())
		}
	})
}

// TestFreshKeysAreNotProtected: the limit that the documentation states. A caller
// that makes a fresh key for each call makes two operations.
func TestFreshKeysAreNotProtected(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
		c, _ := newClient(t, w, oneAttempt)
		hc := c.StandardClient()
		for range 2 {
			req := post(t, "{}")
			req.Header.Set("Idempotency-Key", string(oncehttp.RandomKey()))
			if resp, err := hc.Do(req); err == nil {
				resp.Body.Close()
			}
		}
		if w.count() != 2 || len(w.keys()) != 2 {
			t.Errorf("%d sends under %d keys", w.count(), len(w.keys()))
		}
	})
}

// TestKeylessBesideAnUpgrade: on a journal that processes share, one that was upgraded
// begins operations under a recipe that the other has not seen yet.
func TestKeylessBesideAnUpgrade(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		w := &wire{replies: []reply{{status: 201}, {err: errLost}}}
		old, _ := newClient(t, w, on(newLeasing(j), oneAttempt))
		upgraded, _ := newClient(t, w, on(newLeasing(j), oneAttempt, func(cfg *oncehttp.Config) {
			cfg.Profile = profile.Draft07()
			cfg.Profile.Fingerprint = []string{"X-Tenant"}
		}))
		if _, err := old.Do(post(t, `{"other":1}`)); err != nil { // it has looked once
			t.Fatal(err)
		}
		_, err := upgraded.Do(post(t, "{}"))
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		key := e.Key
		if _, err = old.Do(post(t, "{}")); !errors.As(err, &e) || e.Key != key || w.count() != 2 {
			t.Errorf("%v after %d sends, want it refused for %q", err, w.count(), key)
		}
	})
}

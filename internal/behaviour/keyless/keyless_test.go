// Package keyless_test protects callers that name no key: what is unresolved or unreported is not begun again under another key.
package keyless_test

import (
	"context"
	"errors"
	"sync"
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
	"github.com/oncehttp/oncehttp/profile"
)

// TestKeylessAfterAPass: an operation under a generated key that a pass ended stands
// in the way of the same request without a key, in this process life and in the
// next, until a caller with its key was told.
func TestKeylessAfterAPass(t *testing.T) {
	t.Parallel()
	type client func() *oncehttp.Client
	whole := func(t *testing.T, c client) { clienttest.Resume(t, c()) }
	passes := map[string]func(t *testing.T, c client){
		"a Resume": whole,
		"a Resume that is broken off": func(t *testing.T, c client) {
			for range c().Resume(t.Context()) {
				break
			}
		},
		"a Run": func(t *testing.T, c client) {
			stop := clienttest.Run(t, c())
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
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}, {Kind: mockserver.DropAfter}}})
				next := func() *oncehttp.Client {
					c, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.ResumeWorkers = 2 }))
					return c
				}
				c := next()
				keys := map[string]oncehttp.Key{}
				for _, body := range []string{`{"amount":1}`, `{"amount":2}`} {
					_, err := c.Do(servertest.Pay(t, body))
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
						_, err := next().Do(servertest.Pay(t, body))
						var e *oncehttp.Error
						if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Key != key || e.State != clienttest.Lookup(t, c, key).State {
							t.Errorf("the same again: %v, want it refused for %q", err, key)
						}
					}
				}
				if servertest.Effects(server) != 2 {
					t.Fatalf("%d effects, want 2", servertest.Effects(server))
				}
				for body, key := range keys {
					if resp, err := next().DoKey(servertest.Pay(t, body), key); err != nil || resp.StatusCode != 201 {
						t.Errorf("with the key: %v", err)
					}
					if clienttest.Lookup(t, c, key).Unreported {
						t.Errorf("%s is still unreported", key)
					}
					if _, err := next().Do(servertest.Pay(t, body)); err != nil {
						t.Errorf("once it was told: %v", err)
					}
				}
				if servertest.Effects(server) != 4 {
					t.Errorf("%d effects, want 4", servertest.Effects(server))
				}
			})
		})
	}
}

// TestKeylessInTheNextProcess: the mark is in the journal.
func TestKeylessInTheNextProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, j := clienttest.New(t, w, clienttest.OneAttempt)
		_, _ = c.Do(clienttest.Post(t, "{}"))
		time.Sleep(time.Minute)
		clienttest.Resume(t, c)
		next, _ := clienttest.New(t, w, clienttest.On(journaltest.Snapshot(t, j)))
		if _, err := next.Do(clienttest.Post(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 2 {
			t.Errorf("%v after %d sends, want it refused", err, w.Count())
		}
	})
}

// TestKeylessIsSwept: the refusal ends with the operation's window, however short
// its answer is kept.
func TestKeylessIsSwept(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }))
		_, _ = c.Do(clienttest.Post(t, "{}"))
		time.Sleep(time.Minute)
		clienttest.Resume(t, c)
		for _, r := range []struct {
			after   time.Duration
			refused bool
		}{{2 * time.Hour, true}, {21 * time.Hour, true}, {2 * time.Hour, false}} {
			time.Sleep(r.after)
			if _, err := c.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Do(clienttest.Post(t, "{}")); errors.Is(err, oncehttp.ErrOutcomeUnknown) != r.refused {
				t.Errorf("%v later: %v, want it refused %v", r.after, err, r.refused)
			}
		}
	})
}

// passOverKeyless begins a pass over an unresolved operation without a key of its own: when it returns, the pass
// waits for the server's answer. wait returns when the pass has ended.
func passOverKeyless(t *testing.T, j persist.Journal) (w *wiretest.Wire, c *oncehttp.Client, key oncehttp.Key, wait func()) {
	t.Helper()
	w = &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Delay: time.Second}}}
	c, _ = clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
	_, err := c.Do(clienttest.Post(t, "{}"))
	var e *oncehttp.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	var wg sync.WaitGroup
	wg.Go(func() { clienttest.Resume(t, c) })
	synctest.Wait()
	return w, c, e.Key, wg.Wait
}

// TestKeylessJoined: who joins a pass with the key is told by it.
func TestKeylessJoined(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w, c, key, wait := passOverKeyless(t, j)
		if _, err := c.DoKey(clienttest.Post(t, "{}"), key); err != nil {
			t.Error(err)
		}
		wait()
		if rec := clienttest.Lookup(t, c, key); rec.Unreported || w.Count() != 2 {
			t.Errorf("unreported %v after %d sends", rec.Unreported, w.Count())
		}
	})
}

// TestKeylessLeftAndTold: who asks for the answer and leaves before it comes was
// not told.
func TestKeylessLeftAndTold(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w, c, key, wait := passOverKeyless(t, j)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), key); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wait()
		if rec := clienttest.Lookup(t, c, key); !rec.Unreported {
			t.Error("it counts as reported")
		}
		if _, err := c.Do(clienttest.Post(t, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 2 {
			t.Errorf("%v after %d sends, want it refused", err, w.Count())
		}
	})
}

// TestFreshKeysAreNotProtected: the limit that the documentation states. A caller
// that makes a fresh key for each call makes two operations.
func TestFreshKeysAreNotProtected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.OneAttempt)
		hc := c.StandardClient()
		for range 2 {
			req := clienttest.Post(t, "{}")
			req.Header.Set("Idempotency-Key", string(oncehttp.RandomKey()))
			if resp, err := hc.Do(req); err == nil {
				resp.Body.Close()
			}
		}
		if w.Count() != 2 || len(w.Keys()) != 2 {
			t.Errorf("%d sends under %d keys", w.Count(), len(w.Keys()))
		}
	})
}

// TestKeylessBesideAnUpgrade: on a journal that processes share, one that was upgraded
// begins operations under a recipe that the other has not seen yet.
func TestKeylessBesideAnUpgrade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}, {Err: wiretest.ErrLost}}}
		old, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), clienttest.OneAttempt))
		upgraded, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), clienttest.OneAttempt, func(cfg *oncehttp.Config) {
			cfg.Profile = profile.Draft07()
			cfg.Profile.Fingerprint = []string{"X-Tenant"}
		}))
		if _, err := old.Do(clienttest.Post(t, `{"other":1}`)); err != nil { // it has looked once
			t.Fatal(err)
		}
		_, err := upgraded.Do(clienttest.Post(t, "{}"))
		var e *oncehttp.Error
		if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		key := e.Key
		if _, err = old.Do(clienttest.Post(t, "{}")); !errors.As(err, &e) || e.Key != key || w.Count() != 2 {
			t.Errorf("%v after %d sends, want it refused for %q", err, w.Count(), key)
		}
	})
}

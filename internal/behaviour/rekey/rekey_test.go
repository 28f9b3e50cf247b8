// Package rekey_test holds the promises of Rekey, of Undo and of lookups by a business reference: one effect, whatever is lost.
package rekey_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
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

// TestRekey: an operation that was settled as absent is sent once more, under another key, by the next pass; the record
// names both keys and the reason. A second Rekey, and the business's own try under the new key, change nothing.
func TestRekey(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
		c, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt))
		servertest.InDoubt(t, c, "k")
		err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why)
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "settle it as absent first") {
			t.Errorf("before it is settled: %v", err)
		}
		clienttest.Absent(t, c, "k")
		for range 2 {
			if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why); err != nil {
				t.Fatal(err)
			}
		}
		rec := clienttest.Lookup(t, c, "k2")
		if rec.Replaces != "k" || rec.Note != servertest.Why || rec.State != persist.StatePending || rec.MaybeSent || !rec.Enqueued || rec.WireKey != "k2" {
			t.Errorf("the new record: %+v", rec)
		}
		clienttest.Pass(t, c)
		if resp, err := c.DoKey(servertest.Pay(t, servertest.Order), "k2"); err != nil || resp.StatusCode != 201 || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
			t.Errorf("the business asks under the new key: %v", err)
		}
		if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why); err != nil {
			t.Errorf("once more, when it is done: %v", err)
		}
		if old := clienttest.Lookup(t, c, "k"); old.State != persist.StateSettled || old.Effect != persist.EffectAbsent || servertest.Effects(server) != 1 || server.Ledger().Effects("k2") != 1 {
			t.Errorf("%v, %d effects", old.State, servertest.Effects(server))
		}
	})
}

// TestRekeyRefused: what could take effect twice, or cannot be sent, is refused, and nothing is begun.
func TestRekeyRefused(t *testing.T) {
	t.Parallel()
	ended := func(end func(t *testing.T, c *oncehttp.Client)) func(*testing.T, *oncehttp.Client) {
		return func(t *testing.T, c *oncehttp.Client) { servertest.InDoubt(t, c, "k"); end(t, c) }
	}
	absent := ended(func(t *testing.T, c *oncehttp.Client) { clienttest.Absent(t, c, "k") })
	for name, r := range map[string]struct {
		before func(t *testing.T, c *oncehttp.Client)
		newKey oncehttp.Key
		reason string
		is     error
	}{
		"unknown":      {func(*testing.T, *oncehttp.Client) {}, "k2", servertest.Why, persist.ErrNotFound},
		"no reason":    {absent, "k2", "", oncehttp.ErrConfig},
		"long reason":  {absent, "k2", strings.Repeat("x", persist.NoteBytesMax+1), oncehttp.ErrConfig},
		"the same key": {absent, "k", servertest.Why, oncehttp.ErrConfig},
		"no key":       {absent, "", servertest.Why, oncehttp.ErrConfig},
		"a bad key":    {absent, "a b", servertest.Why, oncehttp.ErrConfig},
		"abandoned": {ended(func(t *testing.T, c *oncehttp.Client) {
			if err := c.Abandon(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
		}), "k2", servertest.Why, oncehttp.ErrAbandoned},
		"happened": {ended(func(t *testing.T, c *oncehttp.Client) {
			if err := c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
				t.Fatal(err)
			}
		}), "k2", servertest.Why, oncehttp.ErrFinal},
		"confirmed": {ended(func(t *testing.T, c *oncehttp.Client) { _, _ = c.DoKey(servertest.Pay(t, servertest.Order), "k") }), "k2", servertest.Why, oncehttp.ErrFinal},
		"another's key": {func(t *testing.T, c *oncehttp.Client) {
			absent(t, c)
			if _, err := c.DoKey(servertest.Pay(t, `{"reference":"other"}`), "k2"); err != nil {
				t.Fatal(err)
			}
		}, "k2", servertest.Why, oncehttp.ErrKeyReused},
		"a third key": {func(t *testing.T, c *oncehttp.Client) {
			absent(t, c)
			if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k3", servertest.Why); err != nil {
				t.Fatal(err)
			}
		}, "k2", servertest.Why, oncehttp.ErrKeyReused},
		"pruned": {func(t *testing.T, c *oncehttp.Client) {
			absent(t, c)
			time.Sleep(48 * time.Hour)
			if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}, "k2", servertest.Why, oncehttp.ErrConfig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
				c, j := clienttest.New(t, transport, clienttest.OneAttempt)
				r.before(t, c)
				records := func() (n int) {
					for _, err := range j.List(t.Context(), persist.Query{}) {
						if n++; err != nil {
							t.Error(err)
						}
					}
					return n
				}
				before := records()
				if err := clienttest.RekeyAsSeen(c, t.Context(), "k", r.newKey, r.reason); !errors.Is(err, r.is) {
					t.Errorf("%v, want %v", err, r.is)
				}
				if after := records(); after != before {
					t.Errorf("%d records, before %d", after, before)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // a key in the body cannot be replaced there
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		p := profile.Draft07()
		p.Name, p.Carrier = "in-body", profile.Carrier{Place: profile.Body, Name: "/key"}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { clienttest.OneAttempt(cfg); cfg.Profile = p })
		_, _ = c.DoKey(clienttest.Post(t, `{"key":"k"}`), "k")
		clienttest.Absent(t, c, "k")
		if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "travels in the request") {
			t.Errorf("a key in the body: %v", err)
		}
	})
}

// TestRekeyOnce: of Rekeys to several keys at once, in two processes, one at most goes on, and there is one effect.
func TestRekeyOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
			shared := memory.New()
			first, _ := clienttest.New(t, transport, clienttest.On(journaltest.NewLeasing(shared), clienttest.OneAttempt))
			second, _ := clienttest.New(t, transport, clienttest.On(journaltest.NewLeasing(shared), clienttest.OneAttempt))
			servertest.InDoubt(t, first, "k")
			clienttest.Absent(t, first, "k")
			var calls sync.WaitGroup
			for i, c := range []*oncehttp.Client{first, second, first, second} {
				calls.Go(func() {
					err := clienttest.RekeyAsSeen(c, t.Context(), "k", oncehttp.Key([]string{"k2", "k3", "k4", "k5"}[i]), servertest.Why)
					if err != nil && !errors.Is(err, oncehttp.ErrKeyReused) && !errors.Is(err, oncehttp.ErrInFlight) {
						t.Error(err)
					}
				})
			}
			calls.Wait()
			clienttest.Pass(t, first)
			clienttest.Pass(t, second)
			if n := servertest.Effects(server); n > 1 {
				t.Errorf("%d effects", n)
			}
		})
	}
}

// TestRekeyGoesOn: a Rekey that was cut off before its operation was let go leaves one that nothing sends; the same Rekey
// goes on with it, another one names it.
func TestRekeyGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, transport := servertest.Till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
		j := &journaltest.Faulty{Journal: memory.New()}
		c, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt))
		servertest.InDoubt(t, c, "k")
		clienttest.Absent(t, c, "k")
		j.OnUpdate = journaltest.Fails(journaltest.ErrDisk)
		if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why); !errors.Is(err, journaltest.ErrDisk) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatalf("%v", err)
		}
		j.OnUpdate = nil
		clienttest.Pass(t, c)
		if rec := clienttest.Lookup(t, c, "k2"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldRekey || servertest.Effects(server) != 0 {
			t.Errorf("%v for %q, %d effects", rec.State, rec.HoldReason, servertest.Effects(server))
		}
		if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k3", servertest.Why); !errors.Is(err, oncehttp.ErrKeyReused) || !strings.Contains(err.Error(), `"k2"`) {
			t.Errorf("to a third key: %v", err)
		}
		if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why); err != nil {
			t.Error(err)
		}
		clienttest.Pass(t, c)
		if servertest.Effects(server) != 1 {
			t.Errorf("%d effects", servertest.Effects(server))
		}
	})
}

// TestRekeyByLookup: where the profile promises that lookups find everything within a minute, an operation in doubt that is
// not found a minute after it was held is absent, and goes on under the new key. Nothing is sent meanwhile.
func TestRekeyByLookup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &servertest.Shop{}
		c, w, _ := servertest.LostOrder(t, s, servertest.Promising)
		begun, asked := time.Now(), time.Time{}
		w.At = func(*http.Request) { asked = time.Now() }
		var waiting sync.WaitGroup
		waiting.Go(func() {
			time.Sleep(30 * time.Second)
			clienttest.Pass(t, c)
			if _, err := c.DoKey(clienttest.Post(t, servertest.OrderOne), "k"); err == nil {
				t.Error("the old key was sent while it is rekeyed")
			}
		})
		if err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why); err != nil {
			t.Fatal(err)
		}
		waiting.Wait()
		if asked.Sub(begun) < 5*time.Minute || s.Gets != 1 || s.Posts != 0 {
			t.Errorf("asked after %v, %d lookups, %d orders", asked.Sub(begun), s.Gets, s.Posts)
		}
		if old := clienttest.Lookup(t, c, "k"); old.State != persist.StateSettled || old.Effect != persist.EffectAbsent || !strings.HasSuffix(old.Note, servertest.Why) {
			t.Errorf("%v %q, %q", old.State, old.Effect, old.Note)
		}
		clienttest.Pass(t, c)
		if rec := clienttest.Lookup(t, c, "k2"); rec.State != persist.StateConfirmed || s.Effects != 1 {
			t.Errorf("%v, %d effects", rec.State, s.Effects)
		}
	})
}

// TestRekeyFindsIt: what the lookup finds, or does not tell, leaves the operation as it was, and begins nothing.
func TestRekeyFindsIt(t *testing.T) {
	t.Parallel()
	other := map[string]any{"number": "A/1&x", "amount": 7.}
	for name, r := range map[string]struct {
		shop   *servertest.Shop
		change func(*oncehttp.Config)
		want   string
	}{
		"it took effect":      {&servertest.Shop{Orders: []map[string]any{{"number": "A/1&x", "amount": 100.}}}, servertest.Promising, "it took effect"},
		"something else":      {&servertest.Shop{Orders: []map[string]any{other}}, servertest.Promising, "something else"},
		"two of them":         {&servertest.Shop{Orders: []map[string]any{other, other}}, servertest.Promising, "something else"},
		"no answer":           {&servertest.Shop{Broken: true}, servertest.Promising, "does not say"},
		"nothing is promised": {&servertest.Shop{}, func(cfg *oncehttp.Config) { servertest.Promising(cfg); cfg.Profile.Reference.FoundWithin = 0 }, "settle it as absent first"},
		"there is no lookup":  {&servertest.Shop{}, func(cfg *oncehttp.Config) { servertest.Promising(cfg); cfg.Profile.Reference = nil }, "settle it as absent first"},
		"a journal that fails": {&servertest.Shop{}, func(cfg *oncehttp.Config) {
			servertest.Promising(cfg)
			cfg.Journal = &journaltest.Faulty{Journal: memory.New()}
		}, journaltest.ErrDisk.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _, j := servertest.LostOrder(t, r.shop, r.change)
				before := clienttest.Lookup(t, c, "k")
				if j, ok := j.(*journaltest.Faulty); ok {
					j.OnUpdate = journaltest.Fails(journaltest.ErrDisk)
				}
				err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why)
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), r.want) {
					t.Errorf("%v, want %q", err, r.want)
				}
				after := clienttest.Lookup(t, c, "k")
				if after.State != before.State || after.HoldReason != before.HoldReason || !after.NextAttempt.Equal(before.NextAttempt) {
					t.Errorf("%v for %q, was %v", after.State, after.HoldReason, before.State)
				}
				if _, err := c.Lookup(t.Context(), "k2"); !errors.Is(err, persist.ErrNotFound) || r.shop.Posts != 0 {
					t.Errorf("something was begun: %v, %d orders", err, r.shop.Posts)
				}
			})
		})
	}
}

// TestRekeyLookupCutOff: a Rekey whose caller left while it waited goes on when it is called again, in another process, and
// waits for what is left of the time.
func TestRekeyLookupCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &servertest.Shop{}
		c, _, j := servertest.LostOrder(t, s, servertest.Promising)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err := clienttest.RekeyAsSeen(c, ctx, "k", "k2", servertest.Why)
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrHeld) || s.Gets != 0 {
			t.Errorf("%v, %d lookups", err, s.Gets)
		}
		next, _ := clienttest.New(t, s, clienttest.On(journaltest.Survivors(t, j), servertest.Promising))
		clienttest.Pass(t, next)
		begun := time.Now()
		if err := clienttest.RekeyAsSeen(next, t.Context(), "k", "k2", servertest.Why); err != nil {
			t.Error(err)
		}
		if waited := time.Since(begun); waited > 311*time.Second || waited < 310*time.Second || s.Gets != 1 || s.Posts != 0 {
			t.Errorf("waited %v, %d lookups, %d orders", waited, s.Gets, s.Posts)
		}
	})
}

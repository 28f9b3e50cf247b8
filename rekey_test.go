package oncehttp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

const why = "the bank has no such payment"

// inDoubt sends a payment whose request is lost, and leaves it so.
func inDoubt(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
	t.Helper()
	_, err := c.DoKey(pay(t, order), key)
	if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Fatalf("%v, want ErrOutcomeUnknown", err)
	}
}

func settleAbsent(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
	t.Helper()
	if err := absentAsSeen(c, t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

// pass is one Resume.
func pass(t *testing.T, c *oncehttp.Client) {
	t.Helper()
	for _, err := range c.Resume(t.Context()) {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestRekey: an operation that was settled as absent is sent once more, under another key, by the next pass; the record
// names both keys and the reason. A second Rekey, and the business's own try under the new key, change nothing.
func TestRekey(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
		c, _ := newClient(t, transport, on(j, oneAttempt))
		inDoubt(t, c, "k")
		err := rekeyAsSeen(c, t.Context(), "k", "k2", why)
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "settle it as absent first") {
			t.Errorf("before it is settled: %v", err)
		}
		settleAbsent(t, c, "k")
		for range 2 {
			if err := rekeyAsSeen(c, t.Context(), "k", "k2", why); err != nil {
				t.Fatal(err)
			}
		}
		rec := lookup(t, c, "k2")
		if rec.Replaces != "k" || rec.Note != why || rec.State != persist.StatePending || rec.MaybeSent || !rec.Enqueued || rec.WireKey != "k2" {
			t.Errorf("the new record: %+v", rec)
		}
		pass(t, c)
		if resp, err := c.DoKey(pay(t, order), "k2"); err != nil || resp.StatusCode != 201 || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
			t.Errorf("the business asks under the new key: %v", err)
		}
		if err := rekeyAsSeen(c, t.Context(), "k", "k2", why); err != nil {
			t.Errorf("once more, when it is done: %v", err)
		}
		if old := lookup(t, c, "k"); old.State != persist.StateSettled || old.Effect != persist.EffectAbsent || effects(server) != 1 || server.Ledger().Effects("k2") != 1 {
			t.Errorf("%v, %d effects", old.State, effects(server))
		}
	})
}

// TestRekeyRefused: what could take effect twice, or cannot be sent, is refused, and nothing is begun.
func TestRekeyRefused(t *testing.T) {
	t.Parallel()
	ended := func(end func(t *testing.T, c *oncehttp.Client)) func(*testing.T, *oncehttp.Client) {
		return func(t *testing.T, c *oncehttp.Client) { inDoubt(t, c, "k"); end(t, c) }
	}
	absent := ended(func(t *testing.T, c *oncehttp.Client) { settleAbsent(t, c, "k") })
	for name, r := range map[string]struct {
		before func(t *testing.T, c *oncehttp.Client)
		newKey oncehttp.Key
		reason string
		is     error
	}{
		"unknown":      {func(*testing.T, *oncehttp.Client) {}, "k2", why, persist.ErrNotFound},
		"no reason":    {absent, "k2", "", oncehttp.ErrConfig},
		"long reason":  {absent, "k2", strings.Repeat("x", persist.NoteBytesMax+1), oncehttp.ErrConfig},
		"the same key": {absent, "k", why, oncehttp.ErrConfig},
		"no key":       {absent, "", why, oncehttp.ErrConfig},
		"a bad key":    {absent, "a b", why, oncehttp.ErrConfig},
		"abandoned": {ended(func(t *testing.T, c *oncehttp.Client) {
			if err := c.Abandon(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
		}), "k2", why, oncehttp.ErrAbandoned},
		"happened": {ended(func(t *testing.T, c *oncehttp.Client) {
			if err := c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
				t.Fatal(err)
			}
		}), "k2", why, oncehttp.ErrFinal},
		"confirmed": {ended(func(t *testing.T, c *oncehttp.Client) { _, _ = c.DoKey(pay(t, order), "k") }), "k2", why, oncehttp.ErrFinal},
		"another's key": {func(t *testing.T, c *oncehttp.Client) {
			absent(t, c)
			if _, err := c.DoKey(pay(t, `{"reference":"other"}`), "k2"); err != nil {
				t.Fatal(err)
			}
		}, "k2", why, oncehttp.ErrKeyReused},
		"a third key": {func(t *testing.T, c *oncehttp.Client) {
			absent(t, c)
			if err := rekeyAsSeen(c, t.Context(), "k", "k3", why); err != nil {
				t.Fatal(err)
			}
		}, "k2", why, oncehttp.ErrKeyReused},
		"pruned": {func(t *testing.T, c *oncehttp.Client) {
			absent(t, c)
			time.Sleep(48 * time.Hour)
			if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}, "k2", why, oncehttp.ErrConfig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				_, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
				c, j := newClient(t, transport, oneAttempt)
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
				if err := rekeyAsSeen(c, t.Context(), "k", r.newKey, r.reason); !errors.Is(err, r.is) {
					t.Errorf("%v, want %v", err, r.is)
				}
				if after := records(); after != before {
					t.Errorf("%d records, before %d", after, before)
				}
			})
		})
	}
	bubble(t, func(t *testing.T) { // a key in the body cannot be replaced there
		w := &wire{replies: []reply{{err: errLost}}}
		p := profile.Draft07()
		p.Name, p.Carrier = "in-body", profile.Carrier{Place: profile.Body, Name: "/key"}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) { oneAttempt(cfg); cfg.Profile = p })
		_, _ = c.DoKey(post(t, `{"key":"k"}`), "k")
		settleAbsent(t, c, "k")
		if err := rekeyAsSeen(c, t.Context(), "k", "k2", why); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "travels in the request") {
			t.Errorf("a key in the body: %v", err)
		}
	})
}

// TestRekeyOnce: of Rekeys to several keys at once, in two processes, one at most goes on, and there is one effect.
func TestRekeyOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		bubble(t, func(t *testing.T) {
			server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
			shared := memory.New()
			first, _ := newClient(t, transport, on(newLeasing(shared), oneAttempt))
			second, _ := newClient(t, transport, on(newLeasing(shared), oneAttempt))
			inDoubt(t, first, "k")
			settleAbsent(t, first, "k")
			var calls sync.WaitGroup
			for i, c := range []*oncehttp.Client{first, second, first, second} {
				calls.Go(func() {
					err := rekeyAsSeen(c, t.Context(), "k", oncehttp.Key([]string{"k2", "k3", "k4", "k5"}[i]), why)
					if err != nil && !errors.Is(err, oncehttp.ErrKeyReused) && !errors.Is(err, oncehttp.ErrInFlight) {
						t.Error(err)
					}
				})
			}
			calls.Wait()
			pass(t, first)
			pass(t, second)
			if n := effects(server); n > 1 {
				t.Errorf("%d effects", n)
			}
		})
	}
}

// TestRekeyGoesOn: a Rekey that was cut off before its operation was let go leaves one that nothing sends; the same Rekey
// goes on with it, another one names it.
func TestRekeyGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		server, transport := till(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropBefore}}})
		j := &faulty{Journal: memory.New()}
		c, _ := newClient(t, transport, on(j, oneAttempt))
		inDoubt(t, c, "k")
		settleAbsent(t, c, "k")
		j.update = fails(errDisk)
		if err := rekeyAsSeen(c, t.Context(), "k", "k2", why); !errors.Is(err, errDisk) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatalf("%v", err)
		}
		j.update = nil
		pass(t, c)
		if rec := lookup(t, c, "k2"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldRekey || effects(server) != 0 {
			t.Errorf("%v for %q, %d effects", rec.State, rec.HoldReason, effects(server))
		}
		if err := rekeyAsSeen(c, t.Context(), "k", "k3", why); !errors.Is(err, oncehttp.ErrKeyReused) || !strings.Contains(err.Error(), `"k2"`) {
			t.Errorf("to a third key: %v", err)
		}
		if err := rekeyAsSeen(c, t.Context(), "k", "k2", why); err != nil {
			t.Error(err)
		}
		pass(t, c)
		if effects(server) != 1 {
			t.Errorf("%d effects", effects(server))
		}
	})
}

// promising is the shop's profile where lookups find everything within a minute.
func promising(cfg *oncehttp.Config) {
	cfg.Profile = byNumber()
	cfg.Profile.Reference.FoundWithin = time.Minute
	cfg.Retry.MaxAttempts = 1
}

// lostOrder sends an order whose request is lost before it reaches the shop; what it does afterwards is through's.
func lostOrder(t *testing.T, through *shop, change func(*oncehttp.Config)) (*oncehttp.Client, *crashing, persist.Journal) {
	t.Helper()
	lost := true
	w := &crashing{through: through, lose: func(*http.Request) bool { was := lost; lost = false; return was }}
	c, j := newClient(t, w, change)
	if _, err := c.DoKey(post(t, orderOne), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Fatal(err)
	}
	return c, w, j
}

// TestRekeyByLookup: where the profile promises that lookups find everything within a minute, an operation in doubt that is
// not found a minute after it was held is absent, and goes on under the new key. Nothing is sent meanwhile.
func TestRekeyByLookup(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		s := &shop{}
		c, w, _ := lostOrder(t, s, promising)
		begun, asked := time.Now(), time.Time{}
		w.at = func(*http.Request) { asked = time.Now() }
		var waiting sync.WaitGroup
		waiting.Go(func() {
			time.Sleep(30 * time.Second)
			pass(t, c)
			if _, err := c.DoKey(post(t, orderOne), "k"); err == nil {
				t.Error("the old key was sent while it is rekeyed")
			}
		})
		if err := rekeyAsSeen(c, t.Context(), "k", "k2", why); err != nil {
			t.Fatal(err)
		}
		waiting.Wait()
		if asked.Sub(begun) < 5*time.Minute || s.gets != 1 || s.posts != 0 {
			t.Errorf("asked after %v, %d lookups, %d orders", asked.Sub(begun), s.gets, s.posts)
		}
		if old := lookup(t, c, "k"); old.State != persist.StateSettled || old.Effect != persist.EffectAbsent || !strings.HasSuffix(old.Note, why) {
			t.Errorf("%v %q, %q", old.State, old.Effect, old.Note)
		}
		pass(t, c)
		if rec := lookup(t, c, "k2"); rec.State != persist.StateConfirmed || s.effects != 1 {
			t.Errorf("%v, %d effects", rec.State, s.effects)
		}
	})
}

// TestRekeyFindsIt: what the lookup finds, or does not tell, leaves the operation as it was, and begins nothing.
func TestRekeyFindsIt(t *testing.T) {
	t.Parallel()
	other := map[string]any{"number": "A/1&x", "amount": 7.}
	for name, r := range map[string]struct {
		shop   *shop
		change func(*oncehttp.Config)
		want   string
	}{
		"it took effect":       {&shop{orders: []map[string]any{{"number": "A/1&x", "amount": 100.}}}, promising, "it took effect"},
		"something else":       {&shop{orders: []map[string]any{other}}, promising, "something else"},
		"two of them":          {&shop{orders: []map[string]any{other, other}}, promising, "something else"},
		"no answer":            {&shop{broken: true}, promising, "does not say"},
		"nothing is promised":  {&shop{}, func(cfg *oncehttp.Config) { promising(cfg); cfg.Profile.Reference.FoundWithin = 0 }, "settle it as absent first"},
		"there is no lookup":   {&shop{}, func(cfg *oncehttp.Config) { promising(cfg); cfg.Profile.Reference = nil }, "settle it as absent first"},
		"a journal that fails": {&shop{}, func(cfg *oncehttp.Config) { promising(cfg); cfg.Journal = &faulty{Journal: memory.New()} }, errDisk.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				c, _, j := lostOrder(t, r.shop, r.change)
				before := lookup(t, c, "k")
				if j, ok := j.(*faulty); ok {
					j.update = fails(errDisk)
				}
				err := rekeyAsSeen(c, t.Context(), "k", "k2", why)
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), r.want) {
					t.Errorf("%v, want %q", err, r.want)
				}
				after := lookup(t, c, "k")
				if after.State != before.State || after.HoldReason != before.HoldReason || !after.NextAttempt.Equal(before.NextAttempt) {
					t.Errorf("%v for %q, was %v", after.State, after.HoldReason, before.State)
				}
				if _, err := c.Lookup(t.Context(), "k2"); !errors.Is(err, persist.ErrNotFound) || r.shop.posts != 0 {
					t.Errorf("something was begun: %v, %d orders", err, r.shop.posts)
				}
			})
		})
	}
}

// TestRekeyLookupCutOff: a Rekey whose caller left while it waited goes on when it is called again, in another process, and
// waits for what is left of the time.
func TestRekeyLookupCutOff(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		s := &shop{}
		c, _, j := lostOrder(t, s, promising)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err := rekeyAsSeen(c, ctx, "k", "k2", why)
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrHeld) || s.gets != 0 {
			t.Errorf("%v, %d lookups", err, s.gets)
		}
		next, _ := newClient(t, s, on(survivors(t, j), promising))
		pass(t, next)
		begun := time.Now()
		if err := rekeyAsSeen(next, t.Context(), "k", "k2", why); err != nil {
			t.Error(err)
		}
		if waited := time.Since(begun); waited > 311*time.Second || waited < 310*time.Second || s.gets != 1 || s.posts != 0 {
			t.Errorf("waited %v, %d lookups, %d orders", waited, s.gets, s.posts)
		}
	})
}

package oncehttp_test

import (
	"errors"
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
	if err := c.Settle(t.Context(), key, oncehttp.Resolution{Effect: oncehttp.EffectAbsent}); err != nil {
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
		err := c.Rekey(t.Context(), "k", "k2", why)
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "settle it as absent first") {
			t.Errorf("before it is settled: %v", err)
		}
		settleAbsent(t, c, "k")
		for range 2 {
			if err := c.Rekey(t.Context(), "k", "k2", why); err != nil {
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
		if err := c.Rekey(t.Context(), "k", "k2", why); err != nil {
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
			if err := c.Rekey(t.Context(), "k", "k3", why); err != nil {
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
				if err := c.Rekey(t.Context(), "k", r.newKey, r.reason); !errors.Is(err, r.is) {
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
		if err := c.Rekey(t.Context(), "k", "k2", why); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "travels in the request") {
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
					err := c.Rekey(t.Context(), "k", oncehttp.Key([]string{"k2", "k3", "k4", "k5"}[i]), why)
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
		if err := c.Rekey(t.Context(), "k", "k2", why); !errors.Is(err, errDisk) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatalf("%v", err)
		}
		j.update = nil
		pass(t, c)
		if rec := lookup(t, c, "k2"); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldRekey || effects(server) != 0 {
			t.Errorf("%v for %q, %d effects", rec.State, rec.HoldReason, effects(server))
		}
		if err := c.Rekey(t.Context(), "k", "k3", why); !errors.Is(err, oncehttp.ErrKeyReused) || !strings.Contains(err.Error(), `"k2"`) {
			t.Errorf("to a third key: %v", err)
		}
		if err := c.Rekey(t.Context(), "k", "k2", why); err != nil {
			t.Error(err)
		}
		pass(t, c)
		if effects(server) != 1 {
			t.Errorf("%d effects", effects(server))
		}
	})
}

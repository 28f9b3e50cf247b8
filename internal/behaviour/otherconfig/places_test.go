package otherconfig_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file tests that every client begins an operation at one place, whatever its Config, and looks for it there.

// onBehalf lets a client know these headers as such that select an account.
func onBehalf(headers ...string) func(*oncehttp.Config) {
	return clienttest.WithProfile("x", func(p *profile.Profile) { p.AccountHeaders = headers })
}

// scopePairs are pairs of clients that know other headers that select an account.
func scopePairs() map[string]companions {
	both := onBehalf("Stripe-Account", "X-Tenant")
	return map[string]companions{
		"by profile":        {one: onBehalf("Stripe-Account"), other: clienttest.WithProfile("y", func(*profile.Profile) {}), sweptUnclear: true},
		"by its facts":      {one: onBehalf("Stripe-Account"), other: onBehalf()},
		"by SecretHeaders":  {one: both, other: clienttest.Together(both, clienttest.SecretHeaders("Stripe-Account"))},
		"one header more":   {one: onBehalf("Stripe-Account"), other: both},
		"two headers":       {one: onBehalf("Stripe-Account"), other: onBehalf("X-Tenant")},
		"by their spelling": {one: onBehalf("Stripe-Account"), other: onBehalf("stripe-account")},
	}
}

// eachScopePair calls test for each pair, in both orders, and each state of the first one's operation.
func eachScopePair(t *testing.T, test func(t *testing.T, j persist.Journal, pair companions, s companyState)) {
	for name, pair := range scopePairs() {
		for state, s := range companyStates {
			for order, pair := range map[string]companions{"": pair, ", reversed": pair.reversed()} {
				t.Run(name+", "+state+order, func(t *testing.T) {
					t.Parallel()
					journaltest.Each(t, func(t *testing.T, j persist.Journal) { test(t, j, pair, s) })
				})
			}
		}
	}
}

// TestOnePlaceForTheSameRequest: the same request under one key is one operation, whichever headers select an account by the Config of
// the one and the other: there is one record, and what has ended is not sent again.
func TestOnePlaceForTheSameRequest(t *testing.T) {
	t.Parallel()
	eachScopePair(t, func(t *testing.T, j persist.Journal, pair companions, s companyState) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{s.first, {Status: 201, Body: "{}"}}}
		client := func(change func(*oncehttp.Config)) *oncehttp.Client {
			c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }, change))
			return c
		}
		first := client(pair.one)
		_, _ = first.DoKey(companyRequest(t), "k")
		if s.after != nil {
			s.after(t, first)
		}
		for range 2 {
			_, err := client(pair.other).DoKey(companyRequest(t), "k")
			if n := w.Count() - 1; n > 1 || n == 1 && !s.again || journaltest.Count(t, j) != 1 {
				t.Fatalf("sent %d times more, with %d records: %v", n, journaltest.Count(t, j), err)
			}
			if errors.Is(err, oncehttp.ErrNoEffect) && !errors.Is(err, oncehttp.ErrSettled) {
				t.Errorf("no effect is said: %v", err)
			}
		}
	})
}

// TestOnePlaceWithoutAKey: the same request without a key is sent once while it is in doubt, whichever headers select an account.
func TestOnePlaceWithoutAKey(t *testing.T) {
	t.Parallel()
	for name, pair := range scopePairs() {
		for order, pair := range map[string]companions{"": pair, ", reversed": pair.reversed()} {
			t.Run(name+order, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
					for _, change := range []func(*oncehttp.Config){pair.one, pair.other, pair.other, pair.one} {
						c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, change))
						if _, err := c.Do(companyRequest(t)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 1 {
							t.Fatalf("%v after %d sends", err, w.Count())
						}
					}
				})
			})
		}
	}
}

// TestPlacesOfScopes: requests of several accounts under one key are each one operation for clients that know the header, in each
// order, however often they come, and whatever became of the first; with the header as a credential for one of them, too.
func TestPlacesOfScopes(t *testing.T) {
	t.Parallel()
	values := []string{"acct_1", "", "acct_2", "acct_3"}
	for state, s := range companyStates {
		for turn := range values {
			t.Run(state+", from "+values[turn], func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{s.first, {Status: 201, Body: "{}"}}}
					plain, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, onBehalf("Stripe-Account"), func(cfg *oncehttp.Config) { cfg.KeepAnswer = 24 * time.Hour }))
					secret, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, onBehalf("Stripe-Account"), clienttest.SecretHeaders("Stripe-Account")))
					want, over := 0, false
					for i := range values {
						value := values[(i+turn)%len(values)]
						for _, c := range []*oncehttp.Client{plain, secret, plain} {
							req := companyRequest(t)
							if req.Header.Set("Stripe-Account", value); value == "" {
								req.Header.Del("Stripe-Account")
							}
							_, err := c.DoKey(req, "k")
							if want = max(want, i+1); w.Count() < want || w.Count() > want+1 || s.first.Err == nil && w.Count() != want {
								t.Fatalf("%q: %d sends, want %d: %v", value, w.Count(), want, err)
							}
							if i == 0 && s.after != nil && !over && w.Count() == 1 {
								over = true
								s.after(t, plain)
							}
							if n := w.All()[w.Count()-1].Header.Get("Stripe-Account"); i > 0 && n != value {
								t.Fatalf("sent for %q, want %q", n, value)
							}
						}
						want = w.Count()
					}
					if journaltest.Count(t, j) != len(values) {
						t.Errorf("%d records, want %d", journaltest.Count(t, j), len(values))
					}
				})
			})
		}
	}
}

// TestSecondPlaceWithoutTheFirst: while an operation of another scope stands at the second place of a key, the first is not free: not
// once its record is swept, nor where it had no effect. A client that does not count the header does not begin it there.
func TestSecondPlaceWithoutTheFirst(t *testing.T) {
	t.Parallel()
	with := func(t *testing.T, value string) *http.Request {
		req := companyRequest(t)
		if req.Header.Set("Stripe-Account", value); value == "" {
			req.Header.Del("Stripe-Account")
		}
		return req
	}
	short := func(cfg *oncehttp.Config) { cfg.KeepAnswer, cfg.KeepKey = time.Hour, 48*time.Hour }
	for name, row := range map[string]struct {
		first, second string
		refused       bool // no second is begun beside what is to be forgotten
	}{
		"both name an account": {"acct_1", "acct_2", false}, "the second names none": {"acct_1", "", false}, "the first names none": {"", "acct_2", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
				knows, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, onBehalf("Stripe-Account"), short))
				other, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, short))
				if _, err := knows.DoKey(with(t, row.first), "k"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(47 * time.Hour)
				_, err := knows.DoKey(with(t, row.second), "k")
				if row.refused {
					if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrConfig) || w.Count() != 1 {
						t.Errorf("%v after %d sends", err, w.Count())
					}
					return
				}
				if err != nil || w.Count() != 2 {
					t.Fatal(err, w.Count())
				}
				time.Sleep(2 * time.Hour)
				for range 3 {
					if _, err := other.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for _, c := range []*oncehttp.Client{other, knows} {
					if _, err := c.DoKey(with(t, row.second), "k"); w.Count() != 2 || errors.Is(err, oncehttp.ErrNoEffect) {
						t.Errorf("%v after %d sends", err, w.Count())
					}
				}
			})
		})
	}
}

// TestSecondPlaceOfACallWithoutAKey: a call that names no key, and gets no second place, is not told "no effect": nobody has looked for the same
// request under other keys yet.
func TestSecondPlaceOfACallWithoutAKey(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, onBehalf("Stripe-Account"), clienttest.FromOrder, func(cfg *oncehttp.Config) {
			cfg.KeepAnswer, cfg.KeepKey = time.Hour, 48*time.Hour
		}))
		if _, err := c.Do(clienttest.Post(t, clienttest.OrderSeven)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(47 * time.Hour)
		req := clienttest.Post(t, clienttest.OrderSeven)
		req.Header.Set("Stripe-Account", "acct_2")
		_, err := c.Do(req)
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrConfig) || w.Count() != 1 {
			t.Errorf("%v after %d sends, want ErrOutcomeUnknown, ErrConfig and 1", err, w.Count())
		}
	})
}

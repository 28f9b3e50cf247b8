package oncehttp_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file tests that every client begins an operation at one place, whatever its Config, and looks for it there.

// onBehalf lets a client know these headers as such that select an account.
func onBehalf(headers ...string) func(*oncehttp.Config) {
	return withProfile("x", func(p *profile.Profile) { p.AccountHeaders = headers })
}

// scopePairs are pairs of clients that know other headers that select an account.
func scopePairs() map[string]companions {
	both := onBehalf("Stripe-Account", "X-Tenant")
	return map[string]companions{
		"by profile":        {one: onBehalf("Stripe-Account"), other: withProfile("y", func(*profile.Profile) {}), sweptUnclear: true},
		"by its facts":      {one: onBehalf("Stripe-Account"), other: onBehalf()},
		"by SecretHeaders":  {one: both, other: together(both, secretHeaderNames("Stripe-Account"))},
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
					eachJournal(t, func(t *testing.T, j persist.Journal) { test(t, j, pair, s) })
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
		w := &wire{replies: []reply{s.first, {status: 201, body: "{}"}}}
		client := func(change func(*oncehttp.Config)) *oncehttp.Client {
			c, _ := newClient(t, w, on(j, oneAttempt, func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }, change))
			return c
		}
		first := client(pair.one)
		_, _ = first.DoKey(companyRequest(t), "k")
		if s.after != nil {
			s.after(t, first)
		}
		for range 2 {
			_, err := client(pair.other).DoKey(companyRequest(t), "k")
			if n := w.count() - 1; n > 1 || n == 1 && !s.again || records(t, j) != 1 {
				t.Fatalf("sent %d times more, with %d records: %v", n, records(t, j), err)
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
				eachJournal(t, func(t *testing.T, j persist.Journal) {
					w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
					for _, change := range []func(*oncehttp.Config){pair.one, pair.other, pair.other, pair.one} {
						c, _ := newClient(t, w, on(j, oneAttempt, change))
						if _, err := c.Do(companyRequest(t)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != 1 {
							t.Fatalf("%v after %d sends", err, w.count())
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
				eachJournal(t, func(t *testing.T, j persist.Journal) {
					w := &wire{replies: []reply{s.first, {status: 201, body: "{}"}}}
					plain, _ := newClient(t, w, on(j, oneAttempt, onBehalf("Stripe-Account"), func(cfg *oncehttp.Config) { cfg.KeepAnswer = 24 * time.Hour }))
					secret, _ := newClient(t, w, on(j, oneAttempt, onBehalf("Stripe-Account"), secretHeaderNames("Stripe-Account")))
					want, over := 0, false
					for i := range values {
						value := values[(i+turn)%len(values)]
						for _, c := range []*oncehttp.Client{plain, secret, plain} {
							req := companyRequest(t)
							if req.Header.Set("Stripe-Account", value); value == "" {
								req.Header.Del("Stripe-Account")
							}
							_, err := c.DoKey(req, "k")
							if want = max(want, i+1); w.count() < want || w.count() > want+1 || s.first.err == nil && w.count() != want {
								t.Fatalf("%q: %d sends, want %d: %v", value, w.count(), want, err)
							}
							if i == 0 && s.after != nil && !over && w.count() == 1 {
								over = true
								s.after(t, plain)
							}
							if n := w.all()[w.count()-1].header.Get("Stripe-Account"); i > 0 && n != value {
								t.Fatalf("sent for %q, want %q", n, value)
							}
						}
						want = w.count()
					}
					if records(t, j) != len(values) {
						t.Errorf("%d records, want %d", records(t, j), len(values))
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
			eachJournal(t, func(t *testing.T, j persist.Journal) {
				w := &wire{replies: []reply{{status: 201, body: "{}"}}}
				knows, _ := newClient(t, w, on(j, oneAttempt, onBehalf("Stripe-Account"), short))
				other, _ := newClient(t, w, on(j, oneAttempt, short))
				if _, err := knows.DoKey(with(t, row.first), "k"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(47 * time.Hour)
				_, err := knows.DoKey(with(t, row.second), "k")
				if row.refused {
					if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrConfig) || w.count() != 1 {
						t.Errorf("%v after %d sends", err, w.count())
					}
					return
				}
				if err != nil || w.count() != 2 {
					t.Fatal(err, w.count())
				}
				time.Sleep(2 * time.Hour)
				for range 3 {
					if _, err := other.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for _, c := range []*oncehttp.Client{other, knows} {
					if _, err := c.DoKey(with(t, row.second), "k"); w.count() != 2 || errors.Is(err, oncehttp.ErrNoEffect) {
						t.Errorf("%v after %d sends", err, w.count())
					}
				}
			})
		})
	}
}

// Package accounts_test holds that accounts, and callers with different credentials, learn nothing of each other and act on
// nothing of each other.
package accounts_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestOneOfScopedAccounts: where headers part one key into several operations, each can
// be looked up, settled and abandoned by its account.
func TestOneOfScopedAccounts(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
			cfg.Profile, cfg.Account = profile.StripeV1(), "shop"
		}))
		for _, account := range []string{"", "acct_1", "acct_2"} {
			req := clienttest.Post(t, "{}")
			if account != "" {
				req.Header.Set("Stripe-Account", account)
			}
			_, _ = c.DoKey(req, "k")
		}
		of := func(account string) oncehttp.LookupOption {
			if account == "" {
				return oncehttp.OfAccount(persist.Account("shop"))
			}
			return oncehttp.OfAccount(persist.Account("shop", [2]string{"Stripe-Account", account}))
		}
		_, err := c.Lookup(t.Context(), "k")
		for _, err := range []error{err, c.Abandon(t.Context(), "k"), clienttest.AbsentAsSeen(c, t.Context(), "k")} {
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "shop|Stripe-Account=acct_2") {
				t.Errorf("without an account: %v, want ErrConfig with their names", err)
			}
		}
		if err := c.Abandon(t.Context(), "k", of("acct_1")); err != nil {
			t.Error(err)
		}
		if err := clienttest.AbsentAsSeen(c, t.Context(), "k", of("acct_2")); err != nil {
			t.Error(err)
		}
		for account, state := range map[string]persist.State{"": persist.StatePending, "acct_1": persist.StateAbandoned, "acct_2": persist.StateSettled} {
			if rec, err := c.Lookup(t.Context(), "k", of(account)); err != nil || rec.State != state {
				t.Errorf("%q: %v, %v; want it %v", account, rec.State, err, state)
			}
		}
		for _, other := range []oncehttp.LookupOption{of("acct_3"), oncehttp.OfAccount("shop2"), oncehttp.OfAccount("")} {
			if _, err := c.Lookup(t.Context(), "k", other); !errors.Is(err, persist.ErrNotFound) {
				t.Errorf("another account: %v, want ErrNotFound", err)
			}
			if err := c.Abandon(t.Context(), "k", other); !errors.Is(err, persist.ErrNotFound) {
				t.Errorf("Abandon in another account: %v, want ErrNotFound", err)
			}
		}
	})
}

// TestOtherAccountsAreNotSeen, even by their full names.
func TestOtherAccountsAreNotSeen(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		theirs, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Account = "theirs" }))
		_, _ = theirs.DoKey(clienttest.Post(t, "{}"), "k")
		mine, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Account = "mine" }))
		if _, err := mine.Lookup(t.Context(), "k", oncehttp.OfAccount("theirs")); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("Lookup: %v", err)
		}
		if err := mine.Abandon(t.Context(), "k", oncehttp.OfAccount("theirs")); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("Abandon: %v", err)
		}
	})
}

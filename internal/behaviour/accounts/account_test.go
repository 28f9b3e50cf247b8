package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// of gives a request the account of a customer.
func of(req *http.Request, customer string) *http.Request {
	return req.WithContext(oncehttp.ContextWithAccount(req.Context(), customer))
}

// TestAccountsOfContexts: under one key each account has an operation of its own, in which credentials may be renewed; Run, Unfinished
// and Lookup of the client reach all of them, with an account that one only, and Authorize is told which it is.
func TestAccountsOfContexts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "shop"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
				var mu sync.Mutex
				var asked []string
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
					cfg.Account = name
					cfg.Authorize = func(req *http.Request) error {
						account, named := oncehttp.AccountFromContext(req.Context())
						mu.Lock()
						defer mu.Unlock()
						asked = append(asked, fmt.Sprint(account, " ", named))
						req.Header.Set("Authorization", "Bearer "+account)
						return nil
					}
				}))
				for i, who := range []string{"alice", "bob", "a|b=c", "alice"} {
					req := of(clienttest.Post(t, "{}"), who)
					req.Header.Set("X-Api-Key", fmt.Sprint(i)) // renewed each time
					if _, err := c.DoKey(req, "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrAccount) {
						t.Errorf("%s: %v", who, err)
					}
				}
				if n := journaltest.Count(t, j); n != 3 || w.Count() != 4 {
					t.Errorf("%d records after %d sends, want 3 and 4", n, w.Count())
				}
				_, err := c.Lookup(t.Context(), "k")
				if !errors.Is(err, oncehttp.ErrConfig) {
					t.Errorf("Lookup of all accounts: %v", err)
				}
				alice := oncehttp.ContextWithAccount(t.Context(), "alice")
				if rec, err := c.Lookup(alice, "k"); err != nil || rec.Account != persist.Account(name, [2]string{"", "alice"}) {
					t.Errorf("Lookup: %q, %v", rec.Account, err)
				}
				for ctx, want := range map[context.Context]int{t.Context(): 3, alice: 1, oncehttp.ContextWithAccount(t.Context(), "al"): 0} {
					n := 0
					for _, err := range c.Unfinished(ctx) {
						if n++; err != nil {
							t.Error(err)
						}
					}
					if n != want {
						t.Errorf("%d unfinished, want %d", n, want)
					}
				}
				time.Sleep(time.Hour)
				w.Replies = []wiretest.Reply{{Status: 201}}
				sent := w.Count()
				for res, err := range c.Resume(alice) {
					if err != nil || res.Key != "k" {
						t.Errorf("Resume of one account: %+v, %v", res, err)
					}
				}
				if w.Count() != sent+1 || w.All()[sent].Header.Get("Authorization") != "Bearer alice" {
					t.Errorf("Resume of one account: %d sends", w.Count()-sent)
				}
				for _, err := range c.Resume(oncehttp.ContextWithAccount(t.Context(), "nobody")) {
					t.Errorf("Resume of an account without operations: %v", err)
				}
				n := 0
				asked = nil
				for _, err := range c.Resume(t.Context()) {
					if n++; err != nil {
						t.Error(err)
					}
				}
				slices.Sort(asked)
				if want := []string{"a|b=c true", "bob true"}; n != 2 || !slices.Equal(asked, want) {
					t.Errorf("resumed %d; Authorize was told of %q, want %q", n, asked, want)
				}
			})
		})
	}
}

// TestRunReachesAccounts: Run sends what is enqueued in any account inside the client's.
func TestRunReachesAccounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Account = "shop" })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		for _, who := range []string{"alice", "bob"} {
			if err := c.Enqueue(of(clienttest.Post(t, "{}"), who), "k"); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
		if w.Count() != 2 {
			t.Errorf("%d sends", w.Count())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestEmptyAccount: an account that a lookup did not find must not become that of everybody.
func TestEmptyAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, nil)
		_, err := c.DoKey(of(clienttest.Post(t, "{}"), ""), "k")
		for _, err := range []error{err, c.Enqueue(of(clienttest.Post(t, "{}"), ""), "k"), c.Assign(oncehttp.ContextWithAccount(t.Context(), ""), "k")} {
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) || w.Count() != 0 {
				t.Errorf("%v after %d sends", err, w.Count())
			}
		}
		ctx := oncehttp.ContextWithAccount(t.Context(), "")
		_, lookup := c.Lookup(ctx, "k")
		errs := []error{lookup, c.Run(ctx)}
		for _, err := range c.Unfinished(ctx) {
			errs = append(errs, err)
		}
		for _, err := range c.Resume(ctx) {
			errs = append(errs, err)
		}
		for i, err := range errs {
			if !errors.Is(err, oncehttp.ErrConfig) || len(errs) != 4 {
				t.Errorf("%d of %d: %v", i, len(errs), err)
			}
		}
	})
}

// naming are the ways to name an account: first by whom something is begun under none, then by whom with one.
var naming = map[string]struct {
	before, after string // Config.Account
	scope         string // ContextWithAccount
}{
	"Config.Account":             {"", "acme", ""},
	"ContextWithAccount":         {"", "", "bob"},
	"inside Config.Account":      {"acme", "acme", "bob"},
	"both, and none before":      {"", "acme", "bob"},
	"names that need an escape":  {"", "a|b", "c=d|e"},
	"inside one that is escaped": {"a b", "a b", "é"},
}

// TestNothingIsBegunBesideNone: while an operation stands under no account, a call of the same key that names one begins nothing,
// whatever became of the operation and whatever it asks for; nor does one without a key while it is unresolved. Once it is assigned
// the call goes on with it: one effect.
func TestNothingIsBegunBesideNone(t *testing.T) {
	t.Parallel()
	for name, names := range naming {
		for state, r := range tenantStates {
			t.Run(name+" "+state, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{r.reply, {Status: 201, Body: "again"}}}
					client := func(account string) *oncehttp.Client {
						c, _ := clienttest.New(t, w, clienttest.On(j, forTenants, func(cfg *oncehttp.Config) { cfg.Account = account }))
						return c
					}
					request := func(body string) *http.Request {
						req := clienttest.Post(t, body)
						if names.scope != "" {
							req = of(req, names.scope)
						}
						req.Header.Set("Authorization", "Bearer renewed") // whatever its credentials
						return req
					}
					before, after := client(names.before), client(names.after)
					first := clienttest.Post(t, "{}")
					first.Header.Set("Authorization", "Bearer first")
					_, _ = before.DoKey(first, "k")
					if r.after != nil {
						r.after(t, before)
					}
					_, same := after.DoKey(request("{}"), "k")
					_, other := after.DoKey(request("{1}"), "k")
					large := request("{}")
					large.ContentLength = 1 << 40
					_, unread := after.DoKey(large, "k")
					_, prepared := after.Prepare(withoutCredentials(request("{}")), "k")
					references := map[string]bool{}
					for how, err := range map[string]error{
						"the same": same, "another": other, "too large": unread, "prepared": prepared,
						"enqueued": after.Enqueue(withoutCredentials(request("{}")), "k"),
					} {
						references[wantStranger(t, how, err)] = true
					}
					if w.Count() != 1 || journaltest.Count(t, j) != 1 || len(references) != 1 {
						t.Fatalf("%d sends, %d records, references %v", w.Count(), journaltest.Count(t, j), references)
					}
					ctx := t.Context()
					if names.scope != "" {
						ctx = oncehttp.ContextWithAccount(ctx, names.scope)
					}
					key := oncehttp.Key("k")
					for reference := range references {
						if state != "in doubt" {
							key = oncehttp.Key(reference)
						}
					}
					if err := after.Assign(ctx, key); err != nil {
						t.Fatal(err)
					}
					rec, err := after.Lookup(ctx, "k")
					var inside [][2]string
					if names.scope != "" {
						inside = [][2]string{{"", names.scope}}
					}
					if err != nil || rec.Account != persist.Account(names.after, inside...) {
						t.Errorf("assigned to %q, %v", rec.Account, err)
					}
					_, err = after.DoKey(request("{}"), "k")
					if errors.Is(err, oncehttp.ErrAccount) || journaltest.Count(t, j) != 1 || w.Count() > 2 || (w.Count() == 2) != (state == "in doubt") {
						t.Errorf("assigned: %v after %d sends", err, w.Count())
					}
					if err := after.Assign(ctx, "k"); !errors.Is(err, persist.ErrNotFound) {
						t.Errorf("assigned again: %v", err)
					}
				})
			})
		}
	}
}

func withoutCredentials(req *http.Request) *http.Request {
	req.Header.Del("Authorization")
	return req
}

// TestNoKeyBesideNone: what is unresolved, or unreported, under no account keeps the same request without a key from being sent for one.
func TestNoKeyBesideNone(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"in doubt", "unreported", "unreadable"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
				_, _ = c.Do(clienttest.Post(t, "{}"))
				if state == "unreported" {
					time.Sleep(time.Minute)
					clienttest.Resume(t, c)
				}
				sent, key := w.Count(), oncehttp.Key(w.All()[0].Key)
				req := of(clienttest.Post(t, "{}"), "bob")
				if state == "unreadable" {
					req.ContentLength = 1 << 40
				}
				_, err := c.Do(req)
				reference := wantStranger(t, "without a key", err)
				if w.Count() != sent || strings.Contains(err.Error(), string(key)) {
					t.Errorf("%v after %d sends", err, w.Count())
				}
				alice := oncehttp.ContextWithAccount(t.Context(), "alice")
				if err := c.Assign(alice, oncehttp.Key(reference)); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Do(of(clienttest.Post(t, "{}"), "bob")); err != nil || w.Count() != sent+1 {
					t.Errorf("Bob, once it is Alice's: %v after %d sends", err, w.Count())
				}
				_, err = c.Do(of(clienttest.Post(t, "{}"), "alice"))
				var e *oncehttp.Error
				if !errors.As(err, &e) || e.Key != key || w.Count() != sent+1 {
					t.Errorf("Alice, once it is hers: %v after %d sends", err, w.Count())
				}
			})
		})
	}
}

// TestAssignToOneOfTwo: what is assigned to Alice is hers; Bob has the key for himself then.
func TestAssignToOneOfTwo(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Body: "alice's"}, {Status: 201, Body: "bob's"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		if err := c.Assign(oncehttp.ContextWithAccount(t.Context(), "alice"), "k"); err != nil {
			t.Fatal(err)
		}
		for _, who := range []string{"alice", "bob", "alice", "bob"} {
			resp, err := c.DoKey(of(clienttest.Post(t, "{}"), who), "k")
			if err != nil || clienttest.Read(t, resp) != who+"'s" {
				t.Errorf("%s: %v", who, err)
			}
		}
		if w.Count() != 3 || journaltest.Count(t, j) != 2 {
			t.Errorf("%d sends, %d records", w.Count(), journaltest.Count(t, j))
		}
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k2")
		if _, err := c.DoKey(of(clienttest.Post(t, "{}"), "alice"), "k2"); !errors.Is(err, oncehttp.ErrAccount) {
			t.Fatal(err)
		}
		if err := c.Assign(oncehttp.ContextWithAccount(t.Context(), "bob"), "k"); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("nothing is left under none: %v", err)
		}
	})
}

// TestAssignRefuses: nothing is assigned where it is run, to no account, to one that has the key, and where several are meant.
func TestAssignRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }))
		alice := oncehttp.ContextWithAccount(t.Context(), "alice")
		if err := c.Assign(t.Context(), "k"); !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("to no account: %v", err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			done <- err
		}()
		time.Sleep(100 * time.Millisecond)
		if err := c.Assign(alice, "k"); !errors.Is(err, oncehttp.ErrInFlight) {
			t.Errorf("while it runs: %v", err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		theirs, err := j.Get(t.Context(), persist.ID{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		theirs.Account, theirs.State, theirs.Effect, theirs.Answer, theirs.Finished = "|alice", persist.StatePending, "", nil, time.Time{}
		if _, _, err := j.Begin(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		if err := c.Assign(alice, "k"); !errors.Is(err, oncehttp.ErrKeyReused) {
			t.Errorf("to an account that has the key: %v", err)
		}
		for _, account := range []string{"", "acct_1"} {
			req := clienttest.Post(t, "{}")
			if account != "" {
				req.Header.Set("Stripe-Account", account)
			}
			if _, err := c.DoKey(req, "two"); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Assign(alice, "two"); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "acct_1") {
			t.Errorf("two of one key: %v", err)
		}
		if err := c.Assign(alice, "two", oncehttp.OfAccount("")); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "assign those first") {
			t.Errorf("the first of two of one key: %v", err)
		}
		if err := c.Assign(alice, "two", oncehttp.OfAccount("|Stripe-Account=acct_1")); err != nil {
			t.Error(err)
		}
		if rec, err := c.Lookup(alice, "two"); err != nil || rec.ScopedAccount() != "|alice|Stripe-Account=acct_1" || rec.Account == "|alice" {
			t.Errorf("the header's scope: %q, %v", rec.Account, err)
		}
		if err := c.Assign(alice, "two"); err != nil { // the first, once nothing stands beside it
			t.Error(err)
		}
	})
}

// TestRunSaysWhatStandsUnderNone: a Run for one account tells of the unfinished operations that it does not send.
func TestRunSaysWhatStandsUnderNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, w := memory.New(), &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		first, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), clienttest.OneAttempt))
		_, _ = first.DoKey(clienttest.Post(t, "{}"), "k")
		var log clienttest.Log
		var told []oncehttp.Event
		second, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), func(cfg *oncehttp.Config) {
			cfg.Account, cfg.Logger = "acme", log.Logger()
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventBlocked {
					told = append(told, e)
				}
			}
		}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- second.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(told) != 1 || !errors.Is(told[0].Err, oncehttp.ErrAccount) || !log.Has("acme") || !log.Has("no account") || w.Count() != 1 {
			t.Errorf("told %v after %d sends: %s", told, w.Count(), log.String())
		}
		if err := second.Assign(ctx, "k"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(told) != 1 || w.Count() != 2 {
			t.Errorf("once it was assigned: %d sends, told %v", w.Count(), told)
		}
		cancel()
		<-done
	})
}

package accounts_test

import (
	"errors"
	"net/http"
	"strings"
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

// TestAccountsShareNothing: on one journal, under one key, with the same bytes,
// also where one account's name is made to look like another's scope.
func TestAccountsShareNothing(t *testing.T) {
	t.Parallel()
	names := []string{"a", "ab", "a|Stripe-Account=x", "a|", "a%7C", "A", "a ", "é", ""} // what stands under none is in the way of all
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		wires, clients := map[string]*wiretest.Wire{}, map[string]*oncehttp.Client{}
		for _, name := range names {
			wires[name] = &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
			clients[name], _ = clienttest.New(t, wires[name], clienttest.On(j, func(cfg *oncehttp.Config) {
				cfg.Account, cfg.Profile, cfg.Retry.MaxAttempts = name, profile.StripeV1(), 1
			}))
			if _, err := clients[name].DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Fatal(err)
			}
			if _, err := clients[name].Do(clienttest.Post(t, "{}")); err == nil || wires[name].Count() != 2 {
				t.Errorf("account %q: another account's operation is in the way: %v", name, err)
			}
		}
		time.Sleep(time.Hour)
		for _, name := range names {
			n := 0
			for rec, err := range clients[name].Unfinished(t.Context()) {
				if n++; err != nil || rec.Account != persist.Account(name) {
					t.Errorf("account %q sees one of %q (%v)", name, rec.Account, err)
				}
			}
			before := map[string]int{}
			for other, w := range wires {
				before[other] = w.Count()
			}
			clienttest.Resume(t, clients[name])
			for other, w := range wires {
				if more := w.Count() - before[other]; n != 2 || (more > 0) != (other == name) || more > 2 {
					t.Errorf("a pass of %q, with %d pending, made %d sends for %q", name, n, more, other)
				}
			}
		}
		if err := clients["a"].Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
			t.Error(err)
		}
		if err := clients["ab"].Abandon(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		for _, name := range names {
			want := map[string]persist.State{"a": persist.StateSettled, "ab": persist.StateAbandoned}[name]
			if rec := clienttest.Lookup(t, clients[name], "k"); rec.State != want {
				t.Errorf("account %q is %v, want %v", name, rec.State, want)
			}
		}
	})
}

// TestScopedAccounts: a header that says whose keys these are parts them.
func TestScopedAccounts(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Profile, cfg.Retry.MaxAttempts = profile.StripeV1(), 1 }))
		do := func(account string) error {
			req := clienttest.Post(t, "{}")
			if account != "" {
				req.Header.Set("Stripe-Account", account)
			}
			_, err := c.DoKey(req, "k")
			return err
		}
		for i, account := range []string{"acct_1", "acct_2"} {
			if err := do(account); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != i+1 {
				t.Errorf("%s: %v, %d sends", account, err, w.Count())
			}
			if i == 0 { // the only one there is
				if rec := clienttest.Lookup(t, c, "k"); !strings.Contains(rec.ScopedAccount(), account) {
					t.Errorf("found %q", rec.ScopedAccount())
				}
			}
		}
		// Which is meant? An error, and nothing settled, also where one has no scope.
		for _, account := range []string{"acct_2", ""} {
			_ = do(account)
			_, lookupErr := c.Lookup(t.Context(), "k")
			settleErr := clienttest.AbsentAsSeen(c, t.Context(), "k")
			for _, err := range []error{lookupErr, settleErr, c.Abandon(t.Context(), "k")} {
				if !errors.Is(err, oncehttp.ErrConfig) {
					t.Errorf("with %q too: %v, want ErrConfig", account, err)
				}
			}
		}
		n := 0
		for rec := range c.Unfinished(t.Context()) {
			if n++; rec.State != persist.StatePending {
				t.Errorf("%q is %v", rec.Account, rec.State)
			}
		}
		if n != 3 {
			t.Errorf("%d pending, want all three", n)
		}
		for _, account := range []string{"acct_1", "acct_2", ""} { // an unresolved one of one is none of another
			sends := w.Count()
			req := clienttest.Post(t, "{}")
			if account != "" {
				req.Header.Set("Stripe-Account", account)
			}
			if _, err := c.Do(req); w.Count() != sends+1 {
				t.Errorf("without a key, for %q: %v", account, err)
			}
		}
	})
}

// TestFingerprint is what a key names, part by part, in Do and in Enqueue.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(*http.Request) {
		return func(req *http.Request) { req.Header.Set(name, value) }
	}
	to := func(url string) func(*http.Request) {
		return func(req *http.Request) {
			next, _ := http.NewRequest("POST", url, http.NoBody)
			req.URL, req.Host = next.URL, next.Host
		}
	}
	const base = "https://api.example.com/payments?via=test"
	for name, r := range map[string]struct {
		change func(*http.Request)
		same   bool
	}{
		"nothing":             {func(*http.Request) {}, true},
		"a header":            {set("X-Trace", "other"), true},
		"credentials":         {set("Authorization", "Bearer other"), true},
		"userinfo":            {to("https://user:pw@api.example.com/payments?via=test"), true},
		"a fragment":          {to(base + "#part"), true},
		"the default port":    {to("https://api.example.com:443/payments?via=test"), true},
		"the host's case":     {to("https://API.Example.com/payments?via=test"), true},
		"the scheme's case":   {to("HTTPS://api.example.com/payments?via=test"), true},
		"another scheme":      {to("http://api.example.com/payments?via=test"), false},
		"another host":        {to("https://sandbox.example.com/payments?via=test"), false},
		"another port":        {to("https://api.example.com:8443/payments?via=test"), false},
		"another path":        {to("https://api.example.com/v2/payments?via=test"), false},
		"the path's case":     {to("https://api.example.com/Payments?via=test"), false},
		"another query":       {to("https://api.example.com/payments?via=live"), false},
		"no query":            {to("https://api.example.com/payments"), false},
		"another method":      {func(req *http.Request) { req.Method = "PATCH" }, false},
		"another Host":        {func(req *http.Request) { req.Host = "other.example.com" }, false},
		"a content type":      {set("Content-Type", "application/x-www-form-urlencoded"), false},
		"a header of the API": {set("Stripe-Version", "2026-01-01"), false},
		"another body":        {func(req *http.Request) { req.Body, req.ContentLength = http.NoBody, 0 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Profile, cfg.Authorize = profile.StripeV1(), func(*http.Request) error { return nil }
				})
				if _, err := c.DoKey(clienttest.Request(t, "POST", base, "{}"), "k"); err != nil {
					t.Fatal(err)
				}
				changed := func() *http.Request {
					req := clienttest.Request(t, "POST", base, "{}")
					r.change(req)
					return req
				}
				_, err := c.DoKey(changed(), "k")
				for _, err := range []error{err, c.Enqueue(changed(), "k")} {
					if r.same != (err == nil) || w.Count() != 1 {
						t.Errorf("%v after %d sends, want it to be the same: %v", err, w.Count(), r.same)
					}
					if !r.same {
						clienttest.Refused(t, err, persist.StateConfirmed, []error{oncehttp.ErrKeyReused, oncehttp.ErrFinal})
					}
				}
			})
		})
	}
}

// TestRecordedProfileDrives: a standing operation goes by the profile that it was
// begun under; where this client does not know that, nothing is sent.
func TestRecordedProfileDrives(t *testing.T) {
	t.Parallel()
	mine := func(version, header string) *profile.Profile {
		p := profile.Draft07()
		p.Name, p.Version, p.Carrier.Name = "mine", version, header
		return p
	}
	old := mine("1", "Idempotency-Key")
	for name, r := range map[string]struct {
		next  *oncehttp.Config
		known bool
	}{
		"the same":                {&oncehttp.Config{Profile: old}, true},
		"another, the old beside": {&oncehttp.Config{Profile: profile.StripeV1(), ProfileByHost: map[string]*profile.Profile{"old.example.com": old}}, true},
		"another version":         {&oncehttp.Config{Profile: mine("2", "X-Idempotency-Key")}, false},
		"another name":            {&oncehttp.Config{Profile: profile.StripeV1()}, false},
	} {
		for _, how := range []string{"Do", "Resume"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := memory.New()
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
					c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Profile, cfg.Retry.MaxAttempts = old, 1 }))
					_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
					time.Sleep(time.Minute)
					next, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { *cfg = *r.next; cfg.Journal, cfg.Transport = j, w })
					var err error
					if how == "Do" {
						_, err = next.DoKey(clienttest.Post(t, "{}"), "k")
					} else {
						err = clienttest.Resume(t, next)["k"].Err
					}
					if !r.known {
						clienttest.Refused(t, err, persist.StatePending, []error{oncehttp.ErrOutcomeUnknown, oncehttp.ErrConfig})
						if rec := clienttest.Lookup(t, next, "k"); rec.LeaseOwner != "" {
							t.Errorf("leased by %q", rec.LeaseOwner)
						}
					} else if err != nil || w.Count() != 2 || w.Sends[1].Key != "k" {
						t.Errorf("%v, sends %+v", err, w.Sends)
					}
					if !r.known && w.Count() != 1 {
						t.Errorf("%d sends", w.Count())
					}
					if rec := clienttest.Lookup(t, next, "k"); rec.Profile != "mine" || rec.ProfileVersion != "1" {
						t.Errorf("recorded profile %q %q", rec.Profile, rec.ProfileVersion)
					}
				})
			})
		}
	}
}

// TestRecordedRecipe: what a key names is compared as it was recorded, so that a
// profile that looks at more, or less, does not part an operation from itself.
func TestRecordedRecipe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		plain, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Profile = profile.Draft07() }))
		stripe, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }))
		versioned := func(version string) *http.Request {
			req := clienttest.Post(t, "{}")
			req.Header.Set("Stripe-Version", version)
			return req
		}
		if _, err := plain.DoKey(versioned("1"), "plain"); err != nil {
			t.Fatal(err)
		}
		if _, err := stripe.DoKey(versioned("1"), "stripe"); err != nil {
			t.Fatal(err)
		}
		for _, r := range []struct {
			c       *oncehttp.Client
			key     oncehttp.Key
			version string
			want    error
		}{
			{stripe, "plain", "1", nil}, {stripe, "plain", "2", oncehttp.ErrConfig}, // begun where the version did not count: it cannot be told
			{plain, "stripe", "1", nil}, {plain, "stripe", "2", oncehttp.ErrKeyReused}, // begun where it did
		} {
			_, err := r.c.DoKey(versioned(r.version), r.key)
			if !errors.Is(err, r.want) || w.Count() != 2 {
				t.Errorf("%s with version %s: %v", r.key, r.version, err)
			}
		}
		rec := clienttest.Lookup(t, plain, "plain")
		rec.Key, rec.Seq, rec.Revision, rec.State, rec.Finished = "future", 0, 0, persist.StatePending, time.Time{}
		rec.Recipe, rec.Answer, rec.Effect = "v9 everything", nil, ""
		if _, _, err := j.Begin(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		_, err := plain.DoKey(versioned("1"), "future")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("a recipe of a later version: %v, want it refused", err)
		}
		if err := clienttest.Resume(t, plain)["future"].Err; !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 2 {
			t.Errorf("a recipe of a later version: %v, %d sends", err, w.Count())
		}
	})
}

// TestDamagedRecord: bytes that are not those that were hashed are never sent.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*persist.Record){
		"body":   func(rec *persist.Record) { rec.Body = []byte(`{"amount":100000}`) },
		"target": func(rec *persist.Record) { rec.Target = "/refunds" },
		"origin": func(rec *persist.Record) { rec.Origin = "https://evil.example:443" },
		"method": func(rec *persist.Record) { rec.Method = "DELETE" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, j := clienttest.New(t, w, nil)
				rec, err := c.Prepare(clienttest.Post(t, "{}"), "k")
				if err != nil {
					t.Fatal(err)
				}
				damage(&rec)
				if _, _, err := j.Begin(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				_, err = c.DoKey(clienttest.Post(t, "{}"), "k")
				for _, err := range []error{clienttest.Resume(t, c)["k"].Err, err} {
					if clienttest.ExactlyOne(t, err); !errors.Is(err, persist.ErrCorrupt) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 0 {
						t.Errorf("%v after %d sends", err, w.Count())
					}
				}
			})
		})
	}
}

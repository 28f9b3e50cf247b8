package accounts_test

import (
	"errors"
	"fmt"
	"net/http"
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
)

// tenant puts credentials on a request: those of a customer, in what they are for the n-th time.
type tenant func(req *http.Request, customer string, n int)

// tenants are the ways in which customers tell who they are. What a server, or a signature, renews by itself is another each time.
var tenants = map[string]tenant{
	"a bearer token": func(req *http.Request, who string, _ int) { req.Header.Set("Authorization", "Bearer "+who) },
	"a bare token":   func(req *http.Request, who string, _ int) { req.Header.Set("Authorization", "sk_"+who) },
	"basic":          func(req *http.Request, who string, _ int) { req.SetBasicAuth("api", who) },
	"an API key":     func(req *http.Request, who string, _ int) { req.Header["x-api-key"] = []string{who} },
	"a parameter":    func(req *http.Request, who string, _ int) { req.URL.RawQuery += "&access_token=" + who },
	"a header of its own": func(req *http.Request, who string, n int) {
		req.Header.Set("X-Customer", who)
		req.Header.Set("X-Signature", fmt.Sprint(n))
	},
	"SigV4": func(req *http.Request, who string, n int) {
		req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/2026%04d/eu/pay/aws4_request, SignedHeaders=host, Signature=%d", who, n, n))
		req.Header.Set("X-Amz-Date", fmt.Sprint(n))
	},
	"SigV4 in the query": func(req *http.Request, who string, n int) {
		req.URL.RawQuery += fmt.Sprintf("&X-Amz-Credential=%s%%2F2026%04d%%2Feu&X-Amz-Signature=%d", who, n, n)
	},
	"OAuth 1": func(req *http.Request, who string, n int) {
		req.Header.Set("Authorization", fmt.Sprintf(`OAuth oauth_consumer_key="shop", oauth_token="%s", oauth_nonce="%d", oauth_timestamp="%d", oauth_signature="%d"`, who, n, n, n))
	},
	"Digest": func(req *http.Request, who string, n int) {
		req.Header.Set("Authorization", fmt.Sprintf(`Digest username="%s", realm="pay", nonce="%d", nc=%08d, response="%d"`, who, n, n, n))
	},
	"a signature's key": func(req *http.Request, who string, n int) {
		req.Header.Set("Signature-Input", fmt.Sprintf(`sig1=("@method");created=%d;keyid="%s"`, n, who))
		req.Header.Set("Signature", fmt.Sprintf("sig1=:%d:", n))
	},
	"draft-cavage": func(req *http.Request, who string, n int) {
		req.Header.Set("Authorization", fmt.Sprintf(`Signature keyId="%s",algorithm="hmac-sha256",signature="%d"`, who, n))
	},
	"DPoP": func(req *http.Request, who string, n int) {
		req.Header.Set("Authorization", "DPoP "+who)
		req.Header.Set("DPoP", fmt.Sprintf("proof-%d", n))
	},
	"a shared key": func(req *http.Request, who string, n int) {
		req.Header.Set("Authorization", fmt.Sprintf("SharedKey %s:%d", who, n))
	},
	"a cookie jar": func(req *http.Request, who string, n int) {
		req.Header.Set("Cookie", fmt.Sprintf("session=%s; AWSALB=%d; csrftoken=%d; theme=%d", who, n, n, n))
	},
	"a cookie of its own": func(req *http.Request, who string, n int) {
		req.Header.Set("Cookie", fmt.Sprintf("u=%s; __cf_bm=%d; _ga=%d", who, n, n))
	},
	"an assertion beside": func(req *http.Request, who string, n int) {
		req.Header.Set("X-Client-Assertion", fmt.Sprint(n))
		req.Header.Set("X-CSRF-Token", fmt.Sprint(n))
		req.Header.Set("Authorization", "Bearer "+who)
	},
}

// tenantStates are what may have become of an operation.
var tenantStates = map[string]struct {
	reply wiretest.Reply
	after func(*testing.T, *oncehttp.Client)
}{
	"in doubt":  {wiretest.Reply{Err: wiretest.ErrLost}, nil},
	"confirmed": {wiretest.Reply{Status: 201, Body: "alice's"}, nil},
	"refused":   {wiretest.Reply{Status: 402, Body: "alice's"}, nil},
	"swept": {wiretest.Reply{Status: 201}, func(t *testing.T, c *oncehttp.Client) {
		time.Sleep(2 * time.Hour)
		if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}},
	"settled as absent": {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) {
		if err := clienttest.AbsentAsSeen(c, t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}},
	"settled as happened": {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) {
		if err := c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
			t.Fatal(err)
		}
	}},
	"abandoned": {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) {
		if err := c.Abandon(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}},
}

// forTenants sets what tests of tenants need.
func forTenants(cfg *oncehttp.Config) {
	cfg.Retry.MaxAttempts, cfg.KeepAnswer = 1, time.Hour
	cfg.SecretHeaders = []string{"X-Customer"}
}

// wantStranger checks that an error tells nothing of an operation that may be another's, and how to go on.
func wantStranger(t *testing.T, how string, err error) (reference string) {
	t.Helper()
	clienttest.ExactlyOne(t, err)
	var e *oncehttp.Error
	if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrAccount) {
		t.Fatalf("%s: %v, want ErrAccount with ErrOutcomeUnknown", how, err)
	}
	if e.Key != "" || e.State != 0 || e.Answer != nil || e.Effect() != oncehttp.EffectUnknown || e.Attempts+e.Sends != 0 || !e.NextAttempt.IsZero() {
		t.Errorf("%s: %+v tells something", how, e)
	}
	if e.Reference == "" || !strings.Contains(err.Error(), "account") || strings.Contains(err.Error(), `"k"`) || strings.Contains(err.Error(), "alice") {
		t.Errorf("%s: %v", how, err)
	}
	return e.Reference
}

// TestTenantsLearnNothingOfEachOther: whatever became of Alice's operation, Bob's request of the same key, with the same bytes or
// others, gets neither her answer nor her state, sends nothing, and cannot say "no effect"; Alice's own, signed anew, goes on.
func TestTenantsLearnNothingOfEachOther(t *testing.T) {
	t.Parallel()
	for kind, sign := range tenants {
		for state, r := range tenantStates {
			t.Run(kind+" "+state, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := memory.New()
					w := &wiretest.Wire{Replies: []wiretest.Reply{r.reply, {Status: 201, Body: "again"}}}
					c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), forTenants))
					signed := func(who, body string, n int) *http.Request {
						req := clienttest.Post(t, body)
						sign(req, who, n)
						return req
					}
					_, _ = c.DoKey(signed("alice", "{}", 1), "k")
					if r.after != nil {
						r.after(t, c)
					}
					next, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), forTenants)) // another life
					for _, c := range []*oncehttp.Client{c, next} {
						_, same := c.DoKey(signed("bob", "{}", 2), "k")
						wantStranger(t, "the same bytes", same)
						_, other := c.DoKey(signed("bob", "{1}", 3), "k")
						wantStranger(t, "other bytes", other)
						large := signed("bob", "{}", 4)
						large.ContentLength = 1 << 40
						_, unread := c.DoKey(large, "k")
						wantStranger(t, "too large", unread)
						carried := signed("bob", "{}", 5)
						carried.Header.Set("Idempotency-Key", "k")
						if _, err := c.StandardClient().Do(carried); err == nil || !errors.Is(err, oncehttp.ErrAccount) {
							t.Errorf("StandardClient: %v", err)
						}
					}
					if w.Count() != 1 {
						t.Fatalf("%d sends after Bob's calls", w.Count())
					}
					_, err := next.DoKey(signed("alice", "{}", 6), "k")
					if errors.Is(err, oncehttp.ErrAccount) || w.Count() > 2 || (state == "confirmed" || state == "refused" || state == "in doubt") && err != nil {
						t.Errorf("Alice's own call: %v after %d sends", err, w.Count())
					}
				})
			})
		}
	}
}

// TestTenantsInFlight: Bob does not join Alice's call, and Alice's second one does.
func TestTenantsInFlight(t *testing.T) {
	t.Parallel()
	for kind, sign := range tenants {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "alice's", Delay: time.Second}}}
				c, _ := clienttest.New(t, w, forTenants)
				do := func(who string, n int) (string, error) {
					req := clienttest.Post(t, "{}")
					sign(req, who, n)
					resp, err := c.DoKey(req, "k")
					if err != nil {
						return "", err
					}
					return clienttest.Read(t, resp), nil
				}
				var wg sync.WaitGroup
				for n := range 2 {
					wg.Go(func() {
						if body, err := do("alice", n); err != nil || body != "alice's" {
							t.Errorf("Alice: %q, %v", body, err)
						}
					})
				}
				time.Sleep(100 * time.Millisecond)
				_, err := do("bob", 7)
				wantStranger(t, "in flight", err)
				wg.Wait()
				if w.Count() != 1 {
					t.Errorf("%d sends", w.Count())
				}
			})
		})
	}
}

// TestTenantsWithoutKeys: Alice's operation under a generated key, in doubt or unreported, keeps Bob's identical request from being
// sent, and he does not learn her key; her own request does. What cannot be compared is refused, too.
func TestTenantsWithoutKeys(t *testing.T) {
	t.Parallel()
	alice := func(req *http.Request, n int) { tenants["SigV4"](req, "alice", n) }
	for name, r := range map[string]struct {
		first, second func(*http.Request, int)
		strange       bool
	}{
		"the same":            {alice, alice, false},
		"another":             {alice, func(req *http.Request, n int) { tenants["SigV4"](req, "bob", n) }, true},
		"none, then some":     {func(*http.Request, int) {}, alice, true},
		"some, then none":     {alice, func(*http.Request, int) {}, true},
		"none":                {func(*http.Request, int) {}, func(*http.Request, int) {}, false},
		"no name in common":   {alice, func(req *http.Request, n int) { tenants["an API key"](req, "alice", n) }, true},
		"a signature only":    {func(req *http.Request, n int) { req.Header.Set("X-Signature", fmt.Sprint(n)) }, func(req *http.Request, n int) { req.Header.Set("X-Signature", fmt.Sprint(n)) }, false},
		"a token more":        {alice, func(req *http.Request, n int) { alice(req, n); req.Header.Set("X-Api-Key", "new") }, false},
		"one of two, another": {func(req *http.Request, n int) { alice(req, n); req.Header.Set("X-Api-Key", "a") }, func(req *http.Request, n int) { alice(req, n); req.Header.Set("X-Api-Key", "b") }, true},
	} {
		for _, state := range []string{"in doubt", "unreported", "unreadable"} {
			t.Run(name+" "+state, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						forTenants(cfg)
						cfg.Authorize = func(*http.Request) error { return nil }
					})
					req := clienttest.Post(t, "{}")
					r.first(req, 1)
					_, _ = c.Do(req)
					key := oncehttp.Key(w.Sends[0].Key)
					if state == "unreported" {
						time.Sleep(time.Minute)
						if res := clienttest.Resume(t, c); res[key].Err != nil {
							t.Fatal(res)
						}
					}
					sent := w.Count()
					req = clienttest.Post(t, "{}")
					r.second(req, 2)
					if state == "unreadable" {
						req.ContentLength = 1 << 40
					}
					_, err := c.Do(req)
					if w.Count() != sent {
						t.Fatalf("sent: %v", err)
					}
					if r.strange {
						wantStranger(t, "without a key", err)
						if strings.Contains(err.Error(), string(key)) {
							t.Errorf("%v tells the key", err)
						}
						req = clienttest.Post(t, "{}")
						r.second(req, 3)
						_, err := c.DoKey(req, key) // who has guessed it
						wantStranger(t, "under a generated key", err)
						return
					}
					var e *oncehttp.Error
					if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || e.Key != key || errors.Is(err, oncehttp.ErrAccount) {
						t.Errorf("%v, want it to name %q", err, key)
					}
				})
			})
		}
	}
}

// TestTenantsOfOneHaveAndOneHasNot: under a key that the caller chose, credentials that cannot be compared are as none.
func TestTenantsOfOneHaveAndOneHasNot(t *testing.T) {
	t.Parallel()
	none := func(*http.Request) {}
	some := func(req *http.Request) { req.Header.Set("Authorization", "Bearer alice") }
	other := func(req *http.Request) { req.Header.Set("X-Api-Key", "alice") }
	for name, two := range map[string][2]func(*http.Request){
		"none, some": {none, some}, "some, none": {some, none}, "no name in common": {some, other}, "none": {none, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "once"}}}
				c, _ := clienttest.New(t, w, nil)
				for i, sign := range two {
					req := clienttest.Post(t, "{}")
					sign(req)
					resp, err := c.DoKey(req, "k")
					if err != nil || clienttest.Read(t, resp) != "once" || w.Count() != 1 {
						t.Errorf("call %d: %v after %d sends", i, err, w.Count())
					}
				}
			})
		})
	}
}

// TestTenantsOfEnqueue: another customer's Enqueue of the same key is refused, her own is nil again.
func TestTenantsOfEnqueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(*http.Request) error { return nil }
		})
		enqueue := func(who string) error {
			req := clienttest.Post(t, "{}")
			tenants["a bearer token"](req, who, 1)
			return c.Enqueue(req, "k")
		}
		if err := enqueue("alice"); err != nil {
			t.Fatal(err)
		}
		wantStranger(t, "Enqueue", enqueue("bob"))
		if err := enqueue("alice"); err != nil {
			t.Error(err)
		}
	})
}

// TestWhatAuthorizeAddsIsNotCompared, nor what Resume sends: a client whose tokens Authorize renews goes on.
func TestWhatAuthorizeAddsIsNotCompared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Err: wiretest.ErrLost}, {Status: 201}}}
		n := 0
		c, j := clienttest.New(t, w, clienttest.On(memory.New(), clienttest.OneAttempt, func(cfg *oncehttp.Config) {
			cfg.Authorize = func(req *http.Request) error {
				n++
				req.Header.Set("Authorization", fmt.Sprintf("Bearer %d", n))
				return nil
			}
		}))
		for range 2 {
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); errors.Is(err, oncehttp.ErrAccount) {
				t.Error(err)
			}
		}
		time.Sleep(time.Hour)
		if res := clienttest.Resume(t, c); res["k"].Err != nil || w.Count() != 3 {
			t.Errorf("%+v after %d sends", res, w.Count())
		}
		if rec, err := j.Get(t.Context(), persist.ID{Key: "k"}); err != nil || rec.Credentials != nil {
			t.Errorf("%v, %v: a record of what Authorize added", rec.Credentials, err)
		}
	})
}

// TestSecretHeadersChangeOfTenants: a header that becomes a credential between two lives, or is none any more, still tells two
// customers apart, under keys that they chose.
func TestSecretHeadersChangeOfTenants(t *testing.T) {
	t.Parallel()
	for name, two := range map[string][2][]string{
		"one more": {nil, {"X-Customer"}}, "one fewer": {{"X-Customer"}, nil}, "the same": {{"X-Customer"}, {"x-customer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j, w := memory.New(), &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				do := func(life int, who string) error {
					c, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(j), func(cfg *oncehttp.Config) { cfg.SecretHeaders = two[life] }))
					req := clienttest.Post(t, "{}")
					req.Header.Set("X-Customer", who)
					_, err := c.DoKey(req, "k")
					return err
				}
				if err := do(0, "alice"); err != nil {
					t.Fatal(err)
				}
				wantStranger(t, "Bob", do(1, "bob"))
				if err := do(1, "alice"); err != nil || w.Count() != 1 {
					t.Errorf("Alice: %v after %d sends", err, w.Count())
				}
			})
		})
	}
}

// TestCredentialsAreKeyedDigests: the record names each credential with a digest under the journal's secret, and nothing of it.
func TestCredentialsAreKeyedDigests(t *testing.T) {
	t.Parallel()
	digests := func(j persist.Journal) []persist.Credential {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(j))
		req := clienttest.Post(t, "{}")
		req.Header.Set("Authorization", "Bearer "+clienttest.Canary)
		req.Header.Set("X-Signature", clienttest.Canary)
		if _, err := c.DoKey(req, "k"); err != nil {
			t.Fatal(err)
		}
		return clienttest.Lookup(t, c, "k").Credentials
	}
	a, b := digests(memory.New()), digests(memory.New())
	if len(a) != 1 || len(b) != 1 || a[0].Name != "Authorization" || a[0].Digest == b[0].Digest || strings.Contains(a[0].Digest, clienttest.Canary) {
		t.Errorf("%+v and in another journal %+v", a, b)
	}
	if got := persist.CompareOwners(a, b); got != persist.OwnersUnclear {
		t.Errorf("digests under two secrets are compared: %v", got)
	}
}

// TestSettleByReference: whoever has the journal settles, or abandons, by the reference that an error has.
func TestSettleByReference(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
		do := func(who string) error {
			req := clienttest.Post(t, "{}")
			tenants["a bearer token"](req, who, 1)
			_, err := c.DoKey(req, "k")
			return err
		}
		_ = do("alice")
		reference := oncehttp.Key(wantStranger(t, "Bob", do("bob")))
		if err := c.Settle(t.Context(), reference, oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
			t.Fatal(err)
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateSettled {
			t.Errorf("it is %v", rec.State)
		}
		if err := c.Abandon(t.Context(), reference[:len(reference)-1]+"x"); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("another reference: %v", err)
		}
	})
}

package accounts_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/profile"
)

// TestAuthorizeKeepsTheAccount: an operation of account A is never sent for B, also where the header that selects the account is
// a credential, which the record has only a digest of; on Do and on Resume.
func TestAuthorizeKeepsTheAccount(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(*http.Request) {
		return func(req *http.Request) { req.Header.Set(name, value) }
	}
	for name, r := range map[string]struct {
		secret []string // more credentials
		has    string   // the account of the caller's request
		sign   func(*http.Request)
		sent   bool
	}{
		"the same":                     {nil, "acct_a", set("Authorization", "Bearer x"), true},
		"another":                      {nil, "acct_a", set("Stripe-Account", "acct_b"), false},
		"none":                         {nil, "acct_a", func(req *http.Request) { req.Header.Del("Stripe-Account") }, false},
		"one where there was none":     {nil, "", set("Stripe-Account", "acct_b"), false},
		"a credential, the same":       {[]string{"stripe-account"}, "acct_a", set("Stripe-Account", "acct_a"), true},
		"a credential, another":        {[]string{"stripe-account"}, "acct_a", set("Stripe-Account", "acct_b"), false},
		"a credential, a second one":   {[]string{"stripe-account"}, "acct_a", func(req *http.Request) { req.Header["Stripe-Account"] = []string{"acct_a", "acct_b"} }, false},
		"a credential, none":           {[]string{"stripe-account"}, "acct_a", func(req *http.Request) { req.Header.Del("Stripe-Account") }, false},
		"a credential, where was none": {[]string{"stripe-account"}, "", set("Stripe-Account", "acct_b"), false},
		"a credential, its digest":     {[]string{"stripe-account"}, "acct_a", set("Stripe-Account", "sha256:"+"00"), false},
	} {
		for _, how := range []string{"Do", "Resume"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						cfg.Profile, cfg.SecretHeaders = profile.StripeV1(), r.secret
						cfg.Authorize = func(req *http.Request) error { r.sign(req); return nil }
					})
					req := clienttest.Post(t, "{}")
					if r.has != "" {
						req.Header.Set("Stripe-Account", r.has)
					}
					var err error
					if how == "Do" {
						_, err = c.DoKey(req, "k")
					} else {
						if err := c.Enqueue(req, "k"); err != nil {
							t.Fatal(err)
						}
						err = clienttest.Resume(t, c)["k"].Err
					}
					if (w.Count() > 0) != r.sent || (err == nil) != r.sent {
						t.Fatalf("%v after %d sends, want it sent: %v", err, w.Count(), r.sent)
					}
					if r.sent && w.Sends[0].Header.Get("Stripe-Account") != "acct_a" {
						t.Errorf("sent for %q", w.Sends[0].Header.Get("Stripe-Account"))
					}
					if !r.sent && !errors.Is(err, oncehttp.ErrNotSent) {
						t.Errorf("%v, want ErrNotSent", err)
					}
				})
			})
		}
	}
}

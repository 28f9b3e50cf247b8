package secrets_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// secretLives are two lives of a program, whose configurations of credentials differ.
var secretLives = map[string]struct{ first, second func(*oncehttp.Config) }{
	"a parameter more":        {func(*oncehttp.Config) {}, clienttest.SecretParameters("n")},
	"a parameter fewer":       {clienttest.SecretParameters("n"), func(*oncehttp.Config) {}},
	"another parameter":       {clienttest.SecretParameters("n"), clienttest.SecretParameters("via")},
	"a header more":           {func(*oncehttp.Config) {}, clienttest.SecretHeaders("X-Shop")},
	"a header fewer":          {clienttest.SecretHeaders("X-Shop", "X-None"), func(*oncehttp.Config) {}},
	"another header":          {clienttest.SecretHeaders("X-Shop"), clienttest.SecretHeaders("Content-Type")},
	"a header that counts":    {func(*oncehttp.Config) {}, clienttest.SecretHeaders("Stripe-Version")},
	"one that counts, fewer":  {clienttest.SecretHeaders("Stripe-Version"), func(*oncehttp.Config) {}},
	"the account":             {func(*oncehttp.Config) {}, clienttest.SecretHeaders("stripe-account")},
	"the account, no more":    {clienttest.SecretHeaders("Stripe-Account"), func(*oncehttp.Config) {}},
	"one that is kept":        {func(*oncehttp.Config) {}, func(cfg *oncehttp.Config) { cfg.KeepHeader = func(string) bool { return true } }},
	"everything":              {func(*oncehttp.Config) {}, clienttest.SecretHeaders("Stripe-Version", "Stripe-Account", "X-Shop", "Content-Type")},
	"the same":                {clienttest.SecretParameters("n"), clienttest.SecretParameters("N")},
	"the same in other order": {clienttest.SecretParameters("n", "via"), clienttest.SecretParameters("via", "n")},
}

// secretsRequest has everything that the configurations of secretLives name.
func secretsRequest(t *testing.T, body string) *http.Request {
	req := clienttest.Request(t, "POST", "https://api.example.com/p?via=test&n=1", body)
	req.Header.Set("Stripe-Account", "acct_1")
	req.Header.Set("Stripe-Version", "2026-01-01")
	req.Header.Set("X-Shop", "7")
	return req
}

// TestSecretsChangeBetweenLives: one more name of a credential, or one fewer, makes no other operation of an operation: whatever
// became of it in the first life, the same request is not sent under a second record, all sends are alike, and no error says "no effect".
func TestSecretsChangeBetweenLives(t *testing.T) {
	t.Parallel()
	for life, configured := range secretLives {
		for state, r := range map[string]struct {
			first wiretest.Reply
			sweep bool
			again int // how many more sends under the same key
		}{
			"pending":   {wiretest.Reply{Err: wiretest.ErrLost}, false, 1},
			"confirmed": {wiretest.Reply{Status: 201}, false, 0},
			"swept":     {wiretest.Reply{Status: 201}, true, 0},
		} {
			t.Run(life+" "+state, func(t *testing.T) {
				t.Parallel()
				enginetest.OnEach(t, enginetest.Engines(), func(t *testing.T, shared enginetest.Shared) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{r.first}}
					client := func(change func(*oncehttp.Config)) (*oncehttp.Client, persist.Journal) {
						return clienttest.New(t, w, clienttest.On(shared.Open(), clienttest.OneAttempt, change, func(cfg *oncehttp.Config) {
							cfg.Profile, cfg.KeepAnswer = profile.StripeV1(), shared.Time(time.Hour, time.Millisecond)
						}))
					}
					first, _ := client(configured.first)
					_, _ = first.DoKey(secretsRequest(t, "{}"), "k")
					if r.sweep && !shared.Await(2*time.Hour, func() bool {
						n, err := first.Sweep(t.Context())
						return n == 1 && err == nil
					}) {
						t.Fatal("its answer is not swept")
					}
					second, j := client(configured.second)
					large := secretsRequest(t, "{}")
					large.ContentLength = 1 << 40
					_, tooLarge := second.DoKey(large, "k")
					_, err := second.DoKey(secretsRequest(t, "{}"), "k")
					for _, err := range []error{tooLarge, err} {
						if errors.Is(err, oncehttp.ErrNoEffect) {
							t.Errorf("%v", err)
						}
					}
					if n := w.Count() - 1; n > r.again {
						t.Errorf("sent %d times more: %v", n, err)
					}
					if n := journaltest.Count(t, j); n != 1 {
						t.Errorf("%d records, want the one", n)
					}
					for _, s := range w.All() {
						if a := w.All()[0]; s.URL != a.URL || !maps.EqualFunc(s.Header, a.Header, slices.Equal) {
							t.Errorf("sent to %s with %v, and before to %s with %v", s.URL, s.Header, a.URL, a.Header)
						}
					}
				})
			})
		}
	}
}

// TestSecretsChangeWithoutAKey: what the first life left unresolved without a key stops the same request in the second, also
// where its body cannot be read, and where the value of what is a credential in one of the lives has changed.
func TestSecretsChangeWithoutAKey(t *testing.T) {
	t.Parallel()
	for life, configured := range secretLives {
		for how, change := range map[string]func(*http.Request){
			"the same":   func(*http.Request) {},
			"unreadable": func(req *http.Request) { req.ContentLength = 1 << 40 },
		} {
			t.Run(life+" "+how, func(t *testing.T) {
				t.Parallel()
				enginetest.OnEach(t, enginetest.Engines(), func(t *testing.T, shared enginetest.Shared) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
					client := func(change func(*oncehttp.Config)) *oncehttp.Client {
						c, _ := clienttest.New(t, w, clienttest.On(shared.Open(), clienttest.OneAttempt, change, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }))
						return c
					}
					_, _ = client(configured.first).Do(secretsRequest(t, "{}"))
					req := secretsRequest(t, "{}")
					change(req)
					_, err := client(configured.second).Do(req)
					if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 1 {
						t.Errorf("%v after %d sends", err, w.Count())
					}
				})
			})
		}
	}
}

// TestWhatCannotBeCompared: two requests that differ at most in what the record left out are neither the same nor other ones: no
// answer is handed out, nothing is sent, and no error says that the key belongs to another request.
func TestWhatCannotBeCompared(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]wiretest.Reply{"pending": {Err: wiretest.ErrLost}, "confirmed": {Status: 201}} {
		for _, how := range []string{"Do", "Enqueue"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				enginetest.OnEach(t, enginetest.Engines(), func(t *testing.T, shared enginetest.Shared) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{first}}
					shop := func(cfg *oncehttp.Config) { cfg.Account = "shop" } // whose it is, is not asked
					begins, _ := clienttest.New(t, w, clienttest.On(shared.Open(), clienttest.OneAttempt, shop, clienttest.SecretParameters("n")))
					_, _ = begins.DoKey(clienttest.Request(t, "POST", "https://api.example.com/p?n=1", "{}"), "k")
					second, _ := clienttest.New(t, w, clienttest.On(shared.Open(), clienttest.OneAttempt, shop))
					req := clienttest.Request(t, "POST", "https://api.example.com/p?n=2", "{}")
					err := second.Enqueue(req, "k")
					if how == "Do" {
						_, err = second.DoKey(clienttest.Request(t, "POST", "https://api.example.com/p?n=2", "{}"), "k")
					}
					clienttest.ExactlyOne(t, err)
					if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrConfig) || errors.Is(err, oncehttp.ErrKeyReused) || w.Count() != 1 {
						t.Errorf("%v after %d sends", err, w.Count())
					}
				})
			})
		}
	}
}

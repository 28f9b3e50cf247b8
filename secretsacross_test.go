package oncehttp_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// secretLives are two lives of a program, whose configurations of credentials differ.
var secretLives = map[string]struct{ first, second func(*oncehttp.Config) }{
	"a parameter more":        {func(*oncehttp.Config) {}, secretParameters("n")},
	"a parameter fewer":       {secretParameters("n"), func(*oncehttp.Config) {}},
	"another parameter":       {secretParameters("n"), secretParameters("via")},
	"a header more":           {func(*oncehttp.Config) {}, secretHeaderNames("X-Shop")},
	"a header fewer":          {secretHeaderNames("X-Shop", "X-None"), func(*oncehttp.Config) {}},
	"another header":          {secretHeaderNames("X-Shop"), secretHeaderNames("Content-Type")},
	"a header that counts":    {func(*oncehttp.Config) {}, secretHeaderNames("Stripe-Version")},
	"one that counts, fewer":  {secretHeaderNames("Stripe-Version"), func(*oncehttp.Config) {}},
	"the account":             {func(*oncehttp.Config) {}, secretHeaderNames("stripe-account")},
	"the account, no more":    {secretHeaderNames("Stripe-Account"), func(*oncehttp.Config) {}},
	"one that is kept":        {func(*oncehttp.Config) {}, func(cfg *oncehttp.Config) { cfg.KeepHeader = func(string) bool { return true } }},
	"everything":              {func(*oncehttp.Config) {}, secretHeaderNames("Stripe-Version", "Stripe-Account", "X-Shop", "Content-Type")},
	"the same":                {secretParameters("n"), secretParameters("N")},
	"the same in other order": {secretParameters("n", "via"), secretParameters("via", "n")},
}

func secretParameters(names ...string) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.SecretParameters = names }
}

func secretHeaderNames(names ...string) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.SecretHeaders = names }
}

// secretsRequest has everything that the configurations of secretLives name.
func secretsRequest(t *testing.T, body string) *http.Request {
	req := request(t, "POST", "https://api.example.com/p?via=test&n=1", body)
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
			first reply
			sweep bool
			again int // how many more sends under the same key
		}{
			"pending":   {reply{err: errLost}, false, 1},
			"confirmed": {reply{status: 201}, false, 0},
			"swept":     {reply{status: 201}, true, 0},
		} {
			t.Run(life+" "+state, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					j := memory.New()
					w := &wire{replies: []reply{r.first}}
					client := func(change func(*oncehttp.Config)) *oncehttp.Client {
						c, _ := newClient(t, w, on(newLeasing(j), oneAttempt, change, func(cfg *oncehttp.Config) {
							cfg.Profile, cfg.KeepAnswer = profile.StripeV1(), time.Hour
						}))
						return c
					}
					first := client(configured.first)
					_, _ = first.DoKey(secretsRequest(t, "{}"), "k")
					if r.sweep {
						time.Sleep(2 * time.Hour)
						if n, err := first.Sweep(t.Context()); n != 1 || err != nil {
							t.Fatal(n, err)
						}
					}
					second := client(configured.second)
					large := secretsRequest(t, "{}")
					large.ContentLength = 1 << 40
					_, tooLarge := second.DoKey(large, "k")
					_, err := second.DoKey(secretsRequest(t, "{}"), "k")
					for _, err := range []error{tooLarge, err} {
						if errors.Is(err, oncehttp.ErrNoEffect) {
							t.Errorf("%v", err)
						}
					}
					if n := w.count() - 1; n > r.again {
						t.Errorf("sent %d times more: %v", n, err)
					}
					if n := records(t, j); n != 1 {
						t.Errorf("%d records, want the one", n)
					}
					for _, s := range w.all() {
						if a := w.all()[0]; s.url != a.url || !maps.EqualFunc(s.header, a.header, slices.Equal) {
							t.Errorf("sent to %s with %v, and before to %s with %v", s.url, s.header, a.url, a.header)
						}
					}
				})
			})
		}
	}
}

// records is how many records a journal has.
func records(t *testing.T, j persist.Journal) (n int) {
	t.Helper()
	for _, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	return n
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
				bubble(t, func(t *testing.T) {
					j := memory.New()
					w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
					client := func(change func(*oncehttp.Config)) *oncehttp.Client {
						c, _ := newClient(t, w, on(newLeasing(j), oneAttempt, change, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }))
						return c
					}
					_, _ = client(configured.first).Do(secretsRequest(t, "{}"))
					req := secretsRequest(t, "{}")
					change(req)
					_, err := client(configured.second).Do(req)
					if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != 1 {
						t.Errorf("%v after %d sends", err, w.count())
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
	for name, first := range map[string]reply{"pending": {err: errLost}, "confirmed": {status: 201}} {
		for _, how := range []string{"Do", "Enqueue"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					j := memory.New()
					w := &wire{replies: []reply{first}}
					shop := func(cfg *oncehttp.Config) { cfg.Account = "shop" } // whose it is, is not asked
					begins, _ := newClient(t, w, on(newLeasing(j), oneAttempt, shop, secretParameters("n")))
					_, _ = begins.DoKey(request(t, "POST", "https://api.example.com/p?n=1", "{}"), "k")
					second, _ := newClient(t, w, on(newLeasing(j), oneAttempt, shop))
					req := request(t, "POST", "https://api.example.com/p?n=2", "{}")
					err := second.Enqueue(req, "k")
					if how == "Do" {
						_, err = second.DoKey(request(t, "POST", "https://api.example.com/p?n=2", "{}"), "k")
					}
					exactlyOne(t, err)
					if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrConfig) || errors.Is(err, oncehttp.ErrKeyReused) || w.count() != 1 {
						t.Errorf("%v after %d sends", err, w.count())
					}
				})
			})
		}
	}
}

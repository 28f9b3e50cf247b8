// Package secrets_test holds that no credential is kept in a record, an error or a log, and that a sealed journal tells nothing.
package secrets_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/profile"
)

// TestAuthorizeKeepsWhatTheKeyNames: what takes part in the comparison of requests, what selects the account, and the
// key itself stay; and nothing that cannot be sent is counted as sent.
func TestAuthorizeKeepsWhatTheKeyNames(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*http.Request){
		"another API's key header": func(r *http.Request) { r.Header.Set("X-Idempotency-Key", "z") },
		"a vendor's key header":    func(r *http.Request) { r.Header.Set("PayPal-Request-Id", "z") },
		"a content type":           func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		"no content type":          func(r *http.Request) { r.Header.Del("Content-Type") },
		"a second content type":    func(r *http.Request) { r.Header["content-type"] = []string{"text/plain"} },
		"a header of the profile":  func(r *http.Request) { r.Header.Set("Stripe-Version", "2026-01-01") },
		"the account":              func(r *http.Request) { r.Header.Set("Stripe-Account", "acct_2") },
		"a line end":               func(r *http.Request) { r.Header.Set("Authorization", "Bearer x\n") },
		"a zero byte":              func(r *http.Request) { r.Header.Set("Authorization", "Bearer \x00") },
		"a header without a name":  func(r *http.Request) { r.Header[""] = []string{"x"} },
		"a name that is no token":  func(r *http.Request) { r.Header["X Y"] = []string{"x"} },
		"an upgrade":               func(r *http.Request) { r.Header.Set("Upgrade", "h2c") },
		"trailers":                 func(r *http.Request) { r.Trailer = http.Header{"X": {"y"}} },
		"a parameter":              func(r *http.Request) { r.URL.RawQuery += "&page=2" },
		"a secret that was not":    func(r *http.Request) { r.URL.RawQuery += "&access_token=x" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Profile = profile.StripeV1()
					cfg.Authorize = func(req *http.Request) error { change(req); return nil }
				})
				req := clienttest.Post(t, "{}")
				req.Header.Set("Stripe-Account", "acct_1")
				_, err := c.DoKey(req, "k")
				var e *oncehttp.Error
				if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrNotSent) || e.Sends != 0 || w.Count() != 0 {
					t.Errorf("%v after %d sends, want ErrNotSent", err, w.Count())
				}
			})
		})
	}
}

// queryRequest carries credentials in its query.
func queryRequest(t *testing.T) *http.Request {
	return clienttest.Request(t, "POST", "https://api.example.com/p?via=test&access_token="+clienttest.Canary+"&n=1&X-Amz-Signature="+clienttest.Canary+"&sig="+clienttest.Canary, "{}")
}

// TestSecretsInTheQueryAreNeverJournaled: they are on the wire as the caller spelled them, and neither in the file nor
// in what two requests are compared by.
func TestSecretsInTheQueryAreNeverJournaled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testrun.Dir(t), "j.db")
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Header: "Location: https://u:" + clienttest.Canary + "@api.example.com/p/1?a=1&sig=" + clienttest.Canary + "#access_token=" + clienttest.Canary}}}
	c, err := oncehttp.Open(path, oncehttp.Config{Account: "shop", Transport: w, SecretParameters: []string{"pin"}, SecretHeaders: []string{"X-Shop"}})
	if err != nil {
		t.Fatal(err)
	}
	req := queryRequest(t)
	req.URL.RawQuery += "&PIN=" + clienttest.Canary
	req.Header.Set("X-Shop", clienttest.Canary)
	sentTo := req.URL.String()
	resp, err := c.DoKey(req, "k")
	if err != nil || !strings.Contains(resp.Header.Get("Location"), clienttest.Canary) {
		t.Fatalf("%v: the caller's own answer is whole", err)
	}
	if w.Sends[0].URL != sentTo || w.Sends[0].Header.Get("X-Shop") != clienttest.Canary {
		t.Errorf("sent to %s, want %s", w.Sends[0].URL, sentTo)
	}
	rec := clienttest.Lookup(t, c, "k")
	omitted := []string{"X-Shop", "?PIN", "?X-Amz-Signature", "?access_token", "?sig"}
	if rec.Target != "/p?via=test&n=1" || !slices.Equal(rec.Omitted, omitted) || rec.Answer.Header.Get("Location") != "https://api.example.com/p/1?a=1" {
		t.Errorf("target %s, omitted %q, location %s", rec.Target, rec.Omitted, rec.Answer.Header.Get("Location"))
	}
	other := clienttest.Request(t, "POST", "https://api.example.com/p?access_token=another&via=test&n=1", "{}")
	if resp, err := c.DoKey(other, "k"); err != nil || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
		t.Errorf("the same request with another token: %v", err)
	}
	if _, err := c.DoKey(clienttest.Request(t, "POST", "https://api.example.com/p?via=test&n=2", "{}"), "k"); !errors.Is(err, oncehttp.ErrKeyReused) {
		t.Errorf("another parameter: %v, want ErrKeyReused", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, path, clienttest.Canary, false)
}

// TestAuthorizeSetsWhatTheRecordOmits: a Resume sends without the credentials of the query, and Authorize may set
// exactly those.
func TestAuthorizeSetsWhatTheRecordOmits(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		sign func(*http.Request)
		sent string
	}{
		"all of them": {func(r *http.Request) { r.URL.RawQuery += "&access_token=new&sig=new" }, "via=test&n=1&access_token=new&sig=new"},
		"in front":    {func(r *http.Request) { r.URL.RawQuery = "sig=new&" + r.URL.RawQuery }, "sig=new&via=test&n=1"},
		"none":        {func(*http.Request) {}, "via=test&n=1"},
		"another":     {func(r *http.Request) { r.URL.RawQuery += "&api_key=new" }, ""},
		"reordered":   {func(r *http.Request) { r.URL.RawQuery = r.URL.Query().Encode() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Authorize = func(req *http.Request) error { r.sign(req); return nil }
				})
				if err := c.Enqueue(queryRequest(t), "k"); err != nil {
					t.Fatal(err)
				}
				for _, err := range c.Resume(t.Context()) {
					if (err == nil) != (r.sent != "") {
						t.Error(err)
					}
				}
				if r.sent == "" {
					if w.Count() != 0 {
						t.Errorf("sent to %s", w.Sends[0].URL)
					}
				} else if w.Count() != 1 || w.Sends[0].URL != "https://api.example.com/p?"+r.sent {
					t.Errorf("sends %+v", w.Sends)
				}
			})
		})
	}
}

// TestQuerySecretsNeedAuthorize: Enqueue of a request with a credential in its query is refused without it.
func TestQuerySecretsNeedAuthorize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, nil)
		if err := c.Enqueue(queryRequest(t), "k"); !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("%v, want ErrConfig", err)
		}
	})
}

// TestSecretAccountHeader: a credential that selects the account parts the operations, and is not in the journal.
func TestSecretAccountHeader(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Name, p.AccountHeaders = "on behalf", []string{"X-Auth-Assertion"}
	c, j := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, func(cfg *oncehttp.Config) {
		cfg.Profile, cfg.Authorize = p, func(*http.Request) error { return nil }
	})
	accounts := map[string]bool{}
	for _, value := range []string{clienttest.Canary, clienttest.Canary, "another"} {
		req := clienttest.Post(t, "{}")
		req.Header.Set("X-Auth-Assertion", value)
		rec, err := c.Prepare(req, "k")
		if err != nil || strings.Contains(rec.ScopedAccount(), value) || len(rec.ScopedAccount()) < 64 {
			t.Errorf("account %q: %v", rec.ScopedAccount(), err)
		}
		accounts[rec.ScopedAccount()] = true
		if _, err := c.DoKey(req, "k"); err != nil {
			t.Error(err)
		}
	}
	if len(accounts) != 2 || journaltest.Count(t, j) != 2 {
		t.Errorf("two callers have %d accounts", len(accounts))
	}
}

// TestSecretHeadersByWords: the whole words of a header's name say whether it is a credential.
func TestSecretHeadersByWords(t *testing.T) {
	t.Parallel()
	secret := []string{
		"X-Auth-Key", "X-Auth", "Ocp-Apim-Subscription-Key", "CB-ACCESS-PASSPHRASE", "CB-ACCESS-SIGN", "CB-ACCESS-KEY", "X-Functions-Key",
		"X-Session-Id", "X-Jwt-Assertion", "X-Jwt", "X-Bearer", "DPoP", "X-Passwd", "Authentication", "X-Access-Key", "X-Hmac", "X-Merchant-Pin",
		"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Apikey", "api_key", "X-Auth-Token", "X-Csrftoken", "X-Client-Secret",
		"X-Signature", "X-Amz-Security-Token", "X-Password", "X-RapidAPI-Key", "Paypal-Auth-Assertion",
	}
	plain := []string{
		"X-Author", "X-Authored-By", "Authority", "Accept", "Content-Type", "User-Agent", "X-Request-Id", "X-Sort-Key", "X-Assigned-To", "X-Designer",
		"X-Pinned", "Stripe-Account", "Stripe-Version", "X-Monkey", "X-Keyboard", "X-Cookies-Policy", "X-Obsession", "Digest",
	}
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, func(cfg *oncehttp.Config) { cfg.Authorize = func(*http.Request) error { return nil } })
	for _, name := range append(slices.Clone(secret), plain...) {
		req := clienttest.Post(t, "{}")
		req.Header[name] = []string{clienttest.Canary}
		rec, err := c.Prepare(req, "k")
		want := slices.Contains(secret, name)
		if err != nil || slices.Contains(rec.Omitted, name) != want || (rec.Header[name] == nil) != want {
			t.Errorf("%s: a credential %v, want %v; %v", name, !want, want, err)
		}
	}
}

// holds checks whether a file holds a text.
func holds(t *testing.T, path, text string, want bool) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) == 0 || bytes.Contains(raw, []byte(text)) != want {
		t.Errorf("%s (%d bytes, %v) holds %q: %v, want %v", path, len(raw), err, text, !want, want)
	}
}

package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// renewed are credentials that one owner renews every hour: n is the hour.
var renewed = map[string]func(req *http.Request, n int){
	"a bearer token":   func(req *http.Request, n int) { req.Header.Set("Authorization", fmt.Sprintf("Bearer hour-%d", n)) },
	"a token's header": func(req *http.Request, n int) { req.Header.Set("X-Auth-Token", fmt.Sprint(n)) },
	"a parameter":      func(req *http.Request, n int) { req.URL.RawQuery += fmt.Sprintf("&access_token=%d", n) },
	"basic in the URL": func(req *http.Request, n int) { req.SetBasicAuth("api", fmt.Sprint(n)) },
	"a session": func(req *http.Request, n int) {
		req.Header.Set("Cookie", fmt.Sprintf("session=%d; csrftoken=%d", n, n))
	},
	"SigV4 of STS":    func(req *http.Request, n int) { signedV4(req, fmt.Sprintf("ASIA%d", n), n) },
	"a secret header": func(req *http.Request, n int) { req.Header.Set("X-Customer-Secret", fmt.Sprint(n)) },
	"two at once": func(req *http.Request, n int) {
		signedV4(req, "AKIA", n)
		req.Header.Set("X-Amz-Security-Token", fmt.Sprint(n))
	},
	"another from then": func(req *http.Request, n int) {
		req.Header.Set([]string{"Authorization", "X-Api-Key"}[n%2], fmt.Sprint(n))
	},
}

func signedV4(req *http.Request, key string, n int) {
	req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/2026%04d/eu/pay/aws4_request, SignedHeaders=host, Signature=%d", key, n, n))
}

// TestRenewedEveryHour: who names an account goes on with credentials that are renewed every hour, on the request itself: an
// operation in doubt is sent again under its key, once, and a confirmed one is handed out from the journal.
func TestRenewedEveryHour(t *testing.T) {
	t.Parallel()
	for how, name := range map[string]struct{ config, context string }{
		"Config.Account": {"shop", ""}, "ContextWithAccount": {"", "alice"}, "both": {"shop", "alice"},
	} {
		for credential, put := range renewed {
			t.Run(how+", "+credential, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Err: wiretest.ErrLost}, {Status: 201, Body: "once"}}}
					c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
						cfg.Account, cfg.SecretHeaders = name.config, []string{"X-Customer-Secret"}
					}))
					for hour := range 5 {
						ctx := t.Context()
						if name.context != "" {
							ctx = oncehttp.ContextWithAccount(ctx, name.context)
						}
						req := clienttest.Post(t, "{}").WithContext(ctx)
						put(req, hour)
						resp, err := c.DoKey(req, "k")
						switch {
						case hour < 2 && (!errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrAccount)):
							t.Errorf("hour %d: %v, want it in doubt", hour, err)
						case hour >= 2 && (err != nil || clienttest.Read(t, resp) != "once"):
							t.Errorf("hour %d: %v", hour, err)
						}
						time.Sleep(time.Hour)
					}
					if w.Count() != 3 || journaltest.Count(t, j) != 1 {
						t.Errorf("%d sends, %d records", w.Count(), journaltest.Count(t, j))
					}
					for i, sent := range w.All() {
						if sent.Key != "k" {
							t.Errorf("send %d under %q", i, sent.Key)
						}
					}
				})
			})
		}
	}
}

// TestRenewedWithoutAnAccount: where no account is named, a token that was renewed on the request may be another's. Nothing is sent
// or handed out, whatever became of it, until the account is named and the operation assigned, which then goes on.
func TestRenewedWithoutAnAccount(t *testing.T) {
	t.Parallel()
	for _, credential := range []string{"a bearer token", "a session", "SigV4 of STS", "a parameter"} {
		for state, first := range map[string]wiretest.Reply{"in doubt": {Err: wiretest.ErrLost}, "confirmed": {Status: 201, Body: "once"}} {
			t.Run(credential+" "+state, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{first, {Status: 201, Body: "once"}}}
					c, j := clienttest.New(t, w, clienttest.OneAttempt)
					do := func(ctx context.Context, hour int) (*http.Response, error) {
						req := clienttest.Post(t, "{}").WithContext(ctx)
						renewed[credential](req, hour)
						return c.DoKey(req, "k")
					}
					_, _ = do(t.Context(), 0)
					time.Sleep(time.Hour)
					_, err := do(t.Context(), 1)
					reference := wantStranger(t, "an hour later", err)
					carol := oncehttp.ContextWithAccount(t.Context(), "carol")
					_, err = do(carol, 1)
					if named := wantStranger(t, "with an account", err); named != reference || w.Count() != 1 {
						t.Errorf("references %s and %s after %d sends", reference, named, w.Count())
					}
					if err := c.Assign(carol, oncehttp.Key(reference)); err != nil {
						t.Fatal(err)
					}
					if resp, err := do(carol, 2); err != nil || clienttest.Read(t, resp) != "once" || journaltest.Count(t, j) != 1 {
						t.Errorf("assigned: %v, %d records", err, journaltest.Count(t, j))
					}
				})
			})
		}
	}
}

// TestRenewedByACookieJar: a real cookie jar, whose server renews what is no session with each answer, is one owner. Where the session
// itself is renewed, the call has to name its account.
func TestRenewedByACookieJar(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		cookie  string // renewed with each answer, beside the session
		account string
		strange bool
	}{
		"a proxy's":                     {cookie: "AWSALB"},
		"a CSRF token":                  {cookie: "csrftoken"},
		"beside the session":            {cookie: "theme"},
		"the session":                   {cookie: "session", strange: true},
		"the session, account is named": {cookie: "session", account: "alice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sends, lost atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/login" {
					http.SetCookie(w, &http.Cookie{Name: "session", Value: "alice", Path: "/"})
					http.SetCookie(w, &http.Cookie{Name: r.cookie, Value: "first", Path: "/"})
					return
				}
				if n := sends.Add(1); lost.CompareAndSwap(0, 1) {
					panic(http.ErrAbortHandler)
				} else {
					http.SetCookie(w, &http.Cookie{Name: r.cookie, Value: fmt.Sprint(n), Path: "/"})
				}
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, "once")
			}))
			t.Cleanup(s.Close)
			c, j := clienttest.New(t, nil, clienttest.OneAttempt)
			standard := c.StandardClient()
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			standard.Jar = jar
			resp, err := standard.Get(s.URL + "/login")
			if err != nil {
				t.Fatal(err)
			}
			clienttest.Read(t, resp)
			do := func(key string) error {
				req := clienttest.Request(t, "POST", s.URL+"/payments", "{}")
				if r.account != "" {
					req = of(req, r.account)
				}
				req.Header.Set("Idempotency-Key", key)
				resp, err := standard.Do(req)
				if err == nil && clienttest.Read(t, resp) != "once" {
					t.Errorf("answered %d", resp.StatusCode)
				}
				return err
			}
			if err := do("k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Fatal(err)
			}
			if err := do("other"); err != nil { // whose answer sets the cookie
				t.Fatal(err)
			}
			if u := jar.Cookies(clienttest.Request(t, "GET", s.URL+"/", "").URL); len(u) == 0 || !strings.Contains(fmt.Sprint(u), r.cookie) {
				t.Fatalf("the jar has %v", u)
			}
			again := do("k")
			if r.strange {
				if wantStranger(t, "in doubt", again); sends.Load() != 2 {
					t.Errorf("%d sends", sends.Load())
				}
				return
			}
			if more := do("k"); again != nil || more != nil || sends.Load() != 3 || journaltest.Count(t, j) != 2 {
				t.Errorf("%v, %v after %d sends, %d records", again, more, sends.Load(), journaltest.Count(t, j))
			}
		})
	}
}

package oncehttp_test

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestRequestUsedAgain: a request value that was sent before is sent again with the same body, by GetBody; without it
// the second call is an error and never an empty or shorter body.
func TestRequestUsedAgain(t *testing.T) {
	t.Parallel()
	const body = `{"amount":1}`
	once := func(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }
	gives := func(text string) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return once(text), nil }
	}
	rows := map[string]struct {
		length  int64
		getBody func() (io.ReadCloser, error)
		sent    bool
	}{
		"GetBody":                        {int64(len(body)), gives(body), true},
		"GetBody, length not said":       {-1, gives(body), true},
		"no GetBody":                     {int64(len(body)), nil, false},
		"no GetBody, length not said":    {-1, nil, false},
		"GetBody gives less":             {int64(len(body)), gives(body[:5]), false},
		"GetBody gives more":             {int64(len(body)), gives(body + " "), false},
		"GetBody fails":                  {int64(len(body)), func() (io.ReadCloser, error) { return nil, errLost }, false},
		"GetBody's body fails":           {int64(len(body)), func() (io.ReadCloser, error) { return io.NopCloser(failing{errLost}), nil }, false},
		"GetBody gives nothing, neither": {int64(len(body)), gives(""), false},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{status: 500}, {status: 201}}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 })
				req := post(t, body)
				req.Body, req.ContentLength, req.GetBody = once(body), r.length, r.getBody
				if _, err := c.DoKey(req, "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				_, err := c.DoKey(req, "k")
				if r.sent {
					if err != nil || w.count() != 2 || w.sends[1].body != body {
						t.Errorf("%v, sends %+v", err, w.sends)
					}
					return
				}
				if !errors.Is(err, oncehttp.ErrConfig) || w.count() != 1 {
					t.Errorf("%v after %d sends, want ErrConfig after 1", err, w.count())
				}
			})
		})
	}
}

// TestPartOfABodyIsNeverSent: where some of a body was read before the call, GetBody does not stand in for it.
func TestPartOfABodyIsNeverSent(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201}}}
		c, _ := newClient(t, w, nil)
		req := post(t, `{"amount":1}`)
		_, _ = io.ReadFull(req.Body, make([]byte, 3))
		if _, err := c.DoKey(req, "k"); !errors.Is(err, oncehttp.ErrConfig) || w.count() != 0 {
			t.Errorf("%v after %d sends", err, w.count())
		}
	})
}

// TestBodyThatBreaksOffIsNeverSent: a body of unknown length that ends in an error, that of an inbound request whose
// sender went away included, is not taken for a whole one.
func TestBodyThatBreaksOffIsNeverSent(t *testing.T) {
	t.Parallel()
	for _, breaks := range []error{io.ErrUnexpectedEOF, errLost} {
		for _, length := range []int64{-1, 12} {
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{status: 201}}}
				c, _ := newClient(t, w, nil)
				req := post(t, "")
				req.Body, req.ContentLength, req.GetBody = io.NopCloser(io.MultiReader(strings.NewReader(`{"amount":1`), failing{breaks})), length, nil
				if _, err := c.DoKey(req, "k"); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, breaks) || w.count() != 0 {
					t.Errorf("%v, length %d: %v, sends %+v", breaks, length, err, w.sends)
				}
			})
		}
	}
}

// TestNewKeySeesNoBody: NewKey is asked before the body is read, gets a copy without Body, and can change nothing.
func TestNewKeySeesNoBody(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201}}}
		c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
			cfg.NewKey = func(req *http.Request) (oncehttp.Key, error) {
				if req.Body != nil || req.GetBody == nil || req.Header.Get("X-Order") != "7" || req.URL.Path != "/payments" {
					t.Errorf("NewKey got %+v", req)
				}
				req.Header.Set("X-Order", "8")
				req.URL.Path = "/other"
				return "made", nil
			}
		})
		req := post(t, `{"amount":1}`)
		req.Header.Set("X-Order", "7")
		if _, err := c.Do(req); err != nil || w.sends[0].body != `{"amount":1}` || w.sends[0].header.Get("X-Order") != "7" || !strings.Contains(w.sends[0].url, "/payments") {
			t.Errorf("%v, sent %+v", err, w.sends)
		}
	})
}

// TestErrorNamesTheKey: an error before anything begins carries the key that the call names, however it names it.
func TestErrorNamesTheKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, nil)
		for name, change := range map[string]func(*http.Request){
			"trailers":     func(r *http.Request) { r.Trailer = http.Header{"X": nil} },
			"a bad header": func(r *http.Request) { r.Header.Set("X-A", "b\nc") },
			"no URL's":     func(r *http.Request) { r.URL.Scheme = "ftp" },
			"a body":       func(r *http.Request) { r.ContentLength = 99 },
			"a method":     func(r *http.Request) { r.Method = "CONNECT" },
		} {
			for _, how := range []string{"call", "header", "context", "enqueue"} {
				req := post(t, "{}")
				change(req)
				var err error
				switch how {
				case "call":
					_, err = c.DoKey(req, "k")
				case "header":
					req.Header.Set("Idempotency-Key", "k")
					_, err = c.Do(req)
				case "context":
					_, err = c.Do(req.WithContext(oncehttp.ContextWithKey(req.Context(), "k")))
				case "enqueue":
					err = c.Enqueue(req, "k")
				}
				var e *oncehttp.Error
				if exactlyOne(t, err); !errors.As(err, &e) || e.Key != "k" || !errors.Is(err, oncehttp.ErrConfig) {
					t.Errorf("%s, key by %s: %v with the key %q", name, how, err, e.Key)
				}
			}
		}
	})
}

// TestEnqueueTakesTheRequestsKey: Enqueue without a key takes the one that the request carries, as Do does, and makes
// none.
func TestEnqueueTakesTheRequestsKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, nil)
		req := post(t, "{}")
		req.Header.Set("Idempotency-Key", "k")
		if err := c.Enqueue(req, ""); err != nil || lookup(t, c, "k").State != persist.StatePending {
			t.Errorf("key in the header: %v", err)
		}
		if err := c.Enqueue(post(t, "{}").WithContext(oncehttp.ContextWithKey(t.Context(), "k2")), ""); err != nil || lookup(t, c, "k2").Generated {
			t.Errorf("key in the context: %v", err)
		}
		if err := c.Enqueue(post(t, "{}"), ""); !errors.Is(err, oncehttp.ErrKeyInvalid) {
			t.Errorf("no key: %v, want ErrKeyInvalid", err)
		}
	})
}

// bodyCarrier is a profile whose key travels in the body.
func bodyCarrier() *profile.Profile {
	p := profile.Draft07()
	p.Name, p.Carrier = "body", profile.Carrier{Place: profile.Body, Name: "/key"}
	return p
}

// TestKeyInTheBodyOfAPut: a request that carries a key is journaled whatever its method, also where the key travels in
// the body; without a key it streams, with the very same body.
func TestKeyInTheBodyOfAPut(t *testing.T) {
	t.Parallel()
	for body, journaled := range map[string]bool{`{"key":"k","a":1}`: true, `{"a":1}`: false, `no JSON`: false, ``: false} {
		for _, said := range []bool{true, false} {
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{status: 200}}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile = bodyCarrier() })
				req := request(t, "PUT", "https://api.example.com/p", body)
				if !said && body != "" {
					req.Body, req.ContentLength, req.GetBody = io.NopCloser(strings.NewReader(body)), -1, nil
				}
				resp, err := c.Do(req)
				if err != nil || w.count() != 1 || w.sends[0].body != body {
					t.Fatalf("%q: %v, sends %+v", body, err, w.sends)
				}
				if key := oncehttp.ResultOf(resp).Key; (key == "k") != journaled || !journaled && key != "" {
					t.Errorf("%q: journaled under %q, want that: %v", body, key, journaled)
				}
			})
		}
	}
}

// TestUnreadableBodyThatMayHoldAKey: it is not streamed, in whole or in part; and since an operation may stand under
// the key that could not be read, the error does not say that there was no effect.
func TestUnreadableBodyThatMayHoldAKey(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		body io.Reader
		want error
	}{
		"broken":    {io.MultiReader(strings.NewReader(`{"key":`), failing{errLost}), oncehttp.ErrConfig},
		"too large": {strings.NewReader(strings.Repeat(" ", 101)), oncehttp.ErrBodyTooLarge},
	} {
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: 200}}}
			c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile, cfg.MaxRequestBytes = bodyCarrier(), 100 })
			req := request(t, "PUT", "https://api.example.com/p", "")
			req.Body, req.ContentLength = io.NopCloser(r.body), -1
			_, err := c.Do(req)
			if exactlyOne(t, err); !errors.Is(err, r.want) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != 0 {
				t.Errorf("%s: %v after %d sends", name, err, w.count())
			}
		})
	}
}

// TestMethodsAreCaseSensitive: a standard method that is not in upper case is refused, as a request's and as one of
// Config.Methods: it would be journaled nowhere. Extension methods stay as they are.
func TestMethodsAreCaseSensitive(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"post", "Post", "patch", "get", "dELETE", "PO ST"} {
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: 201}}}
			c, _ := newClient(t, w, nil)
			req := post(t, "{}")
			req.Method = method
			_, err := c.Do(req)
			if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) || w.count() != 0 {
				t.Errorf("%s: %v after %d sends, want ErrConfig", method, err, w.count())
			}
		})
	}
	for methods, ok := range map[string]bool{"post": false, "": false, "Patch": false, "PO ST": false, "PURGE": true, "purge": true, "POST": true, "OPTIONS": false} {
		c, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Methods: []string{methods}})
		if (err == nil) != ok || !ok && !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("Methods %q: %v", methods, err)
		}
		if c != nil {
			c.Close()
		}
	}
}

// TestHostsOfProfiles: a host with the port that the scheme means is the same host, and what can never be a host is
// refused.
func TestHostsOfProfiles(t *testing.T) {
	t.Parallel()
	other := profile.Draft07()
	other.Name, other.Carrier.Name = "other", "X-Idempotency-Key"
	for host, urls := range map[string]map[string]bool{
		"api.test:80":  {"http://api.test/": true, "http://api.test:80/": true, "http://API.test/": true, "https://api.test/": false, "http://api.test:8080/": false},
		"api.test:443": {"https://api.test/": true, "http://api.test/": false},
		"api.test":     {"https://api.test/": true, "http://api.test/": true, "https://api.test:8443/": true, "https://www.api.test/": false},
		"[::1]":        {"http://[::1]/": true, "http://[::1]:80/": true},
		"[::1]:80":     {"http://[::1]/": true, "https://[::1]/": false},
	} {
		c, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), ProfileByHost: map[string]*profile.Profile{host: other}})
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		for url, hit := range urls {
			rec, err := c.Prepare(request(t, "POST", url, "{}"), "k")
			if err != nil || (rec.Profile == "other") != hit {
				t.Errorf("%s has the profile %q, want the one of %s: %v; %v", url, rec.Profile, host, hit, err)
			}
		}
		c.Close()
	}
	for _, host := range []string{"http://api.test", "api.test/", "api.test/v1", "API.test", "", ":80", "api.test:", "api.test:http", "u@api.test", "api.test?x", "api.test#x", "::1", "a b", "//api.test"} {
		_, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), ProfileByHost: map[string]*profile.Profile{host: other}})
		if !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("ProfileByHost[%q]: %v, want ErrConfig", host, err)
		}
	}
}

// TestMaxRequestHeaderBytes: target and headers at the bound are taken, one byte past it is refused before anything is
// written or sent.
func TestMaxRequestHeaderBytes(t *testing.T) {
	t.Parallel()
	const fixed = len("/p") + len("X-A: \r\n") + len("Authorization: x\r\n")
	for _, limit := range []int64{0, 100, 4096} {
		room := limit
		if limit == 0 {
			room = 64 << 10
		}
		for past := range 2 {
			for _, inTarget := range []bool{false, true} {
				bubble(t, func(t *testing.T) {
					w := &wire{replies: []reply{{status: 201}}}
					c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.MaxRequestHeaderBytes = limit })
					fill := strings.Repeat("a", int(room)-fixed+past)
					req := request(t, "POST", "https://api.example.com/p", "{}")
					req.Header = http.Header{"X-A": {fill}, "Authorization": {"x"}}
					if inTarget {
						req.Header.Set("X-A", "")
						req.URL.Path += fill
					}
					_, err := c.DoKey(req, "k")
					if past == 0 {
						if err != nil || w.count() != 1 {
							t.Errorf("limit %d: %v", limit, err)
						}
						return
					}
					if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrHeaderTooLarge) || !errors.Is(err, oncehttp.ErrNoEffect) || w.count() != 0 {
						t.Errorf("one past %d: %v after %d sends", limit, err, w.count())
					}
					if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) {
						t.Errorf("one past %d: a record stands: %v", limit, err)
					}
				})
			}
		}
	}
}

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
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{status: 201}}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
					cfg.Profile = profile.StripeV1()
					cfg.Authorize = func(req *http.Request) error { change(req); return nil }
				})
				req := post(t, "{}")
				req.Header.Set("Stripe-Account", "acct_1")
				_, err := c.DoKey(req, "k")
				var e *oncehttp.Error
				if exactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrNotSent) || e.Sends != 0 || w.count() != 0 {
					t.Errorf("%v after %d sends, want ErrNotSent", err, w.count())
				}
			})
		})
	}
}

// queryRequest carries credentials in its query.
func queryRequest(t *testing.T) *http.Request {
	return request(t, "POST", "https://api.example.com/p?via=test&access_token="+canary+"&n=1&X-Amz-Signature="+canary+"&sig="+canary, "{}")
}

// TestSecretsInTheQueryAreNeverJournaled: they are on the wire as the caller spelled them, and neither in the file nor
// in what two requests are compared by.
func TestSecretsInTheQueryAreNeverJournaled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j.db")
	w := &wire{replies: []reply{{status: 201, header: "Location: https://u:" + canary + "@api.example.com/p/1?a=1&sig=" + canary + "#access_token=" + canary}}}
	c, err := oncehttp.Open(path, oncehttp.Config{Transport: w, SecretParameters: []string{"pin"}, SecretHeaders: []string{"X-Shop"}})
	if err != nil {
		t.Fatal(err)
	}
	req := queryRequest(t)
	req.URL.RawQuery += "&PIN=" + canary
	req.Header.Set("X-Shop", canary)
	sentTo := req.URL.String()
	resp, err := c.DoKey(req, "k")
	if err != nil || !strings.Contains(resp.Header.Get("Location"), canary) {
		t.Fatalf("%v: the caller's own answer is whole", err)
	}
	if w.sends[0].url != sentTo || w.sends[0].header.Get("X-Shop") != canary {
		t.Errorf("sent to %s, want %s", w.sends[0].url, sentTo)
	}
	rec := lookup(t, c, "k")
	omitted := []string{"X-Shop", "?PIN", "?X-Amz-Signature", "?access_token", "?sig"}
	if rec.Target != "/p?via=test&n=1" || !slices.Equal(rec.Omitted, omitted) || rec.Answer.Header.Get("Location") != "https://api.example.com/p/1?a=1" {
		t.Errorf("target %s, omitted %q, location %s", rec.Target, rec.Omitted, rec.Answer.Header.Get("Location"))
	}
	other := request(t, "POST", "https://api.example.com/p?access_token=another&via=test&n=1", "{}")
	if resp, err := c.DoKey(other, "k"); err != nil || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
		t.Errorf("the same request with another token: %v", err)
	}
	if _, err := c.DoKey(request(t, "POST", "https://api.example.com/p?via=test&n=2", "{}"), "k"); !errors.Is(err, oncehttp.ErrKeyReused) {
		t.Errorf("another parameter: %v, want ErrKeyReused", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, path, canary, false)
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
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{status: 201}}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
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
					if w.count() != 0 {
						t.Errorf("sent to %s", w.sends[0].url)
					}
				} else if w.count() != 1 || w.sends[0].url != "https://api.example.com/p?"+r.sent {
					t.Errorf("sends %+v", w.sends)
				}
			})
		})
	}
}

// TestQuerySecretsNeedAuthorize: Enqueue of a request with a credential in its query is refused without it.
func TestQuerySecretsNeedAuthorize(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, nil)
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
	c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, func(cfg *oncehttp.Config) {
		cfg.Profile, cfg.Authorize = p, func(*http.Request) error { return nil }
	})
	accounts := map[string]bool{}
	for _, value := range []string{canary, canary, "another"} {
		req := post(t, "{}")
		req.Header.Set("X-Auth-Assertion", value)
		rec, err := c.Prepare(req, "k")
		if err != nil || strings.Contains(rec.Account, value) || len(rec.Account) < 64 {
			t.Errorf("account %q: %v", rec.Account, err)
		}
		accounts[rec.Account] = true
	}
	if len(accounts) != 2 {
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
		"X-Pinned", "Stripe-Account", "Stripe-Version", "X-Monkey", "X-Keyboard", "Traceparent", "X-Cookies-Policy", "X-Obsession", "Digest",
	}
	c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, func(cfg *oncehttp.Config) { cfg.Authorize = func(*http.Request) error { return nil } })
	for _, name := range append(slices.Clone(secret), plain...) {
		req := post(t, "{}")
		req.Header[name] = []string{canary}
		rec, err := c.Prepare(req, "k")
		want := slices.Contains(secret, name)
		if err != nil || slices.Contains(rec.Omitted, name) != want || (rec.Header[name] == nil) != want {
			t.Errorf("%s: a credential %v, want %v; %v", name, !want, want, err)
		}
	}
}

// oldRecord is a record of version 1 of the recipe, which left no credential out of the query.
func oldRecord(key string) persist.Record {
	p := profile.Draft07()
	rec := persist.Record{
		ID:     persist.ID{Key: key},
		Origin: "https://api.example.com:443", Method: "POST", Target: "/p?access_token=t&n=1",
		Header: http.Header{"Content-Type": {"application/json"}, "X-Auth": {"x"}}, Body: []byte("{}"),
		Carrier: "header", CarrierName: "Idempotency-Key", WireKey: key, Profile: p.Name, ProfileVersion: p.Version,
		Window: 24 * time.Hour, Created: time.Now(), Recipe: "v1 Content-Type",
	}
	// The recipe, the origin, the method, the target, no Host, and the content type, each behind its length in one
	// byte, then the body.
	rec.Fingerprint = sha256Of("\x0fv1 Content-Type" + "\x1bhttps://api.example.com:443" + "\x04POST" + "\x15" + rec.Target + "\x00" + "\x10application/json" + "{}")
	return rec
}

// TestOldRecipeStillCompares: an operation whose fingerprint was made before credentials left it goes on under the
// same request, and is refused under another.
func TestOldRecipeStillCompares(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201}}}
		c, j := newClient(t, w, nil)
		if _, _, err := j.Begin(t.Context(), oldRecord("k")); err != nil {
			t.Fatal(err)
		}
		other := request(t, "POST", "https://api.example.com/p?access_token=u&n=1", "{}")
		if _, err := c.DoKey(other, "k"); !errors.Is(err, oncehttp.ErrKeyReused) || w.count() != 0 {
			t.Errorf("another request: %v", err)
		}
		same := request(t, "POST", "https://api.example.com/p?access_token=t&n=1", "{}")
		same.Header.Set("X-Auth", "x")
		if resp, err := c.DoKey(same, "k"); err != nil || resp.StatusCode != 201 || w.sends[0].url != "https://api.example.com/p?access_token=t&n=1" {
			t.Errorf("the same request: %v", err)
		}
	})
}

// TestMaxResponseHeaderBytes: headers of an answer at the bound are kept and given again from the journal; one byte
// past it they reach the caller, only the status is recorded, and the server is asked again.
func TestMaxResponseHeaderBytes(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, 100} {
		room := limit
		if limit == 0 {
			room = 64 << 10
		}
		for past := range 2 {
			bubble(t, func(t *testing.T) {
				fill := strings.Repeat("a", int(room)-len("X-A: \r\n")+past)
				w := &wire{replies: []reply{{status: 201, header: "X-A: " + fill + "\nSet-Cookie: " + fill, body: "paid"}}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.MaxResponseHeaderBytes = limit })
				for range 2 {
					resp, err := c.DoKey(post(t, "{}"), "k")
					if err != nil || resp.Header.Get("X-A") != fill || read(t, resp) != "paid" {
						t.Fatal(err)
					}
				}
				answer := lookup(t, c, "k").Answer
				if w.count() != 1+past || (len(answer.Header) == 0) != (past == 1) || answer.BodyDropped != (past == 1) || answer.Status != 201 {
					t.Errorf("%d past %d: %d sends, kept %d headers", past, limit, w.count(), len(answer.Header))
				}
			})
		}
	}
}

// TestKeylessLoopAcrossRecipes: an operation under a generated key that stands unresolved with a fingerprint of the
// first recipe still stops the same request without a key.
func TestKeylessLoopAcrossRecipes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201}}}
		c, j := newClient(t, w, nil)
		rec := oldRecord("generated")
		rec.Generated, rec.MaybeSent, rec.FirstSent = true, true, time.Now()
		if _, _, err := j.Begin(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		_, err := c.Do(request(t, "POST", "https://api.example.com/p?access_token=t&n=1", "{}"))
		var e *oncehttp.Error
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.As(err, &e) || e.Key != "generated" || w.count() != 0 {
			t.Errorf("%v after %d sends", err, w.count())
		}
	})
}

// TestKeylessLoopAcrossConfigurations: what one client left unresolved stops the same request without a key by a client
// with another profile, other names of credentials or other headers that count; another request goes on.
func TestKeylessLoopAcrossConfigurations(t *testing.T) {
	t.Parallel()
	otherHeaders := profile.Draft07()
	otherHeaders.Name, otherHeaders.Fingerprint = "other", []string{"X-Tenant"}
	for name, change := range map[string]func(*oncehttp.Config){
		"another profile":       func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() },
		"other headers count":   func(cfg *oncehttp.Config) { cfg.Profile = otherHeaders },
		"a secret parameter":    func(cfg *oncehttp.Config) { cfg.SecretParameters = []string{"n"} },
		"a secret header":       func(cfg *oncehttp.Config) { cfg.SecretHeaders = []string{"X-Shop"} },
		"the same in a new one": func(*oncehttp.Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
				first, j := newClient(t, w, oneAttempt)
				send := func(c *oncehttp.Client, body string) error {
					req := request(t, "POST", "https://api.example.com/p?n=1", body)
					req.Header.Set("X-Shop", "7")
					_, err := c.Do(req)
					return err
				}
				if err := send(first, "{}"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				cfg := oncehttp.Config{Journal: j, Transport: w}
				change(&cfg)
				second, err := oncehttp.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer second.Close()
				err = send(second, "{}")
				var e *oncehttp.Error
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.As(err, &e) || string(e.Key) != w.sends[0].key || w.count() != 1 {
					t.Errorf("%v after %d sends", err, w.count())
				}
				if err := send(second, "{1}"); err != nil || w.count() != 2 {
					t.Errorf("another request: %v after %d sends", err, w.count())
				}
			})
		})
	}
}

// TestGetBodyThatGivesNothing: a GetBody with neither a body nor an error is a wrong request, and no panic.
func TestGetBodyThatGivesNothing(t *testing.T) {
	t.Parallel()
	w := &wire{}
	c, _ := newClient(t, w, nil)
	req := post(t, "{}")
	_, _ = io.Copy(io.Discard, req.Body)
	req.GetBody = func() (io.ReadCloser, error) { return nil, nil }
	_, err := c.DoKey(req, "k")
	if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrNoEffect) || w.count() != 0 {
		t.Errorf("%v after %d sends", err, w.count())
	}
}

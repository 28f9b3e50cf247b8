// Package capture_test holds that Client.Capture hands out one operation of an SDK unsent, and that it says so of every other case.
package capture_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// post is a call of an SDK that makes its own key.
func post(hc *http.Client, body, key string) error {
	req, err := http.NewRequest("POST", "https://api.example.com/pay?a=1", io.LimitReader(strings.NewReader(body), 1<<40))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return send(hc, req)
}

func send(hc *http.Client, req *http.Request) error {
	resp, err := hc.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return err
}

// checkCaptured checks the error of an SDK for the captured operation.
func checkCaptured(t *testing.T, err error) {
	t.Helper()
	clienttest.ExactlyOne(t, err)
	var whole *url.Error
	var own *oncehttp.Error
	if !errors.Is(err, oncehttp.ErrCaptured) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.As(err, &whole) || !errors.As(err, &own) {
		t.Fatalf("%T %v; want ErrCaptured with ErrOutcomeUnknown, in a *url.Error", err, err)
	}
	if errors.Is(err, oncehttp.ErrConfig) || whole.Timeout() || whole.Temporary() || own.Key != "k" || own.Op != "capture" {
		t.Errorf("timeout %t, temporary %t, %+v", whole.Timeout(), whole.Temporary(), own)
	}
}

// checkRefused checks an error of Capture, or of a Transport of it.
func checkRefused(t *testing.T, err, is error) {
	t.Helper()
	clienttest.ExactlyOne(t, err)
	if !errors.Is(err, is) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrCaptured) {
		t.Errorf("%v; want %v with ErrOutcomeUnknown", err, is)
	}
}

// mine is the key of a value in a caller's context.
type mine struct{}

// TestCaptured: the operation is handed out unsent under the key. Prepare makes the same record of it as of the request itself,
// and Enqueue begins it.
func TestCaptured(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
	c, _ := clienttest.New(t, w, nil)
	ctx := context.WithValue(t.Context(), mine{}, "mine")
	req, err := c.Capture(ctx, "k", func(hc *http.Client) error {
		err := post(hc, `{"amount":1}`, "made-up")
		checkCaptured(t, err)
		return errors.New("an SDK's own error")
	})
	if err != nil || w.Count() != 0 {
		t.Fatalf("%v, %d sends", err, w.Count())
	}
	if req.Context().Value(mine{}) != "mine" || req.Header.Get("Idempotency-Key") != "" || req.GetBody == nil || req.ContentLength != 12 {
		t.Errorf("%+v", req)
	}
	direct := clienttest.Request(t, "POST", "https://api.example.com/pay?a=1", `{"amount":1}`)
	want, err := c.Prepare(direct, "k")
	clienttest.Must(t, err)
	for _, key := range []oncehttp.Key{"", "k"} {
		again := req.Clone(req.Context())
		again.Body, err = req.GetBody()
		clienttest.Must(t, err)
		got, err := c.Prepare(again, key)
		clienttest.Must(t, err)
		got.Created, got.SendBefore = want.Created, want.SendBefore
		if !reflect.DeepEqual(got, want) {
			t.Errorf("prepared\n%+v\nwant\n%+v", got, want)
		}
	}
	if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) {
		t.Errorf("Capture wrote it: %v", err)
	}
	if _, err := c.Prepare(req.Clone(req.Context()), "other"); !errors.Is(err, oncehttp.ErrKeyInvalid) {
		t.Errorf("under another key: %v", err)
	}
	req.Body, err = req.GetBody()
	clienttest.Must(t, err)
	clienttest.Must(t, c.Enqueue(req, ""))
	if got := clienttest.Resume(t, c); got["k"].Err != nil || w.Keys()["k"] != 1 || w.Count() != 1 {
		t.Errorf("resumed %v, sent under %v", got, w.Keys())
	}
}

// TestOthersPass: requests that are no operation are sent, before and after the operation.
func TestOthersPass(t *testing.T) {
	t.Parallel()
	var seen []string
	rt := wiretest.Func(func(req *http.Request) (*http.Response, error) {
		seen = append(seen, req.Method+" "+req.URL.Path)
		if req.URL.Path == "/token" {
			b, err := io.ReadAll(req.Body)
			if err != nil || string(b) != "grant_type=client_credentials" {
				t.Errorf("%q, %v", b, err)
			}
		}
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
	})
	for name, operation := range map[string]func(*http.Request) bool{"Writes": oncehttp.Writes, "by the key alone": nil} {
		seen = nil
		c, _ := clienttest.New(t, rt, func(cfg *oncehttp.Config) { cfg.Operation = operation })
		req, err := c.Capture(t.Context(), "k", func(hc *http.Client) error {
			token, err := http.NewRequest("POST", "https://api.example.com/token", strings.NewReader("grant_type=client_credentials"))
			clienttest.Must(t, err)
			token.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			clienttest.Must(t, send(hc, token))
			clienttest.Must(t, send(hc, clienttest.Request(t, "GET", "https://api.example.com/cards", "")))
			checkCaptured(t, post(hc, "{}", ""))
			return send(hc, clienttest.Request(t, "GET", "https://api.example.com/after", ""))
		})
		if err != nil || req.URL.Path != "/pay" || !reflect.DeepEqual(seen, []string{"POST /token", "GET /cards", "GET /after"}) {
			t.Errorf("%s: %v, sent %q", name, err, seen)
		}
	}
}

// logins are requests of SDKs for credentials, other than OAuth's forms.
var logins = map[string]struct{ kind, body string }{
	"JSON": {"application/json", `{"username":"u","password":"p"}`},
	"STS":  {"application/x-www-form-urlencoded", "Action=AssumeRoleWithWebIdentity&Version=2011-06-15"},
}

// login is the first request of such an SDK.
func login(t *testing.T, hc *http.Client, kind, body string) error {
	req := clienttest.Request(t, "POST", "https://api.example.com/login", body)
	req.Header.Set("Content-Type", kind)
	return send(hc, req)
}

// order is the operation of such an SDK.
func order(t *testing.T, hc *http.Client) error {
	return send(hc, clienttest.Request(t, "POST", "https://api.example.com/v2/checkout/orders", `{"intent":"CAPTURE"}`))
}

// TestLoginIsNoPayment: with a profile with endpoints a POST elsewhere is neither captured nor sent, whatever the function makes of its error. With
// Config.Operation it is sent.
func TestLoginIsNoPayment(t *testing.T) {
	t.Parallel()
	p, known := profile.ByName("paypal-orders")
	if !known {
		t.Fatal("no profile paypal-orders")
	}
	for name, l := range logins {
		for _, returns := range []error{nil, errors.New("no token"), oncehttp.ErrCaptured} {
			w := &wiretest.Wire{}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile, cfg.Operation = p, nil })
			req, err := c.Capture(oncehttp.ContextWithKey(t.Context(), "k"), "k", func(hc *http.Client) error {
				checkRefused(t, login(t, hc, l.kind, l.body), oncehttp.ErrConfig)
				checkCaptured(t, order(t, hc))
				return returns
			})
			checkRefused(t, err, oncehttp.ErrConfig)
			if req != nil || w.Count() != 0 || err == nil || !strings.Contains(err.Error(), "POST /login") || !strings.Contains(err.Error(), "Config.Operation") {
				t.Errorf("%s, returning %v: %v, %v, %d sends", name, returns, req, err, w.Count())
			}
		}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.Profile, cfg.Operation = p, func(req *http.Request) bool { return strings.HasPrefix(req.URL.Path, "/v2/") }
		})
		req, err := c.Capture(t.Context(), "k", func(hc *http.Client) error {
			return errors.Join(login(t, hc, l.kind, l.body), order(t, hc))
		})
		if err != nil || req.URL.Path != "/v2/checkout/orders" || w.Count() != 1 {
			t.Errorf("%s, with Operation: %v, %d sends", name, err, w.Count())
		}
	}
}

// TestLoginWithoutEndpoints: where nothing says which request is the operation, an error of the function that is not ErrCaptured is the error of
// Capture, and nothing is captured.
func TestLoginWithoutEndpoints(t *testing.T) {
	t.Parallel()
	noToken := errors.New("no token")
	for name, l := range logins {
		for _, p := range []*profile.Profile{nil, profile.StripeV1()} {
			w := &wiretest.Wire{}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile, cfg.Operation = p, nil })
			req, err := c.Capture(t.Context(), "k", func(hc *http.Client) error {
				checkCaptured(t, login(t, hc, l.kind, l.body))
				return noToken
			})
			checkRefused(t, err, oncehttp.ErrConfig)
			if req != nil || w.Count() != 0 || !errors.Is(err, noToken) || !strings.Contains(err.Error(), "POST /login") || !strings.Contains(err.Error(), "Config.Operation") {
				t.Errorf("%s: %v, %v, %d sends", name, req, err, w.Count())
			}
			req, err = c.Capture(t.Context(), "k", func(hc *http.Client) error {
				return fmt.Errorf("an SDK: %w", order(t, hc))
			})
			if err != nil || req.URL.Path != "/v2/checkout/orders" {
				t.Errorf("%s: returned with ErrCaptured: %v", name, err)
			}
		}
	}
}

// TestSameAgain: an SDK that tries again gets the same error, under whatever key; another operation is refused, and spoils the capture.
func TestSameAgain(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{}
	c, _ := clienttest.New(t, w, nil)
	req, err := c.Capture(t.Context(), "k", func(hc *http.Client) error {
		checkCaptured(t, post(hc, "{}", "one"))
		checkCaptured(t, post(hc, "{}", "two"))
		checkCaptured(t, post(hc, "{}", ""))
		return nil
	})
	if err != nil || req == nil {
		t.Errorf("%v", err)
	}
	req, err = c.Capture(t.Context(), "k", func(hc *http.Client) error {
		checkCaptured(t, post(hc, "{}", "one"))
		err := post(hc, "[]", "one")
		checkRefused(t, err, oncehttp.ErrConfig)
		checkCaptured(t, post(hc, "{}", "one"))
		return err
	})
	checkRefused(t, err, oncehttp.ErrConfig)
	if req != nil || !strings.Contains(err.Error(), "a second operation, POST /pay") || w.Count() != 0 {
		t.Errorf("%v, %v, %d sends", req, err, w.Count())
	}
}

// TestConcurrent: of the operations of several goroutines one is captured, and every other one is refused.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{}
	c, _ := clienttest.New(t, w, nil)
	for _, bodies := range [][]string{{"{}", "{}", "{}", "{}"}, {"{}", "[]", "{}", "[]"}} {
		var errs []error
		req, err := c.Capture(t.Context(), "k", func(hc *http.Client) error {
			var all sync.WaitGroup
			var mu sync.Mutex
			for _, body := range bodies {
				all.Go(func() {
					err := post(hc, body, "")
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
				})
			}
			all.Wait()
			return nil
		})
		captured := 0
		for _, err := range errs {
			if errors.Is(err, oncehttp.ErrCaptured) {
				captured++
			} else {
				checkRefused(t, err, oncehttp.ErrConfig)
			}
		}
		switch {
		case bodies[1] == "{}":
			if err != nil || req == nil || captured != 4 {
				t.Errorf("the same: %v, %d captured", err, captured)
			}
		case captured != 2 || req != nil:
			t.Errorf("two: %d captured, %v", captured, req)
		default:
			checkRefused(t, err, oncehttp.ErrConfig)
		}
	}
	if w.Count() != 0 {
		t.Errorf("%d sends", w.Count())
	}
}

// TestNotCaptured: every other end is an error that says why.
func TestNotCaptured(t *testing.T) {
	t.Parallel()
	mine := errors.New("the SDK's validation")
	small := func(cfg *oncehttp.Config) { cfg.MaxRequestBytes = 4 }
	for name, r := range map[string]struct {
		key  oncehttp.Key
		call func(*http.Client) error
		cfg  func(*oncehttp.Config)
		is   error
		says string
	}{
		"no operation":      {"k", func(*http.Client) error { return nil }, nil, oncehttp.ErrConfig, "made no operation"},
		"an error before":   {"k", func(*http.Client) error { return mine }, nil, mine, "made no operation: the SDK's validation"},
		"no function":       {"k", nil, nil, oncehttp.ErrConfig, "no function"},
		"no key":            {"", func(*http.Client) error { panic("called") }, nil, oncehttp.ErrKeyInvalid, "empty"},
		"a key not allowed": {"a b", func(hc *http.Client) error { return post(hc, "{}", "") }, nil, oncehttp.ErrKeyInvalid, ""},
		"too large":         {"k", func(hc *http.Client) error { return post(hc, "12345", "") }, small, oncehttp.ErrBodyTooLarge, ""},
		"too large, then another": {"k", func(hc *http.Client) error {
			return errors.Join(post(hc, "12345", ""), post(hc, "{}", ""))
		}, small, oncehttp.ErrBodyTooLarge, ""},
		"another key in the context": {"k", func(hc *http.Client) error {
			return send(hc, clienttest.Post(t, "{}").WithContext(oncehttp.ContextWithKey(t.Context(), "other")))
		}, nil, oncehttp.ErrKeyInvalid, "two keys"},
		"an unused key header": {"k", func(hc *http.Client) error {
			req := clienttest.Post(t, "{}")
			req.Header.Set("X-Idempotency-Key", "x")
			return send(hc, req)
		}, nil, oncehttp.ErrKeyInvalid, "X-Idempotency-Key"},
	} {
		w := &wiretest.Wire{}
		c, _ := clienttest.New(t, w, r.cfg)
		req, err := c.Capture(t.Context(), r.key, r.call)
		checkRefused(t, err, r.is)
		if req != nil || w.Count() != 0 || !strings.Contains(err.Error(), r.says) {
			t.Errorf("%s: %v, %v, %d sends", name, req, err, w.Count())
		}
	}
}

// TestAfterItsEnd: nothing is sent through the client of a Capture that is over, an operation's panic included, nor by a closed client.
func TestAfterItsEnd(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{}
	c, _ := clienttest.New(t, w, nil)
	var kept *http.Client
	func() {
		defer func() {
			if recover() != "mine" {
				t.Error("a panic did not go on")
			}
		}()
		_, _ = c.Capture(t.Context(), "k", func(hc *http.Client) error { kept = hc; panic("mine") })
	}()
	checkRefused(t, post(kept, "{}", ""), oncehttp.ErrConfig)
	clienttest.Must(t, c.Close())
	_, err := c.Capture(t.Context(), "k", func(hc *http.Client) error { return post(hc, "{}", "") })
	checkRefused(t, err, oncehttp.ErrClosed)
	if w.Count() != 0 {
		t.Errorf("%d sends", w.Count())
	}
}

// TestCaptureEndsWithClose: a Close does not wait for the function longer than for any other one.
func TestCaptureEndsWithClose(t *testing.T) {
	t.Parallel()
	c, _ := clienttest.New(t, &wiretest.Wire{}, func(cfg *oncehttp.Config) { cfg.Retry.AttemptTimeout = time.Millisecond })
	_, err := c.Capture(t.Context(), "k", func(hc *http.Client) error {
		if err := c.Close(); !errors.Is(err, oncehttp.ErrStillRunning) || !strings.Contains(err.Error(), "the function of Capture") {
			t.Errorf("Close inside: %v", err)
		}
		return post(hc, "{}", "")
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCaptureAccounts: the account is that of either context; two are refused.
func TestCaptureAccounts(t *testing.T) {
	t.Parallel()
	c, _ := clienttest.New(t, &wiretest.Wire{}, nil)
	of := func(account string) context.Context {
		if account == "" {
			return t.Context()
		}
		return oncehttp.ContextWithAccount(t.Context(), account)
	}
	for _, r := range []struct{ outside, inside, want string }{{"a", "", "a"}, {"", "a", "a"}, {"a", "a", "a"}, {"", "", ""}, {"a", "b", "refused"}} {
		req, err := c.Capture(of(r.outside), "k", func(hc *http.Client) error {
			err := send(hc, clienttest.Post(t, "{}").WithContext(of(r.inside)))
			if r.want == "a" { // an SDK may use a context of its own for another try
				checkCaptured(t, send(hc, clienttest.Post(t, "{}").WithContext(of("a"))))
			}
			return err
		})
		if r.want == "refused" {
			checkRefused(t, err, oncehttp.ErrConfig)
			continue
		}
		clienttest.Must(t, err)
		rec, err := c.Prepare(req, "k")
		clienttest.Must(t, err)
		direct, err := c.Prepare(clienttest.Post(t, "{}").WithContext(of(r.want)), "k")
		clienttest.Must(t, err)
		if rec.Account != direct.Account {
			t.Errorf("%+v: account %q, want %q", r, rec.Account, direct.Account)
		}
	}
	_, err := c.Capture(oncehttp.ContextWithAccount(t.Context(), ""), "k", func(hc *http.Client) error { return post(hc, "{}", "") })
	checkRefused(t, err, oncehttp.ErrConfig)
}

// TestKeyElsewhere: a key in a query or a body is not taken out, and must be that of the capture.
func TestKeyElsewhere(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		carrier   profile.Carrier
		url, body string
	}{
		"query": {profile.Carrier{Place: profile.Query, Name: "rid"}, "https://api.example.com/?rid=K", "{}"},
		"body":  {profile.Carrier{Place: profile.Body, Name: "/rid"}, "https://api.example.com/", `{"rid":"K"}`},
	} {
		c, _ := clienttest.New(t, &wiretest.Wire{}, func(cfg *oncehttp.Config) {
			cfg.Profile = clienttest.OwnProfile()
			cfg.Profile.Carrier = r.carrier
		})
		for _, key := range []string{"k", "other"} {
			req, err := c.Capture(t.Context(), "k", func(hc *http.Client) error {
				return send(hc, clienttest.Request(t, "POST", strings.Replace(r.url, "K", key, 1), strings.Replace(r.body, "K", key, 1)))
			})
			if key == "other" {
				checkRefused(t, err, oncehttp.ErrKeyInvalid)
				continue
			}
			clienttest.Must(t, err)
			if rec, err := c.Prepare(req, "k"); err != nil || rec.WireKey != "k" {
				t.Errorf("%s: %+v, %v", name, rec, err)
			}
		}
	}
}

package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
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
		"GetBody fails":                  {int64(len(body)), func() (io.ReadCloser, error) { return nil, wiretest.ErrLost }, false},
		"GetBody's body fails":           {int64(len(body)), func() (io.ReadCloser, error) { return io.NopCloser(wiretest.Failing{Err: wiretest.ErrLost}), nil }, false},
		"GetBody gives nothing, neither": {int64(len(body)), gives(""), false},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500}, {Status: 201}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 })
				req := clienttest.Post(t, body)
				req.Body, req.ContentLength, req.GetBody = once(body), r.length, r.getBody
				if _, err := c.DoKey(req, "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				_, err := c.DoKey(req, "k")
				if r.sent {
					if err != nil || w.Count() != 2 || w.Sends[1].Body != body {
						t.Errorf("%v, sends %+v", err, w.Sends)
					}
					return
				}
				if !errors.Is(err, oncehttp.ErrConfig) || w.Count() != 1 {
					t.Errorf("%v after %d sends, want ErrConfig after 1", err, w.Count())
				}
			})
		})
	}
}

// TestUsedUpThroughTransport: through Transport a body of no byte and of unknown length is an empty one, as it is to net/http. So a request that
// was used up is another one under its key, and is not sent.
func TestUsedUpThroughTransport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500}, {Status: 201}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 })
		req := clienttest.Post(t, `{"amount":1}`)
		req.Header.Set("Idempotency-Key", "k")
		req.ContentLength, req.GetBody = -1, nil
		if resp, err := c.Transport().RoundTrip(req); err != nil || resp.StatusCode != 500 {
			t.Fatal(resp, err)
		}
		if _, err := c.Transport().RoundTrip(req); !errors.Is(err, oncehttp.ErrKeyReused) || w.Count() != 1 {
			t.Errorf("%v after %d sends, want ErrKeyReused after 1", err, w.Count())
		}
		req.Header.Set("Idempotency-Key", "other")
		if resp, err := c.Transport().RoundTrip(req); err != nil || resp.StatusCode != 201 || w.Sends[1].Body != "" {
			t.Errorf("%v, %v, sends %+v; want an empty body", resp, err, w.Sends)
		}
	})
}

// TestPartOfABodyIsNeverSent: where some of a body was read before the call, GetBody does not stand in for it.
func TestPartOfABodyIsNeverSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, nil)
		req := clienttest.Post(t, `{"amount":1}`)
		_, _ = io.ReadFull(req.Body, make([]byte, 3))
		if _, err := c.DoKey(req, "k"); !errors.Is(err, oncehttp.ErrConfig) || w.Count() != 0 {
			t.Errorf("%v after %d sends", err, w.Count())
		}
	})
}

// TestBodyThatBreaksOffIsNeverSent: a body of unknown length that ends in an error, that of an inbound request whose
// sender went away included, is not taken for a whole one.
func TestBodyThatBreaksOffIsNeverSent(t *testing.T) {
	t.Parallel()
	for _, breaks := range []error{io.ErrUnexpectedEOF, wiretest.ErrLost} {
		for _, length := range []int64{-1, 12} {
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, _ := clienttest.New(t, w, nil)
				req := clienttest.Post(t, "")
				req.Body, req.ContentLength, req.GetBody = io.NopCloser(io.MultiReader(strings.NewReader(`{"amount":1`), wiretest.Failing{Err: breaks})), length, nil
				if _, err := c.DoKey(req, "k"); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, breaks) || w.Count() != 0 {
					t.Errorf("%v, length %d: %v, sends %+v", breaks, length, err, w.Sends)
				}
			})
		}
	}
}

// TestNewKeySeesNoBody: NewKey is asked before the body is read, gets a copy without Body, and can change nothing.
func TestNewKeySeesNoBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.NewKey = func(req *http.Request) (oncehttp.Key, error) {
				if req.Body != nil || req.GetBody == nil || req.Header.Get("X-Order") != "7" || req.URL.Path != "/payments" {
					t.Errorf("NewKey got %+v", req)
				}
				req.Header.Set("X-Order", "8")
				req.URL.Path = "/other"
				return "made", nil
			}
		})
		req := clienttest.Post(t, `{"amount":1}`)
		req.Header.Set("X-Order", "7")
		if _, err := c.Do(req); err != nil || w.Sends[0].Body != `{"amount":1}` || w.Sends[0].Header.Get("X-Order") != "7" || !strings.Contains(w.Sends[0].URL, "/payments") {
			t.Errorf("%v, sent %+v", err, w.Sends)
		}
	})
}

// TestErrorNamesTheKey: an error before anything begins carries the key that the call names, however it names it.
func TestErrorNamesTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, nil)
		for name, change := range map[string]func(*http.Request){
			"trailers":     func(r *http.Request) { r.Trailer = http.Header{"X": nil} },
			"a bad header": func(r *http.Request) { r.Header.Set("X-A", "b\nc") },
			"no URL's":     func(r *http.Request) { r.URL.Scheme = "ftp" },
			"a body":       func(r *http.Request) { r.ContentLength = 99 },
			"a method":     func(r *http.Request) { r.Method = "CONNECT" },
		} {
			for _, how := range []string{"call", "header", "context", "enqueue"} {
				req := clienttest.Post(t, "{}")
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
				if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || e.Key != "k" || !errors.Is(err, oncehttp.ErrConfig) {
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
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, nil)
		req := clienttest.Post(t, "{}")
		req.Header.Set("Idempotency-Key", "k")
		if err := c.Enqueue(req, ""); err != nil || clienttest.Lookup(t, c, "k").State != persist.StatePending {
			t.Errorf("key in the header: %v", err)
		}
		if err := c.Enqueue(clienttest.Post(t, "{}").WithContext(oncehttp.ContextWithKey(t.Context(), "k2")), ""); err != nil || clienttest.Lookup(t, c, "k2").Generated {
			t.Errorf("key in the context: %v", err)
		}
		if err := c.Enqueue(clienttest.Post(t, "{}"), ""); !errors.Is(err, oncehttp.ErrKeyInvalid) {
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
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = bodyCarrier() })
				req := clienttest.Request(t, "PUT", "https://api.example.com/p", body)
				if !said && body != "" {
					req.Body, req.ContentLength, req.GetBody = io.NopCloser(strings.NewReader(body)), -1, nil
				}
				resp, err := c.Do(req)
				if err != nil || w.Count() != 1 || w.Sends[0].Body != body {
					t.Fatalf("%q: %v, sends %+v", body, err, w.Sends)
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
		"broken":    {io.MultiReader(strings.NewReader(`{"key":`), wiretest.Failing{Err: wiretest.ErrLost}), oncehttp.ErrConfig},
		"too large": {strings.NewReader(strings.Repeat(" ", 101)), oncehttp.ErrBodyTooLarge},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile, cfg.MaxRequestBytes = bodyCarrier(), 100 })
			req := clienttest.Request(t, "PUT", "https://api.example.com/p", "")
			req.Body, req.ContentLength = io.NopCloser(r.body), -1
			_, err := c.Do(req)
			if clienttest.ExactlyOne(t, err); !errors.Is(err, r.want) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 0 {
				t.Errorf("%s: %v after %d sends", name, err, w.Count())
			}
		})
	}
}

// TestMethodsAreCaseSensitive: a standard method that is not in upper case is refused, as a request's and as one of
// Config.Methods: it would be journaled nowhere. Extension methods stay as they are.
func TestMethodsAreCaseSensitive(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"post", "Post", "patch", "get", "dELETE", "PO ST"} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, nil)
			req := clienttest.Post(t, "{}")
			req.Method = method
			_, err := c.Do(req)
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) || w.Count() != 0 {
				t.Errorf("%s: %v after %d sends, want ErrConfig", method, err, w.Count())
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
			rec, err := c.Prepare(clienttest.Request(t, "POST", url, "{}"), "k")
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

// TestGetBodyThatGivesNothing: a GetBody with neither a body nor an error is a wrong request, and no panic.
func TestGetBodyThatGivesNothing(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{}
	c, _ := clienttest.New(t, w, nil)
	req := clienttest.Post(t, "{}")
	_, _ = io.Copy(io.Discard, req.Body)
	req.GetBody = func() (io.ReadCloser, error) { return nil, nil }
	_, err := c.DoKey(req, "k")
	if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrNoEffect) || w.Count() != 0 {
		t.Errorf("%v after %d sends", err, w.Count())
	}
}

// TestHeldForItsCallerSaysTheWayOn: the error of an operation that is held for its caller names what ends it, and a call with its key goes on.
func TestHeldForItsCallerSaysTheWayOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 })
		_, err := clienttest.SDK(t, c, "k")
		if err == nil || !strings.Contains(err.Error(), "held until settled, or until a call with this key goes on, after 1 attempt") {
			t.Errorf("%v names no way on", err)
		}
		if resp, err := clienttest.SDK(t, c, "k"); err != nil || resp.StatusCode != 201 {
			t.Errorf("%v, %v; want that it goes on", resp, err)
		}
		c, _ = clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 302, Header: "Location: https://other.example/"}}}, nil)
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err == nil || !strings.Contains(err.Error(), "held until settled, redirect") {
			t.Errorf("%v", err)
		}
	})
}

// TestCancelEndsTheCall: a call ends when the request's Cancel is closed, that of Do, too; the operation goes on with its key. Closed after the
// deadline, as an http.Client closes it, Cancel is no other end than that.
func TestCancelEndsTheCall(t *testing.T) {
	t.Parallel()
	for _, through := range []bool{false, true} {
		for _, late := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: 10 * time.Second}, {Status: 201}}}
				c, _ := clienttest.New(t, w, nil)
				do := c.Do
				if through {
					do = c.Transport().RoundTrip
				}
				ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(5*time.Second))
				defer cancel()
				if !late {
					ctx = t.Context()
				}
				canceled := make(chan struct{})
				time.AfterFunc(5*time.Second, func() { close(canceled) })
				req := clienttest.Post(t, "{}").WithContext(ctx)
				req.Header.Set("Idempotency-Key", "k")
				//lint:ignore SA1019 callers set it
				req.Cancel = canceled
				began := time.Now()
				_, err := do(req)
				if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, context.DeadlineExceeded) != late || time.Since(began) != 5*time.Second {
					t.Errorf("through Transport %t, late %t: %v after %v", through, late, err, time.Since(began))
				}
				if !late && !strings.Contains(err.Error(), "net/http: request canceled") {
					t.Errorf("%v is not in net/http's words", err)
				}
				again := clienttest.Post(t, "{}")
				again.Header.Set("Idempotency-Key", "k")
				if resp, err := do(again); err != nil || resp.StatusCode != 201 {
					t.Errorf("%v, %v; want that the key goes on", resp, err)
				}
			})
		}
	}
}

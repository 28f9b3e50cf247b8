package oncehttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

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

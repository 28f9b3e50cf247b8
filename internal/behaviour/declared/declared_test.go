// Package declared_test holds which requests through a client are operations, and that everything else is net/http.
package declared_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// undeclared takes out what clienttest.New declares.
func undeclared(cfg *oncehttp.Config) { cfg.Operation = nil }

// keyAt sets a profile whose keys travel at this place.
func keyAt(place profile.Place, name string) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		cfg.Profile = clienttest.OwnProfile()
		cfg.Profile.Carrier = profile.Carrier{Place: place, Name: name}
	}
}

// endpointsOf sets a profile with these endpoints.
func endpointsOf(texts ...string) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		cfg.Profile = clienttest.OwnProfile()
		for _, text := range texts {
			e, err := profile.ParseEndpoint(text)
			if err != nil {
				panic(err)
			}
			cfg.Profile.Endpoints = append(cfg.Profile.Endpoints, e)
		}
	}
}

// operations sets Operation.
func operations(operation func(*http.Request) bool) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.Operation = operation }
}

// making sets NewKey.
func making(key oncehttp.Key, err error) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return key, err }
	}
}

// A change of a request.
type asked func(*http.Request) *http.Request

// having sets a header of a request.
func having(name, value string) asked {
	return func(req *http.Request) *http.Request {
		req.Header.Set(name, value)
		return req
	}
}

// inContext gives a request a ContextWithKey.
func inContext(req *http.Request) *http.Request {
	return req.WithContext(oncehttp.ContextWithKey(req.Context(), "k"))
}

// as returns a request of this method with this body and type.
func as(method, kind, body string) asked {
	return func(req *http.Request) *http.Request {
		again, err := http.NewRequestWithContext(req.Context(), method, req.URL.String(), strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		again.Header.Set("Content-Type", kind)
		return again
	}
}

// unsized takes a request's length and its GetBody away.
func unsized(req *http.Request) *http.Request {
	req.ContentLength, req.GetBody, req.Body = -1, nil, io.NopCloser(io.MultiReader(req.Body))
	return req
}

var errOwn = errors.New("of the user")

// TestWhatIsAnOperation: through Transport and StandardClient a request is an operation only if it is declared one.
func TestWhatIsAnOperation(t *testing.T) {
	t.Parallel()
	const form, json = "application/x-www-form-urlencoded", "application/json"
	always := operations(func(*http.Request) bool { return true })
	never := operations(func(*http.Request) bool { return false })
	rows := []struct {
		name    string
		config  func(*oncehttp.Config)
		request []asked
		is      bool
		refused error // of an operation that is not sent
	}{
		{name: "no key"},
		{name: "a key", request: []asked{having("Idempotency-Key", "k")}, is: true},
		{name: "a key, whatever Operation says", config: never, request: []asked{having("Idempotency-Key", "k")}, is: true},
		{name: "an empty key", request: []asked{having("Idempotency-Key", "")}, refused: oncehttp.ErrKeyInvalid},
		{name: "another API's key", request: []asked{having("PayPal-Request-Id", "k")}},
		{name: "another API's key, declared", config: always, request: []asked{having("PayPal-Request-Id", "k")}, refused: oncehttp.ErrKeyInvalid},
		{name: "a GET with a key", request: []asked{as("GET", json, ""), having("Idempotency-Key", "k")}},
		{name: "a PUT with a key", request: []asked{as("PUT", json, "{}"), having("Idempotency-Key", "k")}, is: true},
		{name: "a method in another case", request: []asked{as("post", json, "{}")}},
		{name: "a method in another case, declared", config: operations(oncehttp.Writes), request: []asked{as("post", json, "{}")}, refused: oncehttp.ErrConfig},

		{name: "a key in JSON", config: keyAt(profile.Body, "/id"), request: []asked{as("POST", json, `{"id":"k"}`)}, is: true},
		{name: "no key in JSON", config: keyAt(profile.Body, "/id"), request: []asked{as("POST", json, `{}`)}},
		{name: "a key in JSON of unknown length", config: keyAt(profile.Body, "/id"), request: []asked{as("POST", json, `{"id":"k"}`), unsized}},
		{name: "a key in what is no JSON", config: keyAt(profile.Body, "/id"), request: []asked{as("POST", "application/grpc", `{"id":"k"}`)}},
		{name: "a key in too much JSON", config: clienttest.Together(keyAt(profile.Body, "/id"), func(cfg *oncehttp.Config) { cfg.MaxRequestBytes = 9 }), request: []asked{as("POST", json, `{"id":"k"}`)}},
		{name: "a key in a form", config: keyAt(profile.Form, "id"), request: []asked{as("POST", form, `id=k`)}, is: true},
		{name: "a key in the query", config: keyAt(profile.Query, "via"), is: true},
		{name: "no key in JSON, declared", config: clienttest.Together(keyAt(profile.Body, "/id"), always), request: []asked{as("POST", json, `{}`)}, refused: oncehttp.ErrKeyInvalid},

		{name: "named by Operation", config: always, is: true},
		{name: "a DELETE named by Operation", config: always, request: []asked{as("DELETE", json, "")}, is: true},
		{name: "a GET named by Operation", config: always, request: []asked{as("GET", json, "")}},
		{name: "not named by Operation", config: never},

		{name: "in a ContextWithKey", request: []asked{inContext}, is: true},
		{name: "a token in a ContextWithKey", request: []asked{as("POST", form, "grant_type=refresh_token"), inContext}},
		{name: "a PUT in a ContextWithKey", request: []asked{as("PUT", json, "{}"), inContext}},
		{name: "in a ContextWithKey, not named by Operation", config: never, request: []asked{inContext}},
		{name: "a PUT in a ContextWithKey, named by Operation", config: always, request: []asked{as("PUT", json, "{}"), inContext}, is: true},

		{name: "NewKey has one", config: making("made", nil), is: true},
		{name: "NewKey has one, for a PUT", config: making("made", nil), request: []asked{as("PUT", json, "{}")}},
		{name: "NewKey has none", config: making("", oncehttp.ErrNoKey)},
		{name: "NewKey has none, and Operation names it", config: clienttest.Together(always, making("", oncehttp.ErrNoKey)), refused: oncehttp.ErrKeyInvalid},
		{name: "NewKey has none, and Methods names it", config: clienttest.Together(making("", oncehttp.ErrNoKey), func(cfg *oncehttp.Config) { cfg.Methods = []string{"POST"} }), refused: oncehttp.ErrKeyInvalid},
		{name: "NewKey fails", config: making("", errOwn), refused: oncehttp.ErrKeyInvalid},
		{name: "NewKey says nothing", config: making("", nil), refused: oncehttp.ErrKeyInvalid},
		{name: "NewKey has one for a token in a ContextWithKey", config: making("made", nil), request: []asked{as("POST", form, "grant_type=refresh_token"), inContext}},

		{name: "an endpoint", config: endpointsOf("POST /payments"), is: true},
		{name: "no endpoint", config: endpointsOf("POST /refunds")},
		{name: "an endpoint without keys", config: endpointsOf("POST /{any}", "!POST /payments")},
		{name: "an endpoint of KeyHonoured", config: func(cfg *oncehttp.Config) {
			cfg.Profile, cfg.KeyHonoured = clienttest.OwnProfile(), []string{"POST /payments"}
		}, is: true},
		{name: "an endpoint, but other methods", config: clienttest.Together(endpointsOf("POST /payments"), func(cfg *oncehttp.Config) { cfg.Methods = []string{"PUT"} })},

		{name: "a method of Methods", config: func(cfg *oncehttp.Config) { cfg.Methods = []string{"POST"} }, is: true},
		{name: "a method of Methods, whatever Operation says", config: clienttest.Together(never, func(cfg *oncehttp.Config) { cfg.Methods = []string{"POST"} }), is: true},
		{name: "no method of Methods", config: func(cfg *oncehttp.Config) { cfg.Methods = []string{} }},
		{name: "no method of Methods, named by Operation", config: clienttest.Together(always, func(cfg *oncehttp.Config) { cfg.Methods = []string{} }), is: true},
		{name: "RequireKey", config: func(cfg *oncehttp.Config) { cfg.RequireKey = true }, refused: oncehttp.ErrKeyInvalid},
		{name: "RequireKey, not named by Operation", config: clienttest.Together(never, func(cfg *oncehttp.Config) { cfg.RequireKey = true })},
		{name: "RequireKey, named by Operation", config: clienttest.Together(always, func(cfg *oncehttp.Config) { cfg.RequireKey = true }), refused: oncehttp.ErrKeyInvalid},
	}
	for _, r := range rows {
		for _, door := range []string{"Transport", "StandardClient"} {
			t.Run(r.name+" by "+door, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						if undeclared(cfg); r.config != nil {
							r.config(cfg)
						}
					})
					req := clienttest.Post(t, `{"n":1}`)
					for _, change := range r.request {
						req = change(req)
					}
					do := c.Transport().RoundTrip
					if door == "StandardClient" {
						do = c.StandardClient().Do
					}
					resp, err := do(req)
					switch {
					case r.refused != nil:
						if clienttest.ExactlyOne(t, err); !errors.Is(err, r.refused) || w.Count() != 0 {
							t.Errorf("%v after %d sends, want %v", err, w.Count(), r.refused)
						}
					case err != nil || w.Count() != 1:
						t.Errorf("%v after %d sends", err, w.Count())
					case (oncehttp.ResultOf(resp).Key != "") != r.is:
						t.Errorf("an operation: %t, want %t", !r.is, r.is)
					}
				})
			})
		}
	}
}

// TestOperationIsShownACopy: Operation gets the request without its Body, with a GetBody, and no ContextWithKey; what it does to the
// copy changes nothing.
func TestOperationIsShownACopy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		var body string
		c, _ := clienttest.New(t, w, operations(func(req *http.Request) bool {
			if r, err := req.GetBody(); err == nil {
				text, _ := io.ReadAll(r)
				body = string(text)
			}
			if req.Body != nil {
				t.Error("it has a Body")
			}
			req.Header.Set("Idempotency-Key", "spoiled")
			req.URL.Path = "/elsewhere"
			return false
		}))
		if _, err := c.Transport().RoundTrip(clienttest.Post(t, `{"n":1}`)); err != nil {
			t.Fatal(err)
		}
		if got := w.All()[0]; body != `{"n":1}` || got.Body != body || got.Key != "" || !strings.Contains(got.URL, "/payments") {
			t.Errorf("shown %q, sent %+v", body, got)
		}
	})
}

// TestOperationThatPanics: the panic is the caller's, nothing is sent, and the body is closed.
func TestOperationThatPanics(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*oncehttp.Config){
		"Operation": operations(func(*http.Request) bool { panic(errOwn) }),
		"NewKey": func(cfg *oncehttp.Config) {
			cfg.Operation, cfg.NewKey = nil, func(*http.Request) (oncehttp.Key, error) { panic(errOwn) }
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, change)
			req := clienttest.Post(t, "{}")
			body := &closing{Reader: req.Body}
			req.Body = body
			func() {
				defer func() {
					if err := recover(); err != errOwn {
						t.Errorf("%s: recovered %v", name, err)
					}
				}()
				_, _ = c.Transport().RoundTrip(req)
			}()
			if w.Count() != 0 || !body.closed {
				t.Errorf("%s: %d sends, body closed %t", name, w.Count(), body.closed)
			}
			if err := c.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestOperationThatAsksItself: a request that Operation makes through its client is refused, not asked about for ever, and not sent.
func TestOperationThatAsksItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		var c *oncehttp.Client
		calls := 0
		c, _ = clienttest.New(t, w, operations(func(req *http.Request) bool {
			calls++
			_, err := c.Transport().RoundTrip(clienttest.Post(t, "{}").WithContext(req.Context()))
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrKeyInvalid) {
				t.Errorf("%v, want ErrKeyInvalid", err)
			}
			return true
		}))
		if _, err := c.Transport().RoundTrip(clienttest.Post(t, "{}")); err != nil || calls != 1 || w.Count() != 1 {
			t.Errorf("%v after %d calls and %d sends", err, calls, w.Count())
		}
	})
}

// TestNewKeyIsAskedOnce for a request through Transport.
func TestNewKeyIsAskedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.Together(undeclared, func(cfg *oncehttp.Config) {
			cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { calls++; return "made", nil }
		}))
		if _, err := c.Transport().RoundTrip(clienttest.Post(t, "{}")); err != nil || calls != 1 || w.All()[0].Key != "made" {
			t.Errorf("%v after %d calls, sent %v", err, calls, w.All())
		}
	})
}

// TestUnreadableBodyIsNotUnprotected: where the key travels in a body that cannot be read, nothing is sent.
func TestUnreadableBodyIsNotUnprotected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.Together(undeclared, keyAt(profile.Body, "/id")))
		req := clienttest.Post(t, `{"id":"k"}`)
		req.Body, req.GetBody = io.NopCloser(io.MultiReader(strings.NewReader(`{"id`), breaking{})), nil
		_, err := c.Transport().RoundTrip(req)
		if clienttest.ExactlyOne(t, err); !errors.Is(err, errOwn) || w.Count() != 0 {
			t.Errorf("%v after %d sends, want the body's error and none", err, w.Count())
		}
	})
}

// breaking is a body that breaks off.
type breaking struct{}

func (breaking) Read([]byte) (int, error) { return 0, errOwn }

// TestDoIsGivenOperations: what Do is given needs no declaration.
func TestDoIsGivenOperations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, operations(func(*http.Request) bool { t.Error("Do asks Operation"); return false }))
		resp, err := c.Do(clienttest.Post(t, "{}"))
		if err != nil || oncehttp.ResultOf(resp).Key == "" {
			t.Errorf("%v, %v", resp, err)
		}
	})
}

// TestPassesAfterClose: what is no operation passes, and what is one is refused.
func TestPassesAfterClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200}}}
		c, _ := clienttest.New(t, w, operations(func(req *http.Request) bool { return req.URL.Path == "/payments" }))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := c.Transport().RoundTrip(clienttest.Post(t, "{}"))
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrClosed) || w.Count() != 0 {
			t.Errorf("an operation: %v after %d sends", err, w.Count())
		}
		if _, err := c.Transport().RoundTrip(clienttest.Request(t, "POST", "https://api.example.com/login", "{}")); err != nil || w.Count() != 1 {
			t.Errorf("a login: %v after %d sends", err, w.Count())
		}
	})
}

// TestAnUnkeyedAPIGetsWhatNetHTTPSends: without a declaration no failure makes a second send.
func TestAnUnkeyedAPIGetsWhatNetHTTPSends(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]wiretest.Reply{
		"503": {Status: 503, Header: "Retry-After: 1"}, "409": {Status: 409}, "429": {Status: 429}, "408": {Status: 408}, "302": {Status: 302}, "lost": {Err: wiretest.ErrLost},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{r, {Status: 201}}}
			j := memory.New()
			c, _ := clienttest.New(t, w, clienttest.Together(clienttest.On(j), undeclared))
			resp, err := c.Transport().RoundTrip(clienttest.Post(t, "{}"))
			if w.Count() != 1 || r.Err != nil && err != r.Err || r.Err == nil && (err != nil || resp.StatusCode != r.Status) {
				t.Errorf("%s: %v, %v after %d sends; want what the transport said after one", name, resp, err, w.Count())
			}
			for rec, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
				t.Errorf("%s: recorded %v, %v", name, rec.ID, err)
			}
		})
	}
}

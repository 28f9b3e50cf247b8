package callbacks_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
)

// TestRequestsOfAuthorize: what Authorize asks for, with the context of its request, at the origin that it authorizes a request to,
// goes out without Authorize, else it would be called for ever. Another origin gets it, and so does another client's
// request, and the next request.
func TestRequestsOfAuthorize(t *testing.T) {
	t.Parallel()
	const api, auth = "https://api.example.com", "https://auth.example.com"
	for name, ask := range map[string]func(*oncehttp.Client, *http.Request) (*http.Response, error){
		"Do": (*oncehttp.Client).Do,
		"Transport": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) {
			return c.Transport().RoundTrip(req)
		},
		"StandardClient": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) { return c.StandardClient().Do(req) },
	} {
		for _, method := range []string{"POST", "GET"} {
			for origin, sent := range map[string][]string{
				api:  {"/token by ", "/payments by payments"},
				auth: {"/key by ", "/token by payments", "/payments by payments"},
			} {
				t.Run(name+" of "+method+" at "+origin, func(t *testing.T) {
					t.Parallel()
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: "{}"}}}
					var c *oncehttp.Client
					var calls atomic.Int32
					c, _ = clienttest.New(t, w, func(cfg *oncehttp.Config) {
						cfg.Authorize = func(req *http.Request) error {
							if calls.Add(1) > 10 {
								return errors.New("it calls itself")
							}
							target := origin + "/token"
							if strings.HasSuffix(req.URL.Path, "/token") {
								target = api + "/key"
							}
							out, _ := http.NewRequestWithContext(req.Context(), method, target, nil)
							resp, err := ask(c, out)
							if err != nil {
								return err
							}
							resp.Body.Close()
							req.Header.Set("Authorization", "payments")
							return nil
						}
					})
					req := clienttest.Request(t, "POST", api+"/payments", "{}")
					if _, err := c.DoKey(req, "payment"); err != nil {
						t.Fatal(err)
					}
					var got []string
					for _, s := range w.All() {
						got = append(got, strings.TrimPrefix(strings.TrimPrefix(s.URL, api), auth)+" by "+s.Header.Get("Authorization"))
					}
					if strings.Join(got, ", ") != strings.Join(sent, ", ") {
						t.Errorf("sent %q, want %q", got, sent)
					}
				})
			}
		}
	}
}

// TestRequestsOfAnotherAuthorize: a client of its own for tokens, with credentials of its own, keeps its Authorize, and the
// next request of the first one gets it again.
func TestRequestsOfAnotherAuthorize(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: "{}"}}}
	tokens, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.Authorize = func(req *http.Request) error { req.SetBasicAuth("app", "secret"); return nil }
	})
	var kept *http.Request
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.Authorize = func(req *http.Request) error {
			req.Header.Set("Authorization", "payments")
			if kept != nil {
				return nil
			}
			kept, _ = http.NewRequestWithContext(req.Context(), "POST", "https://api.example.com/token", nil)
			_, err := tokens.Do(kept)
			return err
		}
	})
	if _, err := c.DoKey(clienttest.Post(t, "{}"), "payment"); err != nil {
		t.Fatal(err)
	}
	if got := w.All()[0].Header.Get("Authorization"); !strings.HasPrefix(got, "Basic ") {
		t.Errorf("the token client's request went out with %q", got)
	}
	later, _ := http.NewRequest("POST", "https://api.example.com/later", nil)
	if _, err := c.Do(later); err != nil || w.All()[2].Header.Get("Authorization") != "payments" {
		t.Errorf("%v; the next request went out with %q", err, w.All()[2].Header.Get("Authorization"))
	}
}

package transport_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// followers are clients that follow redirects over c: a plain one over its Transport, and a StandardClient whose
// CheckRedirect was replaced.
func followers(c *oncehttp.Client) map[string]*http.Client {
	standard := c.StandardClient()
	standard.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
	return map[string]*http.Client{"Transport": {Transport: c.Transport()}, "StandardClient": standard}
}

// TestRedirectElsewhereIsNeverSent: what net/http makes of a redirect to another origin is not sent at all, neither
// under a new key nor under the first, whether that one was given or generated. The error names the first key.
func TestRedirectElsewhereIsNeverSent(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, keyed := range []bool{false, true} {
			for _, name := range []string{"Transport", "StandardClient"} {
				t.Run(fmt.Sprint(status, " keyed ", keyed, " ", name), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Header: "Location: https://elsewhere.example/payments"}, {Status: 201}}}
						c, _ := clienttest.New(t, w, nil)
						req := clienttest.Post(t, `{"amount":100}`)
						req.Header.Set("X-Api-Key", "secret")
						if keyed {
							req.Header.Set("Idempotency-Key", "k")
						}
						resp, err := followers(c)[name].Do(req)
						if err == nil {
							t.Fatalf("answered %d after %d sends", resp.StatusCode, w.Count())
						}
						var e *oncehttp.Error
						if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrRedirected) {
							t.Fatalf("%v, want redirected and unknown", err)
						}
						clienttest.ExactlyOne(t, e)
						if w.Count() != 1 || string(e.Key) != w.Sends[0].Key || e.Key == "" {
							t.Errorf("%d sends, error about %q; want one, and its key", w.Count(), e.Key)
						}
						if rec := clienttest.Lookup(t, c, e.Key); rec.State != persist.StateHeld || rec.HoldReason != persist.HoldRedirected {
							t.Errorf("record %v %q, want held as redirected", rec.State, rec.HoldReason)
						}
					})
				})
			}
		}
	}
}

// TestRedirectedReadGoesWithoutTheKey: the GET that net/http makes of a 303 within the origin is sent, without
// the key, and is no operation. What it leads to at another origin is not sent.
func TestRedirectedReadGoesWithoutTheKey(t *testing.T) {
	t.Parallel()
	for _, status := range []int{303} {
		for _, last := range []string{"", "Location: https://elsewhere.example/x"} {
			t.Run(fmt.Sprint(status, last), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{
						{Status: status, Header: "Location: /payments/1"}, {Status: 302, Header: "Location: /payments/2"}, {Status: 200, Body: "paid"},
					}}
					if last != "" {
						w.Replies[2] = wiretest.Reply{Status: 302, Header: last}
					}
					c, _ := clienttest.New(t, w, nil)
					req := clienttest.Post(t, "{}")
					req.Header.Set("Idempotency-Key", "k")
					resp, err := followers(c)["Transport"].Do(req)
					switch {
					case last != "":
						var e *oncehttp.Error
						if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrRedirected) || e.Key != "k" {
							t.Errorf("%v, want redirected, of key k", err)
						}
						if clienttest.ExactlyOne(t, e); errors.Is(err, oncehttp.ErrFinal) != (status == 303) { // the operation's own, final answer
							t.Errorf("%v after a %d", err, status)
						}
					case err != nil || clienttest.Read(t, resp) != "paid":
						t.Errorf("%v, want the resource", err)
					}
					if w.Count() != 3 {
						t.Fatalf("%d sends, want 3", w.Count())
					}
					for _, s := range w.Sends[1:] {
						if s.Method != "GET" || s.Key != "" || !strings.HasPrefix(s.URL, "https://api.example.com/payments/") {
							t.Errorf("sent %s %s with key %q", s.Method, s.URL, s.Key)
						}
					}
				})
			})
		}
	}
}

// TestOwnRequestsAreNotDerived: a request that a caller makes himself, after an answer or beside it, is sent under a
// key of its own.
func TestOwnRequestsAreNotDerived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, nil)
		hc := followers(c)["Transport"]
		for range 2 {
			if _, err := hc.Do(clienttest.Post(t, "{}")); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(w.Keys()); got != 2 {
			t.Errorf("%d keys, want 2", got)
		}
	})
}

// forgetful is a wrapper that replaces the request of every response.
type forgetful struct{ http.RoundTripper }

func (f forgetful) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := f.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Request = &http.Request{Method: req.Method, URL: req.URL}
	}
	return resp, err
}

// TestRedirectUnderAWrapper: also where a wrapper hides which answer a redirect came from, no operation is sent anew,
// and no key leaves its origin.
func TestRedirectUnderAWrapper(t *testing.T) {
	t.Parallel()
	for status, to := range map[int]string{302: "https://elsewhere.example/payments", 303: "/payments/1", 307: "https://elsewhere.example/payments"} {
		for _, keyed := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Header: "Location: " + to}, {Status: 200}}}
				c, _ := clienttest.New(t, w, nil)
				req := clienttest.Post(t, "{}")
				if keyed {
					req.Header.Set("Idempotency-Key", "k")
				}
				_, err := (&http.Client{Transport: forgetful{c.Transport()}}).Do(req)
				if status == 303 && !keyed { // nothing tells it from any other GET
					if err != nil || w.Count() != 2 || w.Sends[1].Key != "" {
						t.Errorf("%d: %v after %d sends", status, err, w.Count())
					}
					return
				}
				if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrRedirected) || w.Count() != 1 {
					t.Errorf("%d, keyed %v: %v after %d sends; want redirected and unknown after one", status, keyed, err, w.Count())
				}
			})
		}
	}
}

package transport_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestRedirectsAcrossHosts, over real servers: a keyed write never becomes a GET,
// and neither key, body nor credentials reach another host, whoever follows
// redirects above. A 303 to another host, maybe a login page, is no answer.
func TestRedirectsAcrossHosts(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, plain := range []bool{false, true} {
			t.Run(strconv.Itoa(status)+" plain "+strconv.FormatBool(plain), func(t *testing.T) {
				t.Parallel()
				other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					t.Errorf("another host got %s with key %q and Authorization %q", r.Method, r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"))
				}))
				t.Cleanup(other.Close)
				sends := 0
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					sends++
					if r.Method != "POST" {
						t.Errorf("method %s", r.Method)
					}
					http.Redirect(w, r, other.URL+"/elsewhere", status)
				}))
				t.Cleanup(srv.Close)
				c, _ := clienttest.New(t, wiretest.Transport(t), func(cfg *oncehttp.Config) { cfg.Retry = clienttest.Quick(3) })
				req := clienttest.Request(t, "POST", srv.URL+"/payments", "{}")
				req.Header.Set("Idempotency-Key", "k")
				req.Header.Set("Authorization", "Bearer secret")
				do := c.Do
				if plain {
					do = c.StandardClient().Do
				}
				_, err := do(req)
				rec := clienttest.Lookup(t, c, "k")
				if !errors.Is(err, oncehttp.ErrRedirected) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || rec.HoldReason != persist.HoldRedirected {
					t.Errorf("%v, record %v %q; want redirected, unknown and held", err, rec.State, rec.HoldReason)
				}
				if sends != 1 {
					t.Errorf("%d sends, want 1", sends)
				}
			})
		}
	}
}

// TestHops: a same-origin 307 or 308 is followed three times; each hop is a send with
// the same key and bytes, and with credentials of its own. The bytes are there, too,
// where the caller's body can be read only once.
func TestHops(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		hops int
		body string
		ok   bool
	}{{1, `{"amount":1}`, true}, {3, `{"amount":1}`, true}, {3, "", true}, {4, `{"amount":1}`, false}} {
		t.Run(strconv.Itoa(r.hops)+" hops, body "+strconv.Quote(r.body), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var got []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				mu.Lock()
				defer mu.Unlock()
				got = append(got, req.Method+" "+req.URL.String()+" "+req.Header.Get("Idempotency-Key")+" "+string(body)+" "+req.Header.Get("X-Sign"))
				if n := len(got); n <= r.hops {
					w.Header().Set("Location", "/hop"+strconv.Itoa(n)+"?n=1#f")
					w.WriteHeader([]int{307, 308}[n%2])
				}
			}))
			t.Cleanup(srv.Close)
			signed := 0
			c, _ := clienttest.New(t, wiretest.Transport(t), func(cfg *oncehttp.Config) {
				cfg.Retry = clienttest.Quick(3)
				cfg.Authorize = func(req *http.Request) error {
					signed++
					req.Header.Set("X-Sign", req.URL.Path)
					return nil
				}
			})
			req := clienttest.Request(t, "POST", srv.URL+"/payments", r.body)
			if r.body != "" {
				req.Body, req.GetBody = io.NopCloser(strings.NewReader(r.body)), nil
			}
			resp, err := c.DoKey(req, "k")
			sends := min(r.hops, 3) + 1
			if r.ok {
				if err != nil || resp.StatusCode != 200 || oncehttp.ResultOf(resp).Sends != sends || oncehttp.ResultOf(resp).Attempts != 1 {
					t.Errorf("%v, %+v; want 200 after one attempt and %d sends", err, oncehttp.ResultOf(resp), sends)
				}
			} else if !errors.Is(err, oncehttp.ErrRedirected) || clienttest.Lookup(t, c, "k").State != persist.StateHeld {
				t.Errorf("%v, want ErrRedirected and held", err)
			}
			if len(got) != sends || signed != sends {
				t.Errorf("%d sends and %d calls of Authorize, want %d: %q", len(got), signed, sends, got)
			}
			for i, line := range got {
				path, query := "/payments", ""
				if i > 0 {
					path, query = "/hop"+strconv.Itoa(i), "?n=1"
				}
				if want := "POST " + path + query + " k " + r.body + " " + path; line != want {
					t.Errorf("send %d was %q, want %q", i, line, want)
				}
			}
		})
	}
}

// TestHopsAndTheWindow: every hop is a send, so the window is looked at before it.
func TestHopsAndTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := profile.Draft07()
		p.Window.Floor = 100 * time.Second // sendable for 60: 30 attempt timeout, 10 skew
		moved := wiretest.Reply{Status: 308, Header: "Location: /a", Delay: 25 * time.Second}
		w := &wiretest.Wire{Replies: []wiretest.Reply{moved}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
		start := time.Now()
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v, want unknown", err)
		}
		if w.Count() != 3 || w.Sends[2].At.Sub(start) != 50*time.Second {
			t.Errorf("%d sends, want 3, at 0 s, 25 s and 50 s; 75 s is past the window", w.Count())
		}
	})
}

// TestMalformedLocation: whatever stands in Location, one send, one clear error,
// and the record held.
func TestMalformedLocation(t *testing.T) {
	t.Parallel()
	for _, location := range []string{
		"", ":", "://", "http://[::1", "https://api.example.com:port/", "mailto:x@example.com", "https:opaque", "http://",
		"https://api.example.com:99999/x", "http://api.example.com/downgrade", "https://api.example.com.evil.example/", "//evil.example/",
		"/\x00", "https://api.example.com@evil.example/", "https://API.example.com:444/",
	} {
		t.Run(strconv.Quote(location), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 307, Header: "Location:" + location}}}
				c, _ := clienttest.New(t, w, nil)
				_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				clienttest.ExactlyOne(t, err)
				if !errors.Is(err, oncehttp.ErrRedirected) || w.Count() != 1 || clienttest.Lookup(t, c, "k").State != persist.StateHeld {
					t.Errorf("%v after %d sends, want ErrRedirected after 1, held", err, w.Count())
				}
			})
		})
	}
}

// TestHopsToTheSameOrigin: other spellings of the same origin are followed, and
// userinfo in a Location is nobody's credential.
func TestHopsToTheSameOrigin(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"https://API.EXAMPLE.COM:443/a":      "https://api.example.com/a",
		"//api.example.com/a":                "https://api.example.com/a",
		"b?x=1":                              "https://api.example.com/b?x=1",
		"https://eve:pw@api.example.com/a#f": "https://api.example.com/a",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 308, Header: "Location: " + location}, {Status: 201}}}
			c, _ := clienttest.New(t, w, nil)
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			if got := w.Sends[1]; !strings.EqualFold(got.URL, want) || got.Header.Get("Authorization") != "" {
				t.Errorf("%s led to %s with Authorization %q, want %s without", location, got.URL, got.Header.Get("Authorization"), want)
			}
		})
	}
}

// TestHopKeepsTheKeyInTheQuery: where the key stands in the query, a redirect that
// drops or changes it would send the operation without its key.
func TestHopKeepsTheKeyInTheQuery(t *testing.T) {
	t.Parallel()
	for location, follows := range map[string]bool{
		"/v2/payments":                   false,
		"/v2/payments?nonce=other":       false,
		"/v2/payments?nonce=k1&nonce=k1": false,
		"/v2/payments?nonce=k1":          true,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := profile.Draft07()
			p.Name, p.Carrier = "in query", profile.Carrier{Place: profile.Query, Name: "nonce"}
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 307, Header: "Location: " + location}, {Status: 201}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
			_, err := c.Do(clienttest.Request(t, "POST", "https://api.example.com/payments?nonce=k1", "{}"))
			if follows != (err == nil) || w.Count() != map[bool]int{true: 2, false: 1}[follows] {
				t.Errorf("to %s: %v after %d sends; follow it: %v", location, err, w.Count(), follows)
			}
		})
	}
}

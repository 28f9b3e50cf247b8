package transport_test

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestWhatTheTransportWouldRefuse is refused before the journal: afterwards
// nothing proves that it was not sent.
func TestWhatTheTransportWouldRefuse(t *testing.T) {
	t.Parallel()
	at := func(u url.URL) func(*http.Request) { return func(r *http.Request) { r.URL = &u } }
	rows := map[string]func(*http.Request){
		"no URL":                  func(r *http.Request) { r.URL = nil },
		"a relative URL":          at(url.URL{Path: "/x"}),
		"another scheme":          at(url.URL{Scheme: "ftp", Host: "h", Path: "/"}),
		"no host":                 at(url.URL{Scheme: "https", Path: "/"}),
		"an opaque URL":           at(url.URL{Scheme: "https", Host: "h", Opaque: "//evil/x"}),
		"a path into the host":    at(url.URL{Scheme: "https", Host: "h", Path: "@evil.example/"}),
		"a path without a slash":  at(url.URL{Scheme: "https", Host: "h", Path: "x"}),
		"a blank in the query":    at(url.URL{Scheme: "https", Host: "h", Path: "/", RawQuery: "a b"}),
		"a line in the query":     at(url.URL{Scheme: "https", Host: "h", Path: "/", RawQuery: "a\r\nX: y"}),
		"a fragment in the query": at(url.URL{Scheme: "https", Host: "h", Path: "/", RawQuery: "a#b"}),
		"a host with a slash":     at(url.URL{Scheme: "https", Host: "h/x", Path: "/"}),
		"a host with an at":       at(url.URL{Scheme: "https", Host: "h@evil.example", Path: "/"}),
		"a port that is none":     at(url.URL{Scheme: "https", Host: "h:x", Path: "/"}),
		"a bad Host":              func(r *http.Request) { r.Host = "a b" },
		"CONNECT":                 func(r *http.Request) { r.Method = "CONNECT" },
		"a bad method":            func(r *http.Request) { r.Method = "PO ST" },
		"a bad header name":       func(r *http.Request) { r.Header["X Y"] = []string{"z"} },
		"a bad header value":      func(r *http.Request) { r.Header.Set("X-Y", "a\r\nb") },
		"a zero byte":             func(r *http.Request) { r.Header.Set("X-Y", "a\x00") },
		"trailers":                func(r *http.Request) { r.Trailer = http.Header{"X": nil} },
		"an upgrade":              func(r *http.Request) { r.Header.Set("Upgrade", "websocket") },
	}
	for name, change := range rows {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, nil)
			req := clienttest.Post(t, "{}")
			change(req)
			for op, err := range map[string]error{
				"do":      func() error { _, err := c.DoKey(req, "k"); return err }(),
				"enqueue": c.Enqueue(req, "k"),
			} {
				if !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrNoEffect) {
					t.Errorf("%s %s: %v, want ErrConfig and ErrNoEffect", op, name, err)
				}
			}
			if _, err := c.Lookup(t.Context(), "k"); w.Count() != 0 || !errors.Is(err, persist.ErrNotFound) {
				t.Errorf("%s: %d sends, record: %v", name, w.Count(), err)
			}
		})
	}
}

// TestHost: the request's own Host field is sent and belongs to what the key
// names; a Host in the header map is nobody's, as in net/http.
func TestHost(t *testing.T) {
	t.Parallel()
	for _, r := range []struct{ field, header, want string }{
		{"", "", "api.example.com"}, {"tenant.example.com", "", "tenant.example.com"},
		{"", "other.example.com", "api.example.com"}, {"tenant.example.com", "other.example.com", "tenant.example.com"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var hosts []string
			rt := wiretest.Func(func(req *http.Request) (*http.Response, error) {
				hosts = append(hosts, req.Host+req.Header.Get("Host"))
				return nil, wiretest.ErrLost
			})
			c, _ := clienttest.New(t, rt, func(cfg *oncehttp.Config) { cfg.Retry = oncehttp.Policy{MaxAttempts: 1, MinDelay: 1, MaxDelay: 1} })
			req := clienttest.Post(t, "{}")
			req.Host = r.field
			if r.header != "" {
				req.Header.Set("Host", r.header)
			}
			if _, err := c.DoKey(req, "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("%+v: %v", r, err)
			}
			time.Sleep(time.Minute)
			for range c.Resume(t.Context()) {
				continue
			}
			if len(hosts) != 2 || hosts[0] != r.want || hosts[1] != r.want {
				t.Errorf("%+v: sent to %q", r, hosts)
			}
			other := clienttest.Post(t, "{}")
			other.Host = "another.example.com"
			if _, err := c.DoKey(other, "k"); !errors.Is(err, oncehttp.ErrKeyReused) {
				t.Errorf("%+v: another host under the same key: %v", r, err)
			}
		})
	}
}

// TestTargets: what a URL may look like arrives as it is, from Do and from a
// Resume that has only the record.
func TestTargets(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://api.example.com":                         "https://api.example.com/",
		"https://API.example.com:443/p":                   "https://api.example.com/p",
		"https://api.example.com:8443/p":                  "https://api.example.com:8443/p",
		"http://api.example.com:80/p":                     "http://api.example.com/p",
		"https://api.example.com:80/p":                    "https://api.example.com:80/p",
		"https://[::1]:443/p":                             "https://[::1]/p",
		"https://[2001:DB8::1]/p":                         "https://[2001:db8::1]/p",
		"https://api.example.com//evil.example/p":         "https://api.example.com//evil.example/p",
		"https://api.example.com/a%2Fb%20c?q=%2F&x=%zz#f": "https://api.example.com/a%2Fb%20c?q=%2F&x=%zz",
		"https://api.example.com/p?":                      "https://api.example.com/p?",
		"https://api.example.com/é?ü":                     "https://api.example.com/%C3%A9?ü",
		"https://user:pw@api.example.com/p?a=b?c=d":       "https://api.example.com/p?a=b?c=d",
	} {
		for _, resumed := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.OriginAllowed = func(string) bool { return true }
					cfg.Authorize = func(*http.Request) error { return nil }
				})
				req := clienttest.Request(t, "POST", in, "{}")
				var err error
				if resumed {
					err = c.Enqueue(req, "k")
					for _, e := range c.Resume(t.Context()) {
						err = errors.Join(err, e)
					}
				} else {
					_, err = c.DoKey(req, "k")
				}
				if err != nil || w.Count() != 1 {
					t.Fatalf("%s: %v after %d sends", in, err, w.Count())
				}
				got := w.Sends[0].URL
				if u, _ := url.Parse(got); u != nil && u.Path == "" {
					got += "/" // as net/http sends it
				}
				if got != want {
					t.Errorf("%s (resumed %v) was sent to %s, want %s", in, resumed, got, want)
				}
			})
		}
	}
}

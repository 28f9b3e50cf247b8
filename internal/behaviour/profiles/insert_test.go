package profiles_test

import (
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

// carried returns a change to a profile whose keys travel at this place.
func carried(place profile.Place, name string) func(*oncehttp.Config) {
	return clienttest.WithProfile("mine", func(p *profile.Profile) {
		p.Carrier, p.Methods = profile.Carrier{Place: place, Name: name}, []string{"POST"}
		if place == profile.Form {
			p.Body.Formats = []profile.BodyFormat{profile.FormBody}
		}
	})
}

// inserting sets InsertKey.
func inserting(cfg *oncehttp.Config) { cfg.InsertKey = true }

// posted is a POST with this body and Content-Type.
func posted(t *testing.T, url, kind, body string) *http.Request {
	t.Helper()
	req := clienttest.Request(t, http.MethodPost, url, body)
	req.Header.Set("Content-Type", kind)
	return req
}

// TestAKeyIsPutIn as the last member, before the request is compared and recorded: each send has the same bytes, the same call finds its
// operation, and so does one that carries these bytes itself, whatever its Config.
func TestAKeyIsPutIn(t *testing.T) {
	t.Parallel()
	const key, at = "idemp:order:u1:o7", "https://api.example.com/orders"
	for name, r := range map[string]struct {
		carrier                func(*oncehttp.Config)
		url, kind, body        string
		target, sentBody       string
		carries, carriesTarget string
	}{
		"JSON":          {carried(profile.Body, "/idempotency_key"), at, "application/json", "{\"amount\": 1.00 }\n", "/orders", `{"amount": 1.00,"idempotency_key":"` + key + "\" }\n", "", ""},
		"no type":       {carried(profile.Body, "/k"), at, "", `{}`, "/orders", `{"k":"` + key + `"}`, "", ""},
		"nested":        {carried(profile.Body, "/variables/input/k"), at, "application/graphql-response+json", `{"variables":{"input":{"a":1}},"query":"q"}`, "/orders", `{"variables":{"input":{"a":1,"k":"` + key + `"}},"query":"q"}`, "", ""},
		"form":          {carried(profile.Form, "meta[key]"), at, "application/x-www-form-urlencoded", "a=1&b=%20", "/orders", "a=1&b=%20&meta%5Bkey%5D=idemp%3Aorder%3Au1%3Ao7", "", ""},
		"empty form":    {carried(profile.Form, "k"), at, "application/x-www-form-urlencoded", "", "/orders", "k=idemp%3Aorder%3Au1%3Ao7", "", ""},
		"query":         {carried(profile.Query, "requestId"), at + "?a=1", "application/json", "{}", "/orders?a=1&requestId=idemp%3Aorder%3Au1%3Ao7", "{}", "", ""},
		"no query":      {carried(profile.Query, "requestId"), at, "application/json", "{}", "/orders?requestId=idemp%3Aorder%3Au1%3Ao7", "{}", "", ""},
		"there already": {carried(profile.Body, "/k"), at, "application/json", `{"k":"` + key + `","a":1}`, "/orders", `{"k":"` + key + `","a":1}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Body: "{}"}}}
				j := memory.New()
				c, _ := clienttest.New(t, w, clienttest.On(j, r.carrier, inserting, func(cfg *oncehttp.Config) { cfg.KeepRequest = oncehttp.KeepRequestWithAnswer }))
				clienttest.Do(t, c, posted(t, r.url, r.kind, r.body), key)
				for i, s := range w.All() {
					if s.Body != r.sentBody || !strings.HasSuffix(s.URL, r.target) {
						t.Errorf("send %d is %s to %s, want %s to %s", i+1, s.Body, s.URL, r.sentBody, r.target)
					}
				}
				rec := clienttest.Lookup(t, c, key)
				if w.Count() != 2 || rec.State != persist.StateConfirmed || string(rec.Body) != r.sentBody || rec.Target != r.target || rec.WireKey != key {
					t.Errorf("%d sends; the record is of %s to %s under %s, %v", w.Count(), rec.Body, rec.Target, rec.WireKey, rec.State)
				}
				clienttest.Do(t, c, posted(t, r.url, r.kind, r.body), key)
				other, _ := clienttest.New(t, w, clienttest.On(j, r.carrier))
				clienttest.Do(t, other, posted(t, "https://api.example.com"+r.target, r.kind, r.sentBody), key)
				if _, err := c.DoKey(posted(t, r.url+"/2", r.kind, r.body), key); !errors.Is(err, oncehttp.ErrKeyReused) {
					t.Errorf("another request under the key: %v", err)
				}
				if w.Count() != 2 {
					t.Errorf("%d sends, want those of the first call alone", w.Count())
				}
			})
		})
	}
}

// TestAKeyIsNotPutIn where that would not be the caller's request any more, where another key stands there, and where nobody names one.
func TestAKeyIsNotPutIn(t *testing.T) {
	t.Parallel()
	const at = "https://api.example.com/orders"
	body, form, query := carried(profile.Body, "/k"), carried(profile.Form, "k"), carried(profile.Query, "k")
	header := func(name, value string) func(*http.Request) {
		return func(req *http.Request) { req.Header.Set(name, value) }
	}
	for name, r := range map[string]struct {
		carrier         func(*oncehttp.Config)
		url, kind, body string
		change          func(*http.Request)
		key             oncehttp.Key
		says            string
	}{
		"an array":              {body, at, "application/json", `[{"a":1}]`, nil, "k1", "no object for /k"},
		"no JSON":               {body, at, "application/json", `a=1`, nil, "k1", "not one JSON value"},
		"no body":               {body, at, "application/json", ``, nil, "k1", "not one JSON value"},
		"two values":            {body, at, "application/json", `{} {}`, nil, "k1", "not one JSON value"},
		"another case":          {body, at, "application/json", `{"K":"x"}`, nil, "k1", `a member "K"`},
		"null":                  {body, at, "application/json", `{"k":null}`, nil, "k1", "is empty"},
		"another type":          {body, at, "text/csv", `{}`, nil, "k1", "not that of JSON"},
		"compressed":            {body, at, "application/json", `{}`, header("Content-Encoding", "gzip"), "k1", "Content-Encoding"},
		"a digest":              {body, at, "application/json", `{}`, header("Content-Digest", "sha-256=:x:"), "k1", "Content-Digest"},
		"a digest of a form":    {form, at, "application/x-www-form-urlencoded", `a=1`, header("Content-MD5", "x"), "k1", "Content-MD5"},
		"a form of JSON's type": {form, at, "application/json", `a=1`, nil, "k1", "not that of a form"},
		"another key":           {body, at, "application/json", `{"k":"k2"}`, nil, "k1", "two keys in one request"},
		"two keys there":        {query, at + "?k=k1&k=k1", "application/json", `{}`, nil, "k1", "2 keys in"},
		"no key named":          {body, at, "application/json", `{"a":1}`, nil, "", "DoKey, ContextWithKey or KeyFromJSON"},
		"a key that breaks the rule": {clienttest.WithProfile("short", func(p *profile.Profile) {
			p.Carrier, p.Key.MaxBytes = profile.Carrier{Place: profile.Body, Name: "/k"}, 20
		}), at, "application/json", `{"a":1}`, nil, "idemp:order:u1:o7:and:more", "Key.Short(20)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := wiretest.Paid()
			c, _ := clienttest.New(t, w, clienttest.Together(r.carrier, inserting))
			req := posted(t, r.url, r.kind, r.body)
			if r.change != nil {
				r.change(req)
			}
			var err error
			if r.key == "" {
				_, err = c.Do(req)
			} else {
				_, err = c.DoKey(req, r.key)
			}
			if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, oncehttp.ErrNoEffect) || !strings.Contains(err.Error(), r.says) || w.Count() != 0 {
				t.Errorf("%v after %d sends, want ErrKeyInvalid that says %q", err, w.Count(), r.says)
			}
		})
	}
}

// TestAKeyMadeOfTheRequestIsPutIn: a NewKey of KeyFromJSON names the business in the body, through Do and through Transport; a key that is
// there goes before it. A body over the limit with its key is refused.
func TestAKeyMadeOfTheRequestIsPutIn(t *testing.T) {
	t.Parallel()
	w := wiretest.Paid()
	c, _ := clienttest.New(t, w, clienttest.Together(carried(profile.Body, "/k"), func(cfg *oncehttp.Config) {
		cfg.InsertKey, cfg.NewKey, cfg.MaxRequestBytes = true, oncehttp.KeyFromJSON(oncehttp.NewScope("order"), "/id"), 60
	}))
	for _, body := range []string{`{"id":"o1"}`, `{"id":"o2","k":"k2"}`} {
		resp, err := c.Do(posted(t, "https://api.example.com/orders", "application/json", body))
		clienttest.Must(t, err)
		clienttest.Read(t, resp)
	}
	resp, err := c.StandardClient().Post("https://api.example.com/orders", "application/json", strings.NewReader(`{"id":"o3"}`))
	clienttest.Must(t, err)
	clienttest.Read(t, resp)
	// A body that can be read only once.
	once := posted(t, "https://api.example.com/orders", "application/json", "")
	once.Body, once.GetBody, once.ContentLength = io.NopCloser(strings.NewReader(`{"id":"o4"}`)), nil, -1
	resp, err = c.Do(once)
	clienttest.Must(t, err)
	clienttest.Read(t, resp)
	var got []string
	for _, s := range w.All() {
		got = append(got, s.Body)
	}
	want := `{"id":"o1","k":"idemp:order:o1"} {"id":"o2","k":"k2"} {"id":"o3","k":"idemp:order:o3"} {"id":"o4","k":"idemp:order:o4"}`
	if strings.Join(got, " ") != want {
		t.Errorf("sent %s\nwant %s", strings.Join(got, " "), want)
	}
	_, err = c.Do(posted(t, "https://api.example.com/orders", "application/json", `{"id":"o5","note":"`+strings.Repeat("x", 25)+`"}`))
	if !errors.Is(err, oncehttp.ErrBodyTooLarge) || !errors.Is(err, oncehttp.ErrNoEffect) {
		t.Errorf("a body that is too large with its key: %v", err)
	}
}

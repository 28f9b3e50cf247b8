package oncehttp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/profile"
)

// TestScopes: what a scope makes of parts, the documented examples first.
func TestScopes(t *testing.T) {
	t.Parallel()
	event := time.Date(2024, 3, 30, 12, 4, 5, 0, time.FixedZone("CEST", 2*60*60))
	order := oncehttp.NewScope("order")
	for i, r := range []struct{ got, want oncehttp.Key }{
		{order.Key("uid123", "order456"), "idemp:order:uid123:order456"},
		{oncehttp.NewScope("user", "update").Key("uid123"), "idemp:user:update:uid123"},
		{oncehttp.NewScope("task").Key("uid123", oncehttp.TimeBucket(event, time.Hour)), "idemp:task:uid123:20240330T10"},
		{oncehttp.NewScope("task").Key("uid123", oncehttp.TimeBucket(event, 24*time.Hour)), "idemp:task:uid123:20240330"},
		{oncehttp.NewScope("task").Key("uid123", oncehttp.TimeBucket(event, time.Minute)), "idemp:task:uid123:20240330T1004"},
		{oncehttp.NewScope("msg").Key("topic", "3", "99"), "idemp:msg:topic:3:99"},
		{order.Key("a:b", "ü%", "~._-"), "idemp:order:a%3Ab:%C3%BC%25:~._-"},
		{order.Prefix("shop").Key("1"), "shop:order:1"},
		{order.Prefix("my:shop").Key("1"), "my%3Ashop:order:1"},
		{order.Key("1").Generation(0), "idemp:order:1"},
		{order.Key("1").Generation(1), "idemp:order:1"},
		{order.Key("1").Generation(2), "idemp:order:1:gen=2"},
		{order.Key("1").Derive("charge/1"), "idemp:order:1:step=charge%2F1"},
		// An empty part is the sign of a missing id: never a key, never "fresh".
		{order.Key(), ""}, {order.Key(""), ""}, {order.Key("a", ""), ""}, {oncehttp.NewScope().Key("a"), ""},
		{oncehttp.NewScope("").Key("a"), ""}, {oncehttp.NewScope("a", "").Key("b"), ""}, {order.Prefix("").Key("a"), ""},
		{oncehttp.NewScope("").Prefix("p").Key("a"), ""}, {oncehttp.Scope{}.Key("a"), ""}, {oncehttp.Scope{}.Prefix("p").Key("a"), ""},
		{order.Key("1", oncehttp.TimeBucket(time.Time{}, time.Hour)), ""}, {order.Key("1", oncehttp.TimeBucket(event, time.Second)), ""},
		{order.Key("1", oncehttp.TimeBucket(event, 0)), ""},
		{oncehttp.Key("").Generation(2), ""}, {oncehttp.Key("").Derive("s"), ""}, {oncehttp.Key("k").Derive(""), ""},
		{oncehttp.Key("").Opaque([]byte("s")), ""}, {oncehttp.Key("k").Opaque(nil), ""}, {oncehttp.Key("").UUID(), ""},
	} {
		if r.got != r.want {
			t.Errorf("row %d: %q, want %q", i, r.got, r.want)
		}
	}
}

// TestScopeAndPartsAreOneList: where the scope ends and the key begins does not show.
func TestScopeAndPartsAreOneList(t *testing.T) {
	t.Parallel()
	if a, b := oncehttp.NewScope("user", "update").Key("1"), oncehttp.NewScope("user").Key("update", "1"); a != b || a != "idemp:user:update:1" {
		t.Errorf("%q and %q", a, b)
	}
}

// TestScopesAreValues: one scope makes many, and none changes another.
func TestScopesAreValues(t *testing.T) {
	t.Parallel()
	base := oncehttp.NewScope("order")
	a, b := base.Key("a"), base.Key("b")
	if shop := base.Prefix("shop"); base.Key("a") != a || shop.Key("b") == b || base.Key("b") != b {
		t.Errorf("%q %q", a, b)
	}
}

// TestOpaqueAndUUID: deterministic, of one shape, and different for different
// keys and secrets. The values are pinned: a changed one is a second payment.
func TestOpaqueAndUUID(t *testing.T) {
	t.Parallel()
	k := oncehttp.NewScope("order").Key("uid123", "order456")
	secret := []byte("0123456789abcdef")
	if got, want := k.Opaque(secret), oncehttp.Key("LWVnHNgLmt79VhVb-jwQnZMro0hr5OVcoufj4XwQKgQ"); got != want {
		t.Errorf("Opaque %q, want %q", got, want)
	}
	if got, want := k.UUID(), oncehttp.Key("1c29e38d-58ed-56e1-b41a-9a7b9302569f"); got != want {
		t.Errorf("UUID %q, want %q", got, want)
	}
	if len(k.Opaque(secret)) != 43 || k.Opaque(secret) == k.Opaque(secret[1:]) || k.Opaque(secret) == (k+"x").Opaque(secret) {
		t.Error("Opaque does not depend on both, or has another length than 43")
	}
	if id, err := uuid.Parse(string(k.UUID())); err != nil || id.Version() != 5 || k.UUID() == (k+"x").UUID() {
		t.Errorf("UUID %q: %v", k.UUID(), err)
	}
	one, other := oncehttp.RandomKey(), oncehttp.RandomKey()
	if id, err := uuid.Parse(string(one)); err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 || one == other {
		t.Errorf("RandomKey: %v", err)
	}
}

// TestDerivedKeysDoNotCollide: a key's children and generations are nobody
// else's, and no scope makes one by itself.
func TestDerivedKeysDoNotCollide(t *testing.T) {
	t.Parallel()
	s := oncehttp.NewScope("o")
	seen := map[oncehttp.Key]string{}
	for name, key := range map[string]oncehttp.Key{
		"key": s.Key("a"), "two parts": s.Key("a", "b"), "colon": s.Key("a:b"), "generation": s.Key("a").Generation(2),
		"spelled like one": s.Key("a", "gen=2"), "step": s.Key("a").Derive("b"), "spelled like a step": s.Key("a", "step=b"),
		"step then generation": s.Key("a").Derive("b").Generation(2), "generation then step": s.Key("a").Generation(2).Derive("b"),
		"step with a generation in it": s.Key("a").Derive("b:gen=2"), "two steps": s.Key("a").Derive("b").Derive("c"), "one step": s.Key("a").Derive("b:step=c"),
		"other scope": oncehttp.NewScope("o", "a").Key("b"), "prefix": s.Prefix("p").Key("a"),
	} {
		if other, ok := seen[key]; ok && (name != "two parts" && name != "other scope") {
			t.Errorf("%s and %s are both %q", name, other, key)
		}
		seen[key] = name
	}
}

// TestWhereTheKeyComesFrom: the call, the request, the context, else a generated
// one; two that differ, or a key header that the profile does not use, are
// ErrKeyInvalid and nothing is sent.
func TestWhereTheKeyComesFrom(t *testing.T) {
	t.Parallel()
	type row struct {
		name           string
		header         http.Header
		ctx, call      oncehttp.Key
		hasCtx, byCall bool
		want           string // on the wire; empty: ErrKeyInvalid; "*": any UUID
	}
	h := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
		}
		return h
	}
	rows := []row{
		{name: "generated", want: "*"},
		{name: "header", header: h("Idempotency-Key", "a"), want: "a"},
		{name: "header, odd spelling", header: h("idempotency-KEY", "a"), want: "a"},
		{name: "context", ctx: "a", hasCtx: true, want: "a"},
		{name: "call", call: "a", byCall: true, want: "a"},
		{name: "all alike", header: h("Idempotency-Key", "a"), ctx: "a", hasCtx: true, call: "a", byCall: true, want: "a"},
		{name: "header and context differ", header: h("Idempotency-Key", "a"), ctx: "b", hasCtx: true},
		{name: "header and call differ", header: h("Idempotency-Key", "a"), call: "b", byCall: true},
		{name: "context and call differ", ctx: "a", hasCtx: true, call: "b", byCall: true},
		{name: "empty header", header: h("Idempotency-Key", "")},
		{name: "empty context", hasCtx: true},
		{name: "empty call", byCall: true},
		{name: "empty call, header set", header: h("Idempotency-Key", "a"), byCall: true},
		{name: "two lines", header: h("Idempotency-Key", "a", "Idempotency-Key", "a")},
		{name: "two spellings", header: h("Idempotency-Key", "a", "idempotency-key", "b")},
		{name: "another API's header", header: h("X-Idempotency-Key", "a")},
		{name: "another API's header beside the key", header: h("Idempotency-Key", "a", "PayPal-Request-Id", "a")},
		{name: "too long", call: oncehttp.Key(strings.Repeat("k", 256)), byCall: true},
		{name: "as long as may be", call: oncehttp.Key(strings.Repeat("k", 255)), byCall: true, want: strings.Repeat("k", 255)},
		{name: "a blank", call: "a b", byCall: true},
		{name: "a line end", call: "a\r\nX: y", byCall: true},
		{name: "not ASCII", call: "ä", byCall: true},
		{name: "DEL", call: "a\x7f", byCall: true},
		{name: "all visible", call: "!\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~", byCall: true, want: "!\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~"},
	}
	for _, r := range rows {
		for _, method := range []string{"POST", "PUT"} {
			t.Run(r.name+" "+method, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					c, _ := clienttest.New(t, w, nil)
					req := clienttest.Request(t, method, "https://api.example.com/", "{}")
					for name, lines := range r.header {
						req.Header[name] = lines
					}
					if r.hasCtx {
						req = req.WithContext(oncehttp.ContextWithKey(req.Context(), r.ctx))
					}
					do := c.Do
					if r.byCall {
						do = func(req *http.Request) (*http.Response, error) { return c.DoKey(req, r.call) }
					}
					_, err := do(req)
					switch got := ""; {
					case r.want == "":
						clienttest.ExactlyOne(t, err)
						if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, oncehttp.ErrNoEffect) || w.Count() != 0 {
							t.Errorf("%v after %d sends, want ErrKeyInvalid", err, w.Count())
						}
					case err != nil:
						t.Error(err)
					default:
						got = w.Sends[0].Key
						if _, bad := uuid.Parse(got); got != r.want && !(r.want == "*" && (bad == nil) == (method == "POST")) {
							t.Errorf("sent the key %q, want %q", got, r.want)
						}
					}
				})
			})
		}
	}
}

// TestNewKey: its keys are used, and its failures, an empty key included, stop
// the send.
func TestNewKey(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		key  oncehttp.Key
		fail error
	}{{"made", nil}, {"", nil}, {"", wiretest.ErrLost}, {"a b", nil}, {"made", wiretest.ErrLost}} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
				cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return r.key, r.fail }
			})
			_, err := c.Do(clienttest.Post(t, "{}"))
			if r.key == "made" && r.fail == nil {
				if err != nil || w.Sends[0].Key != "made" {
					t.Errorf("%v, sent %v", err, w.Keys())
				}
			} else if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, r.fail) && r.fail != nil || w.Count() != 0 {
				t.Errorf("%+v: %v after %d sends", r, err, w.Count())
			}
		})
	}
}

// TestRequireKey refuses what would be generated.
func TestRequireKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.RequireKey = true })
		if _, err := c.Do(clienttest.Post(t, "{}")); !errors.Is(err, oncehttp.ErrKeyInvalid) || w.Count() != 0 {
			t.Errorf("%v after %d sends", err, w.Count())
		}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Error(err)
		}
	})
}

// TestKeyRules: length, alphabet and format of the profile; a key is refused,
// never cut or repaired.
func TestKeyRules(t *testing.T) {
	t.Parallel()
	v4, v5 := uuid.MustParse("9f0d3f0e-5b0c-4f6e-9d6a-0c8f3b0a1d2e").String(), string(oncehttp.Key("k").UUID())
	for i, r := range []struct {
		rule profile.KeyRule
		key  string
		ok   bool
	}{
		{profile.KeyRule{MinBytes: 3, MaxBytes: 4}, "abc", true}, {profile.KeyRule{MinBytes: 3, MaxBytes: 4}, "abcd", true},
		{profile.KeyRule{MinBytes: 3, MaxBytes: 4}, "ab", false}, {profile.KeyRule{MinBytes: 3, MaxBytes: 4}, "abcde", false},
		{profile.KeyRule{}, strings.Repeat("a", 255), true}, {profile.KeyRule{}, strings.Repeat("a", 256), false},
		{profile.KeyRule{Alphabet: "abc-"}, "a-c", true}, {profile.KeyRule{Alphabet: "abc-"}, "a-d", false},
		{profile.KeyRule{Format: profile.UUID}, v5, true}, {profile.KeyRule{Format: profile.UUID}, v4, true},
		{profile.KeyRule{Format: profile.UUIDv4}, v4, true}, {profile.KeyRule{Format: profile.UUIDv4}, v5, false},
		{profile.KeyRule{Format: profile.UUID}, "k", false}, {profile.KeyRule{Format: profile.UUID}, "{" + v4 + "}", false},
		{profile.KeyRule{Format: profile.UUID}, strings.ReplaceAll(v4, "-", ""), false}, {profile.KeyRule{Format: profile.UUID}, "urn:uuid:" + v4, false},
	} {
		p := profile.Draft07()
		p.Name, p.Key = "ruled", r.rule
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
			_, err := c.DoKey(clienttest.Post(t, "{}"), oncehttp.Key(r.key))
			if r.ok != (err == nil) || err != nil && (!errors.Is(err, oncehttp.ErrKeyInvalid) || w.Count() != 0) || err == nil && w.Sends[0].Key != r.key {
				t.Errorf("row %d, %q under %+v: %v", i, r.key, r.rule, err)
			}
		})
	}
}

// TestQuotedKeys: an API that wants a structured-field String gets one; a caller
// that spells the header out has to quote it, too.
func TestQuotedKeys(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Name, p.Encoding = "quoted", profile.SFString
	for key, wired := range map[string]string{`abc`: `"abc"`, `a"b\c`: `"a\"b\\c"`, `"`: `"\""`} {
		for _, byHeader := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
				req, do := clienttest.Post(t, "{}"), func(r *http.Request) (*http.Response, error) { return c.DoKey(r, oncehttp.Key(key)) }
				if byHeader {
					req.Header.Set("Idempotency-Key", wired)
					do = c.Do
				}
				resp, err := do(req)
				if err != nil || w.Sends[0].Key != wired || oncehttp.ResultOf(resp).Key != oncehttp.Key(key) {
					t.Errorf("%s: %v, sent as %v", key, err, w.Keys())
				}
			})
		}
	}
	for _, wired := range []string{`abc`, `"abc`, `abc"`, `"a"b"`, `"a\b"`, `"a\"`, `""`, `"`, `"a" "b"`, `"a";x=1`, `"a", "b"`, `'a'`} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
			req := clienttest.Post(t, "{}")
			req.Header.Set("Idempotency-Key", wired)
			if _, err := c.Do(req); !errors.Is(err, oncehttp.ErrKeyInvalid) || w.Count() != 0 {
				t.Errorf("%s: %v after %d sends, want ErrKeyInvalid", wired, err, w.Count())
			}
		})
	}
}

// TestKeysElsewhere: in a body or a query the key is checked, never inserted.
func TestKeysElsewhere(t *testing.T) {
	t.Parallel()
	in := func(place profile.Place, name string) *profile.Profile {
		p := profile.Draft07()
		p.Name, p.Carrier = "elsewhere", profile.Carrier{Place: place, Name: name}
		return p
	}
	body, query, form := in(profile.Body, "/meta/keys/0"), in(profile.Query, "nonce"), in(profile.Form, "meta[key]")
	for i, r := range []struct {
		p             *profile.Profile
		target, bytes string
		call          oncehttp.Key
		want          oncehttp.Key // empty: ErrKeyInvalid
	}{
		{body, "/", `{"meta":{"keys":["a","b"]}}`, "a", "a"},
		{body, "/", `{"meta":{"keys":["a"]}}`, "b", ""},
		{body, "/", `{"meta":{"keys":[]}}`, "a", ""},
		{body, "/", `{"meta":{"keys":[""]}}`, "a", ""},
		{body, "/", `{"meta":{"keys":[7]}}`, "7", "7"},
		{body, "/", `not JSON`, "a", ""},
		{body, "/", ``, "a", ""},
		{query, "/?nonce=a", `{}`, "a", "a"},
		{query, "/?nonce=a%2Fb", `{}`, "a/b", "a/b"},
		{query, "/?nonce=a", `{}`, "b", ""},
		{query, "/?nonce=a&nonce=a", `{}`, "a", ""},
		{query, "/?nonce=", `{}`, "a", ""},
		{query, "/", `{}`, "a", ""},
		{form, "/", `amount=1&meta[key]=a`, "a", "a"},
		{form, "/", `meta%5Bkey%5D=a%2Fb+`, "a/b ", ""}, // a blank is in no key
		{form, "/", `meta%5Bkey%5D=a%2Fb`, "a/b", "a/b"},
		{form, "/", `meta[key]=a`, "b", ""},
		{form, "/", `meta[key]=a&meta[key]=a`, "a", ""},
		{form, "/", `meta[key]=`, "a", ""},
		{form, "/", `meta[keys]=a`, "a", ""},
		{form, "/", `meta[key]=a&x=%zz`, "a", ""},
		{form, "/", `{"meta[key]":"a"}`, "a", ""}, // no form
		{form, "/", ``, "a", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = r.p })
			req := clienttest.Request(t, "POST", "https://api.example.com"+r.target, r.bytes)
			if r.p == form && !strings.HasPrefix(r.bytes, "{") {
				req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
			}
			_, err := c.DoKey(req, r.call)
			if r.want == "" {
				if !errors.Is(err, oncehttp.ErrKeyInvalid) || w.Count() != 0 {
					t.Errorf("row %d: %v after %d sends, want ErrKeyInvalid", i, err, w.Count())
				}
				return
			}
			if err != nil || clienttest.Lookup(t, c, r.want).WireKey == "" {
				t.Errorf("row %d: %v", i, err)
			}
			for _, s := range w.Sends {
				if s.Key != "" || s.Body != r.bytes || s.URL != "https://api.example.com"+r.target {
					t.Errorf("row %d: sent %+v, want it as it was", i, s)
				}
			}
		})
	}
}

func TestFirstGeneration(t *testing.T) {
	t.Parallel()
	for k, want := range map[oncehttp.Key]struct {
		first oncehttp.Key
		n     int
	}{
		"": {"", 1}, "idemp:order:o1": {"idemp:order:o1", 1}, "idemp:order:o1:gen=2": {"idemp:order:o1", 2}, "idemp:order:o1:gen=17": {"idemp:order:o1", 17},
		"idemp:order:o1:gen=1": {"idemp:order:o1:gen=1", 1}, "idemp:order:o1:gen=02": {"idemp:order:o1:gen=02", 1}, ":gen=2": {":gen=2", 1}, "a:gen=2:step=b": {"a:gen=2:step=b", 1},
	} {
		first, n := k.FirstGeneration()
		if first != want.first || n != want.n {
			t.Errorf("%q: %q, %d; want %q, %d", k, first, n, want.first, want.n)
		}
		if n > 1 && first.Generation(n) != k {
			t.Errorf("%q is not generation %d of %q", k, n, first)
		}
	}
}

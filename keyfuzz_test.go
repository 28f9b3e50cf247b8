package oncehttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// FuzzScopeKey: no two lists of parts give one key, and the parts can be read back.
func FuzzScopeKey(f *testing.F) {
	f.Add("a", "b", "c")
	f.Add("a:b", "", "c")
	f.Add("a%3Ab", "gen=2", "\x00ü")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		lists := [][]string{{a, b, c}, {a, b + c}, {a + b, c}, {a + ":" + b, c}, {c, b, a}, {a}, {a, b}, {b, a}}
		seen := map[oncehttp.Key]string{}
		for _, parts := range lists {
			key := oncehttp.NewScope(parts[0]).Key(parts[1:]...)
			if empty := len(parts) == 1 || strings.Contains("\x1f"+strings.Join(parts, "\x1f")+"\x1f", "\x1f\x1f"); empty {
				if containsEmpty(parts) != (key == "") && len(parts) > 1 {
					t.Errorf("%q gave %q", parts, key)
				}
				if key != "" && len(parts) == 1 {
					t.Errorf("no parts gave %q", key)
				}
				continue
			}
			id := fmt.Sprintf("%q", parts)
			if other, ok := seen[key]; ok && other != id {
				t.Errorf("%s and %s both give %q", id, other, key)
			}
			seen[key] = id
			for i, piece := range strings.Split(string(key), ":")[1:] {
				if back, err := url.PathUnescape(piece); err != nil || back != parts[i] {
					t.Errorf("part %d of %q read back as %q", i, parts, back)
				}
			}
		}
	})
}

func containsEmpty(parts []string) bool {
	for _, p := range parts {
		if p == "" {
			return true
		}
	}
	return false
}

// prepared is what a client that sends nothing makes of a request.
func prepared(t testing.TB, p *profile.Profile) *oncehttp.Client {
	t.Helper()
	c, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Profile: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// FuzzKeyHeader: whatever stands in the header, the parser gives the key that the
// encoder spells just so, or refuses; it repairs nothing.
func FuzzKeyHeader(f *testing.F) {
	p := profile.Draft07()
	p.Name, p.Encoding = "quoted", profile.SFString
	c := prepared(f, p)
	for _, s := range []string{`"abc"`, `abc`, `"a\"b"`, `"a\\"`, `"\`, `""`, "\"\x00\"", `"ä"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, wired string) {
		req, _ := http.NewRequest("POST", "https://h/", nil)
		req.Header["Idempotency-Key"] = []string{wired}
		inner := strings.TrimSuffix(strings.TrimPrefix(wired, `"`), `"`)
		key := oncehttp.Key(strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(inner))
		rec, err := c.Prepare(req, key)
		if err != nil {
			return
		}
		if rec.WireKey != wired || rec.Key != string(key) {
			t.Errorf("%q was read as %q and goes out as %q", wired, rec.Key, rec.WireKey)
		}
		plain, _ := http.NewRequest("POST", "https://h/", nil)
		if again, err := c.Prepare(plain, key); err != nil || again.WireKey != wired {
			t.Errorf("%q is spelled %q, and was taken as %q: %v", key, again.WireKey, wired, err)
		}
		for _, ch := range []byte(rec.Key) {
			if ch <= ' ' || ch >= 0x7f {
				t.Errorf("a key with %q", ch)
			}
		}
	})
}

// FuzzPointer: a JSON pointer (RFC 6901) made for each string of a document leads
// to that string, and nothing panics.
func FuzzPointer(f *testing.F) {
	f.Add("a", "x", "/a")
	f.Add("a/b", "x", "/a~1b")
	f.Add("~1", "x", "/0/01")
	f.Fuzz(func(t *testing.T, name, value, pointer string) {
		doc, err := json.Marshal(map[string]any{name: []any{value}})
		if err != nil {
			return
		}
		var back map[string][]string
		if json.Unmarshal(doc, &back) != nil || len(back) != 1 {
			return
		}
		for n, v := range back {
			at := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(n) + "/0"
			for _, ptr := range []string{at, pointer} {
				p := profile.Draft07()
				p.Name, p.Carrier = "body", profile.Carrier{Place: profile.Body, Name: ptr}
				if ptr == "" {
					continue
				}
				req, _ := http.NewRequest("POST", "https://h/", strings.NewReader(string(doc)))
				rec, err := prepared(t, p).Prepare(req, oncehttp.Key(v[0]))
				if ptr == at && err != nil && visible(v[0]) {
					t.Errorf("%s in %s: %v, want %q", ptr, doc, err, v[0])
				}
				if ptr != at && err == nil && rec.WireKey != v[0] {
					t.Errorf("%s in %s gave %q", ptr, doc, rec.WireKey)
				}
			}
		}
	})
}

func visible(s string) bool {
	return s != "" && len(s) <= 255 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// FuzzFingerprint: two requests have one fingerprint only if everything that a key
// names is the same.
func FuzzFingerprint(f *testing.F) {
	c := prepared(f, nil)
	f.Add("POST", "/a", "x", "json", "{}", "POST", "/a", "x", "json", "{} ")
	f.Add("POST", "/a?x", "", "a", "b", "POST", "/a?x", "", "", "ab")
	f.Add("POST", "/", "h", "", "", "POST", "/", "", "h", "")
	f.Add("POST", "/?a=1", "", "", "", "POST", "/?a=2", "", "", "")
	f.Add("POST", "/", "", "", "", "PATCH", "/", "", "", "")
	f.Add("POST", "/a", "b", "", "", "POST", "/ab", "", "", "")
	f.Fuzz(func(t *testing.T, m1, t1, h1, c1, b1, m2, t2, h2, c2, b2 string) {
		make1 := func(m, target, host, ct, body string) ([]byte, []string) {
			req, err := http.NewRequest(m, "https://api.example.com"+target, strings.NewReader(body))
			if err != nil {
				return nil, nil
			}
			req.Host = host
			req.Header.Set("Content-Type", ct)
			rec, err := c.Prepare(req, "k")
			if err != nil {
				return nil, nil
			}
			if host == "" || strings.EqualFold(host, req.URL.Host) {
				host = ""
			}
			return rec.Fingerprint, []string{rec.Method, rec.Origin, rec.Target, host, ct, body}
		}
		f1, p1 := make1(m1, t1, h1, c1, b1)
		f2, p2 := make1(m2, t2, h2, c2, b2)
		if f1 == nil || f2 == nil {
			return
		}
		if same := fmt.Sprintf("%q", p1) == fmt.Sprintf("%q", p2); same != (string(f1) == string(f2)) {
			t.Errorf("%q and %q: fingerprints equal %v", p1, p2, !same)
		}
	})
}

package oncehttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/profile"
)

// TestInherit: A → B → C → D stays idempotent at every hop: each gets children of
// the inbound key, bound to its caller; the inbound key itself goes no further.
func TestInherit(t *testing.T) {
	t.Parallel()
	principal := func(r *http.Request) string { return r.Header.Get("X-User") }
	child := func(user string, keys ...string) (parent, step oncehttp.Key) {
		req := httptest.NewRequest("POST", "/", nil)
		req.Header.Set("X-User", user)
		for _, k := range keys {
			req.Header.Add("Idempotency-Key", k)
		}
		oncehttp.InheritKey(principal)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			parent = oncehttp.InheritedKey(r.Context())
			step = parent.Derive("charge")
		})).ServeHTTP(httptest.NewRecorder(), req)
		return parent, step
	}
	parent, step := child("alice", "k1")
	again, _ := child("alice", "k1")
	if parent == "" || parent != again || strings.Contains(string(parent), "k1") || step == "" || step == parent {
		t.Errorf("parent %q, again %q, step %q", parent, again, step)
	}
	seen := map[oncehttp.Key]bool{parent: true}
	for _, other := range [][]string{{"bob", "k1"}, {"alice", "k2"}, {"alice:k1", "x"}, {"alice", "k1:x"}} {
		got, _ := child(other[0], other[1])
		if got == "" || seen[got] {
			t.Errorf("%v got %q, which is empty or another's", other, got)
		}
		seen[got] = true
	}
	for name, got := range map[string]oncehttp.Key{
		"no key":        first(child("alice")),
		"nobody":        first(child("")),
		"no middleware": oncehttp.InheritedKey(context.Background()),
	} {
		if got != "" {
			t.Errorf("%s: inherited %q, want nothing", name, got)
		}
	}
}

// TestInheritRefuses: a request whose key cannot be bound to its caller goes no further, since its repeats would each be a
// new operation: twenty orders, and nobody would notice.
func TestInheritRefuses(t *testing.T) {
	t.Parallel()
	quoted := profile.Draft07Quoted()
	for name, r := range map[string]struct {
		p      *profile.Profile
		user   string
		keys   []string
		status int
	}{
		"a key of nobody":      {profile.Draft07(), "", []string{"k1"}, http.StatusForbidden},
		"two keys":             {profile.Draft07(), "alice", []string{"a", "b"}, http.StatusBadRequest},
		"one key twice":        {profile.Draft07(), "alice", []string{"a", "a"}, http.StatusBadRequest},
		"two keys of nobody":   {profile.Draft07(), "", []string{"a", "b"}, http.StatusBadRequest},
		"an empty key":         {profile.Draft07(), "alice", []string{""}, http.StatusBadRequest},
		"an empty key, quoted": {quoted, "alice", []string{`""`}, http.StatusBadRequest},
		"bare for quoted":      {quoted, "alice", []string{"k"}, http.StatusBadRequest},
		"half a quote":         {quoted, "alice", []string{`"k`}, http.StatusBadRequest},
		"no key":               {profile.Draft07(), "alice", nil, http.StatusOK},
		"no key of nobody":     {profile.Draft07(), "", nil, http.StatusOK},
		"a key":                {profile.Draft07(), "alice", []string{"k1"}, http.StatusOK},
		"a key, quoted":        {quoted, "alice", []string{`"k1"`}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orders := 0
			h := oncehttp.InheritKeyBy(r.p, func(*http.Request) string { return r.user })(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { orders++ }))
			for range 20 {
				req, answer := httptest.NewRequest("POST", "/orders", nil), httptest.NewRecorder()
				req.Header["Idempotency-Key"] = r.keys
				h.ServeHTTP(answer, req)
				if answer.Code != r.status || r.status != 200 && (answer.Header().Get("Content-Type") != "application/problem+json" || !json.Valid(answer.Body.Bytes())) {
					t.Fatalf("answered %d %s, want %d", answer.Code, answer.Body, r.status)
				}
			}
			if want := map[bool]int{true: 20}[r.status == 200]; orders != want {
				t.Errorf("%d orders, want %d", orders, want)
			}
		})
	}
}

// TestInheritKeyPanics: middleware that could never bind a key is a mistake of its program, and says so when it is made.
func TestInheritKeyPanics(t *testing.T) {
	t.Parallel()
	principal := func(*http.Request) string { return "alice" }
	inBody := profile.Draft07()
	inBody.Carrier = profile.Carrier{Place: profile.Body, Name: "/id"}
	for want, f := range map[string]func(){
		"principal":     func() { oncehttp.InheritKey(nil) },
		"profile":       func() { oncehttp.InheritKeyBy(nil, principal) },
		"want a header": func() { oncehttp.InheritKeyBy(inBody, principal) },
		"handler":       func() { oncehttp.InheritKey(principal)(nil) },
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.HasPrefix(said, "oncehttp: InheritKey") || !strings.Contains(said, want) {
					t.Errorf("panics with %q, want one that names the %s", said, want)
				}
			}()
			f()
		}()
	}
}

func first(k, _ oncehttp.Key) oncehttp.Key { return k }

// TestInheritKeyBy: the key is read where the profile says, and as it spells keys.
func TestInheritKeyBy(t *testing.T) {
	t.Parallel()
	other, quoted := profile.Draft07(), profile.Draft07Quoted()
	other.Carrier.Name = "X-Request-Id"
	plain := inherited(profile.Draft07(), "Idempotency-Key", "k")
	for _, c := range []struct {
		about        string
		p            *profile.Profile
		header, sent string
		want         oncehttp.Key
	}{
		{"another header", other, "X-Request-Id", "k", plain},
		{"the header of others", other, "Idempotency-Key", "k", ""},
		{"quoted", quoted, "Idempotency-Key", `"k"`, plain},
		{"bare where quotes are due", quoted, "Idempotency-Key", "k", ""},
	} {
		if got := inherited(c.p, c.header, c.sent); got != c.want || plain == "" {
			t.Errorf("%s: inherited %q, want %q", c.about, got, c.want)
		}
	}
}

// inherited is what a handler behind InheritKeyBy finds for a request of alice with this header.
func inherited(p *profile.Profile, name, value string) (key oncehttp.Key) {
	req := httptest.NewRequest("POST", "/", nil)
	req.Header[http.CanonicalHeaderKey(name)] = []string{value}
	principal := func(*http.Request) string { return "alice" }
	oncehttp.InheritKeyBy(p, principal)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		key = oncehttp.InheritedKey(r.Context())
	})).ServeHTTP(httptest.NewRecorder(), req)
	return key
}

// TestInheritedIsNotSent: Do never uses an inherited key by itself.
func TestInheritedIsNotSent(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
	c, _ := clienttest.New(t, w, nil)
	var parent oncehttp.Key
	h := oncehttp.InheritKey(func(*http.Request) string { return "alice" })(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		parent = oncehttp.InheritedKey(r.Context())
		if _, err := c.Do(clienttest.Post(t, "{}").WithContext(r.Context())); err != nil {
			t.Error(err)
		}
	}))
	req := httptest.NewRequest("POST", "/", nil)
	req.Header.Set("Idempotency-Key", "inbound")
	h.ServeHTTP(httptest.NewRecorder(), req)
	if got := oncehttp.Key(w.Sends[0].Key); got == "inbound" || got == parent || got == "" {
		t.Errorf("sent %q, want a key of its own", got)
	}
}

// TestContextKeyIsForOneRequest: a GET with the same context takes no key along.
func TestContextKeyOnAGET(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200}}}
	c, _ := clienttest.New(t, w, nil)
	req := clienttest.Request(t, "GET", "https://api.example.com/", "")
	if _, err := c.Do(req.WithContext(oncehttp.ContextWithKey(req.Context(), "k"))); err != nil || w.Sends[0].Key != "" {
		t.Errorf("%v, key %q", err, w.Sends[0].Key)
	}
}

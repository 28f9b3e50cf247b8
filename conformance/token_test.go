package conformance_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// tokens makes a sample hand its keys out, bound to their callers.
func tokens(lax string) quirk {
	return quirk{front: func(c *call) bool {
		if c.r.URL.Path != "/tokens" {
			return false
		}
		id := "t" + strings.Repeat("0", 20) + string(rune('a'+c.number()%26)) + c.r.Header.Get("Authorization")[7:12]
		c.mu.Lock()
		defer c.mu.Unlock()
		n, _ := c.notes["tokens"].(int)
		if lax != "same" {
			id += strings.Repeat("x", n)
		}
		c.notes["tokens"], c.notes["token "+id] = n+1, c.r.Header.Get("Authorization")
		c.send(reply{status: http.StatusOK, body: id})
		return true
	}, key: func(c *call, k labelled) labelled {
		c.mu.Lock()
		defer c.mu.Unlock()
		owner, known := c.notes["token "+k.key]
		k.ok = k.ok && (known || lax == "unknown") && (!known || owner == c.r.Header.Get("Authorization") || lax == "caller")
		return k
	}}
}

// A server that hands its keys out is judged with keys that it has handed out, and
// one that takes others, or other callers', is found.
func TestTokens(t *testing.T) {
	t.Parallel()
	fetched := func(o *conformance.Options) { o.TokenPath = "/tokens" }
	for lax, want := range map[string]string{"": "", "unknown": "token/unknown-refused", "caller": "token/other-caller-refused"} {
		c := choices{updates: true}
		rep := only(t, c, tokens(lax), fetched, "replay/answered", "replay/effects-once", "replay/second-caller", "conflict/not-*", "scope/other-path*", "token/**")
		if got := list(wrong(rep)); got != want {
			t.Errorf("%q: got %q, want %q\n%s", lax, got, want, text(rep))
		}
		if c := find(t, rep, "token/unknown-refused"); c.Verdict == conformance.VerdictSkip {
			t.Errorf("%q: %s", lax, c.Reason)
		}
	}
}

// TestTokenMock: where the profile says how tokens are handed out, the check fetches them, and finds nothing wrong with
// the mock, which hands them out.
func TestTokenMock(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Token = &profile.Token{Path: "/tokens?purpose={path}&for={/reference}", Pointer: "/data/token"}
	o := options(start(t, mockserver.Config{Profile: p}), p)
	o.Run = []string{"token/**", "replay/answered", "replay/effects-once", "inflight/once"}
	rep := run(t, o)
	for _, id := range []string{"token/unknown-refused", "token/other-caller-refused", "token/fetched-apart", "replay/answered", "replay/effects-once", "inflight/once"} {
		if c := find(t, rep, id); c.Verdict != conformance.VerdictPass {
			t.Errorf("%s: %s %s %s", id, c.Verdict, c.Actual, c.Reason)
		}
	}
}

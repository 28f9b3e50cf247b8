package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestSendTakesTheKeyWhereTheProfileHasIt: a key that the request itself carries, in whichever place, is the operation's; none
// is made beside it. Without one, nothing is sent where a key is never inserted, and --key names the same key or is refused.
func TestSendTakesTheKeyWhereTheProfileHasIt(t *testing.T) {
	t.Parallel()
	const two = "two keys in one request"
	for name, r := range map[string]struct {
		profile, path string
		args          []string
		key, wrong    string // one of them
	}{
		"JSON body":                {"square", "/", []string{"-d", `{"idempotency_key":"k1"}`}, "k1", ""},
		"form":                     {"form", "/", []string{"-d", "a=1&token=k1"}, "k1", ""},
		"query":                    {"query", "/?token=k1", []string{"-d", "{}"}, "k1", ""},
		"header":                   {"draft-07", "/", []string{"-d", "{}", "-H", "Idempotency-Key: k1"}, "k1", ""},
		"JSON body, --key too":     {"square", "/", []string{"-d", `{"idempotency_key":"k1"}`, "--key", "k1"}, "k1", ""},
		"JSON body, another --key": {"square", "/", []string{"-d", `{"idempotency_key":"k1"}`, "--key", "k2"}, "", two},
		"JSON body without one":    {"square", "/", []string{"-d", `{"a":1}`}, "", `profile "square" wants the key in `},
		"query without one":        {"query", "/", []string{"-d", "{}"}, "", "wants the key in "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
			dir := t.TempDir()
			p := r.profile
			if p == "form" || p == "query" {
				p = writeFile(t, dir+"/"+p+".json", strings.ReplaceAll(placeProfile, "PLACE", p))
			}
			got := run(t, append([]string{"send", "POST", s.url + r.path, "--profile", p, "--journal", dir + "/j.db", "--json"}, r.args...)...)
			if r.wrong != "" {
				if got.want(t, exitUsage); !strings.Contains(got.err, r.wrong) || s.sends.Load() != 0 {
					t.Errorf("stderr %q after %d sends, want %q and none", got.err, s.sends.Load(), r.wrong)
				}
				return
			}
			if l := got.want(t, exitOK).only(t); l.Key != r.key || s.sends.Load() != 1 {
				t.Errorf("key %q after %d sends, want %q and one", l.Key, s.sends.Load(), r.key)
			}
		})
	}
}

// placeProfile is a profile whose keys travel in the parameter or field token of the PLACE.
const placeProfile = `{"name": "PLACE-keys", "version": "1", "sources": {"own": {"ref": "our API", "date": "2026-11", "confidence": "primary"}},
  "carrier": {"value": {"place": "PLACE", "name": "token"}, "source": "own"}}`

package send_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestSendTakesTheKeyWhereTheProfileHasIt: a key that the request itself carries, in whichever place, is the operation's; none
// is made beside it. Without one, nothing is sent unless --insert-key puts one in, and --key names the same key or is refused.
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
		"query without one":        {"query", "/", []string{"-d", "{}"}, "", "put it there, or say --key and --insert-key"},
		"JSON body, --key alone":   {"square", "/", []string{"-d", "{}", "--key", "k1"}, "", "put it there, or say --insert-key"},
		"--insert-key, body":       {"square", "/", []string{"-d", `{"a":1}`, "--key", "k1", "--insert-key"}, "k1", ""},
		"--insert-key, form":       {"form", "/", []string{"-d", "a=1", "--key", "k1", "--insert-key"}, "k1", ""},
		"--insert-key, query":      {"query", "/", []string{"-d", "{}", "--key", "k1", "--insert-key"}, "k1", ""},
		"--insert-key, one there":  {"square", "/", []string{"-d", `{"idempotency_key":"k1"}`, "--insert-key"}, "k1", ""},
		"--insert-key, no --key":   {"square", "/", []string{"-d", `{"a":1}`, "--insert-key"}, "random", ""},
		"--insert-key, header":     {"draft-07", "/", []string{"-d", "{}", "--key", "k1", "--insert-key"}, "k1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
			dir := t.TempDir()
			p := r.profile
			if p == "form" || p == "query" {
				p = commandtest.WriteFile(t, dir+"/"+p+".json", strings.ReplaceAll(commandtest.PlaceProfile, "PLACE", p))
			}
			got := commandtest.Run(t, append([]string{"send", "POST", s.URL + r.path, "--profile", p, "--journal", dir + "/j.db", "--json"}, r.args...)...)
			if r.wrong != "" {
				if got.Want(t, terminal.ExitUsage); !strings.Contains(got.Err, r.wrong) || s.Sends.Load() != 0 {
					t.Errorf("stderr %q after %d sends, want %q and none", got.Err, s.Sends.Load(), r.wrong)
				}
				return
			}
			if r.key == "random" {
				_, rest, _ := strings.Cut(got.Err, "key: ")
				r.key, _, _ = strings.Cut(rest, "\n")
			}
			if l := got.Want(t, terminal.ExitOK).Only(t); l.Key != r.key || len(r.key) < 2 || s.Sends.Load() != 1 {
				t.Errorf("key %q after %d sends, want %q and one", l.Key, s.Sends.Load(), r.key)
			}
		})
	}
}

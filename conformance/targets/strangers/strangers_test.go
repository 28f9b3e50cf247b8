package strangers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/conformance/targets/strangers"
	"github.com/oncehttp/oncehttp/conformance/targets/strangers/example"
	"github.com/oncehttp/oncehttp/conformance/targets/strangers/set1"
	"github.com/oncehttp/oncehttp/conformance/targets/strangers/set2"
	"github.com/oncehttp/oncehttp/conformance/targets/strangers/set3"
)

// all lists the servers of all packages.
func all() []strangers.Server {
	return slices.Concat(example.Servers(), set1.Servers(), set2.Servers(), set3.Servers())
}

// Each server has a name of its own.
func TestNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range all() {
		if s.Name == "" || seen[s.Name] || s.New == nil {
			t.Errorf("%q: it has no name, one that another has, or no New", s.Name)
		}
		seen[s.Name] = true
	}
}

// plain sends a payment to a server.
func plain(server http.Handler, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer alice-alice")
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w
}

// named returns the id in an answer.
func named(w *httptest.ResponseRecorder) string {
	var body struct{ ID string }
	_ = json.Unmarshal(w.Body.Bytes(), &body) // without JSON there is no id
	return body.ID
}

// The plain things are right in every server: one effect and one id for a key, a refusal of another amount, a key that is free or
// answered after a failure.
func TestPlainRequests(t *testing.T) {
	t.Parallel()
	for _, s := range all() {
		synctest.Test(t, func(t *testing.T) {
			server := s.New()
			const key, body = "5f0c6dd0-9d1e-4f3c-8c7e-2f7d0a6f5b11", `{"reference":"r1","amount":100}`
			first, again := plain(server, key, body), plain(server, key, body)
			if first.Code/100 != 2 || named(first) == "" || again.Code/100 != 2 || named(first) != named(again) {
				t.Errorf("%s: got %d %s and again %d %s, want one outcome", s.Name, first.Code, first.Body, again.Code, again.Body)
			}
			if other := plain(server, key, `{"reference":"r1","amount":101}`); other.Code/100 != 4 {
				t.Errorf("%s: another amount: got %d, want a refusal", s.Name, other.Code)
			}
			count := httptest.NewRecorder()
			time.Sleep(time.Second) // effects may be late
			server.ServeHTTP(count, httptest.NewRequest(http.MethodGet, "/_effects?ref=r1", nil))
			if got := strings.TrimSpace(count.Body.String()); got != `{"count":1}` {
				t.Errorf("%s: got %s, want one effect", s.Name, got)
			}
		})
	}
}

package neighbours_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/profile"
)

// A request whose inbound key cannot be bound to a caller goes no further, however the key came and whoever reads it.
func TestNeighbourInherit(t *testing.T) {
	t.Parallel()
	who := func(req *http.Request) string { return req.Header.Get("X-User") }
	custom := profile.Draft07()
	custom.Name, custom.Carrier.Name = "custom", "X-Request-Key"
	for name, test := range map[string]struct {
		wrap   func(http.Handler) http.Handler
		header http.Header
		want   int
	}{
		"nobody":                 {oncehttp.InheritKey(who), http.Header{"Idempotency-Key": {"k"}}, 403},
		"nobody, by a profile":   {oncehttp.InheritKeyBy(custom, who), http.Header{"X-Request-Key": {"k"}}, 403},
		"quoted, nobody":         {oncehttp.InheritKeyBy(profile.Draft07Quoted(), who), http.Header{"Idempotency-Key": {`"k"`}}, 403},
		"nobody and two keys":    {oncehttp.InheritKey(who), http.Header{"Idempotency-Key": {"k", "l"}}, 400},
		"two keys":               {oncehttp.InheritKey(who), http.Header{"Idempotency-Key": {"k", "l"}, "X-User": {"u"}}, 400},
		"the same twice":         {oncehttp.InheritKey(who), http.Header{"Idempotency-Key": {"k", "k"}, "X-User": {"u"}}, 400},
		"an empty key":           {oncehttp.InheritKey(who), http.Header{"Idempotency-Key": {""}, "X-User": {"u"}}, 400},
		"unquoted":               {oncehttp.InheritKeyBy(profile.Draft07Quoted(), who), http.Header{"Idempotency-Key": {"k y"}, "X-User": {"u"}}, 400},
		"no key, nobody":         {oncehttp.InheritKey(who), http.Header{}, 204},
		"somebody":               {oncehttp.InheritKey(who), http.Header{"Idempotency-Key": {"k"}, "X-User": {"u"}}, 204},
		"another header's key":   {oncehttp.InheritKeyBy(custom, who), http.Header{"Idempotency-Key": {"k"}}, 204},
		"somebody, by a profile": {oncehttp.InheritKeyBy(custom, who), http.Header{"X-Request-Key": {"k"}, "X-User": {"u"}}, 204},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passed := 0
			h := test.wrap(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				passed++
				bound := strings.HasPrefix(name, "somebody")
				if parent := oncehttp.InheritedKey(req.Context()); (parent != "") != bound || parent == "k" {
					t.Errorf("the inherited key is %q", parent)
				}
				w.WriteHeader(http.StatusNoContent)
			}))
			req := httptest.NewRequest("POST", "/", nil)
			req.Header = test.header
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			if rec.Code != test.want || (passed == 1) != (test.want == 204) {
				t.Errorf("%d, passed on %d times, want %d", rec.Code, passed, test.want)
			}
			if kind := rec.Header().Get("Content-Type"); test.want >= 400 && kind != "application/problem+json" {
				t.Errorf("Content-Type %q", kind)
			}
		})
	}
}

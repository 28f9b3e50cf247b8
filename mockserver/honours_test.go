package mockserver_test

import (
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

// TestKeysCountAtEndpoints: two requests under one key have one effect where the profile says that keys count, or says nothing, and
// two elsewhere.
func TestKeysCountAtEndpoints(t *testing.T) {
	t.Parallel()
	silent := profile.Draft07()
	silent.Methods = nil
	listed := profile.Draft07()
	listed.Endpoints = []profile.Endpoint{
		{Method: "POST", Path: "/v1/payments"}, {Method: "POST", Path: "/v1/{kind}/x"}, {Method: "POST", Path: "/v1/search/x", Keyless: true}, {Method: "POST", Path: "/v1/a*"},
	}
	for _, c := range []struct {
		p            *profile.Profile
		method, path string
		effects      int
	}{
		{silent, "POST", "/any", 1}, {silent, "PUT", "/any", 1},
		{listed, "POST", "/v1/payments", 1}, {listed, "PATCH", "/v1/payments", 2}, {listed, "POST", "/v1/refunds", 2}, {listed, "POST", "/v1/payments/", 2},
		{listed, "POST", "/v1/payments/x", 1}, {listed, "POST", "/v1//x", 2}, {listed, "POST", "/v1/search/x", 2}, {listed, "POST", "/v1/a*", 1}, {listed, "POST", "/v1/ab", 2},
	} {
		mocktest.Bubble(t, mockserver.Config{Profile: c.p, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })}, func(s *mockserver.Server, cl *client) {
			for range 2 {
				cl.Do(request{Method: c.method, Path: c.path, Key: "k"}).Want(t, 201)
			}
			if effects := s.Ledger().Effects("k"); effects != c.effects {
				t.Errorf("%s %s: %d effects, want %d", c.method, c.path, effects, c.effects)
			}
		})
	}
}

// TestOutcomesInBodies: where the outcome stands in the body, the mock's own answers prove it, also that of a mismatch, and a handler's
// refusal counts as no effect.
func TestOutcomesInBodies(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Mismatch = nil
	p.Verdicts = []profile.Verdict{
		{Pointer: "/result/ok", Equals: []string{"yes"}, Proves: profile.ProvesSucceeded}, {Pointer: "/error/code", Equals: []string{"other"}, Proves: profile.ProvesMismatch},
		{Pointer: "/error/code", Proves: profile.ProvesRefused},
	}
	mocktest.Bubble(t, mockserver.Config{Profile: p}, func(s *mockserver.Server, cl *client) {
		first := cl.Do(request{Key: "k", Body: `{"amount":1}`}).Want(t, 201)
		if ok := mocktest.Member(t, first.Body, "result", "ok"); ok != "yes" {
			t.Errorf("the first is answered %s", first.Body)
		}
		if again := cl.Do(request{Key: "k", Body: `{"amount":1}`}).Want(t, 201); again.Body != first.Body {
			t.Errorf("the second is answered %s", again.Body)
		}
		other := cl.Do(request{Key: "k", Body: `{"amount":2}`}).Want(t, 200)
		if code := mocktest.Member(t, other.Body, "error", "code"); code != "other" {
			t.Errorf("the other is answered %s", other.Body)
		}
		mocktest.WantCounts(t, s, "k", 3, 1)
	})
	refuses := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"error":{"code":"no funds"}}`)) })
	mocktest.Bubble(t, mockserver.Config{Profile: p, Handler: refuses}, func(s *mockserver.Server, cl *client) {
		cl.Do(request{Key: "k"}).Want(t, 200)
		mocktest.WantCounts(t, s, "k", 1, 0)
	})
}

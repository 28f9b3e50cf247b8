package reconcile_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestReconcileReadsVerdicts: the profile's verdicts read what its lookup finds. Only a success settles.
func TestReconcileReadsVerdicts(t *testing.T) {
	t.Parallel()
	p := profile.None()
	p.Reference = &profile.Reference{Path: "{path}?ref={/order}", List: "/data", Same: []profile.Same{{Request: "/order", Resource: "/order"}}}
	p.Verdicts = []profile.Verdict{
		{At: []profile.Endpoint{{Method: "POST", Path: "/payments"}}, Pointer: "/status", Equals: []string{"paid"}, Proves: profile.ProvesSucceeded},
		{At: []profile.Endpoint{{Method: "POST", Path: "/payments"}}, Pointer: "/status", Equals: []string{"declined"}, Proves: profile.ProvesRefused},
	}
	for _, c := range []struct {
		path, status   string
		settles, fails bool
	}{
		{"/payments", "paid", true, false}, {"/payments", "declined", false, true}, {"/payments", "processing", false, false}, {"/customers", "declined", true, false},
	} {
		found := `{"data":[{"order":"o1","status":"` + c.status + `"}]}`
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, found) })
		res, err := authorized().ByReference(p)(t.Context(), s.held(c.path, "order=o1"))
		if (err != nil) != c.fails {
			t.Errorf("%s, %s: %v", c.path, c.status, err)
		}
		body := ""
		if c.settles {
			body = found
		}
		want(t, c.path+" "+c.status, res, nil, body)
	}
}

// TestGoCardlessOfAnotherRequest: an operation held as a duplicate was not sent before: the resource that the key made settles it only with the request's values.
func TestGoCardlessOfAnotherRequest(t *testing.T) {
	t.Parallel()
	const conflict = `{"error":{"type":"invalid_state","errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM1"}}]}}`
	for found, settles := range map[string]bool{`{"payments":{"id":"PM1","amount":4200}}`: true, `{"payments":{"id":"PM1","amount":100}}`: false} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, found) })
		rec := s.held("/payments", "")
		rec.Header.Set("Content-Type", "application/json")
		rec.Body, rec.HoldReason = []byte(`{"payments":{"amount":4200}}`), persist.HoldDuplicate
		rec.Answer = &persist.Answer{Status: 409, Body: []byte(conflict)}
		res, err := authorized().GoCardless()(t.Context(), rec)
		if settles {
			want(t, found, res, err, found)
		} else if err == nil || res.Effect != "" {
			t.Errorf("%s: %+v, %v", found, res, err)
		}
	}
}

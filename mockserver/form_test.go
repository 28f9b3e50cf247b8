package mockserver_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

const formType = "application/x-www-form-urlencoded"

func typed(kind, body string) request {
	return request{Key: "k", Body: body, Header: http.Header{"Content-Type": {kind}}}
}

// An API reads the bodies that its profile names and no others; one of which that is not known reads any.
func TestFormatsOfBodies(t *testing.T) {
	t.Parallel()
	both, none := profile.Draft07(), profile.Draft07()
	both.Body.Formats = []profile.BodyFormat{profile.JSONBody, profile.FormBody}
	for _, c := range []struct {
		p    *profile.Profile
		kind string
		want int
	}{
		{profile.StripeV1(), formType, 201}, {profile.StripeV1(), formType + "; charset=utf-8", 201},
		{profile.StripeV1(), "application/json", 415}, {profile.StripeV1(), "text/plain", 415},
		{both, formType, 201}, {both, "application/vnd.api+json", 201}, {both, "application/xml", 415}, {none, "application/xml", 201},
	} {
		mocktest.Bubble(t, mockserver.Config{Profile: c.p}, func(s *mockserver.Server, cl *client) {
			cl.Do(typed(c.kind, `{"a":1}`)).Want(t, c.want)
			if effects := s.Ledger().Effects("k"); (effects == 1) != (c.want == 201) {
				t.Errorf("%s: %d effects after %d", c.kind, effects, c.want)
			}
		})
	}
}

// Where the API compares what bodies say, neither the order of fields nor their spelling makes another request; where it
// is not known to, each byte does.
func TestBodiesComparedByValues(t *testing.T) {
	t.Parallel()
	byValues, byBytes := profile.StripeV1(), profile.StripeV1()
	byValues.Body.Formats, byBytes.Body = nil, profile.BodyRule{}
	for _, c := range []struct {
		kind, first, second string
		same                bool
	}{
		{formType, "a=1&b%5Bc%5D=x+y", "b[c]=x%20y&a=1", true},
		{formType, "a=1&b=2", "a=1&b=3", false},
		{formType, "a=1&a=2", "a=2&a=1", false},
		{"application/json", `{"a":1,"b":{"d":2,"c":3}}`, "{ \"b\":{\"c\":3,\"d\":2},\n\"a\":1}", true},
		{"application/json", `{"a":1}`, `{"a":"1"}`, false},
		{"application/json", `{"a":12345678901234567890}`, `{"a":12345678901234567891}`, false},
		{"text/plain", `a=1&b=2`, `b=2&a=1`, false},
	} {
		for _, p := range []*profile.Profile{byValues, byBytes} {
			mocktest.Bubble(t, mockserver.Config{Profile: p}, func(s *mockserver.Server, cl *client) {
				cl.Do(typed(c.kind, c.first)).Want(t, 201)
				want := 400
				if c.same && p == byValues {
					want = 201
				}
				cl.Do(typed(c.kind, c.second)).Want(t, want)
				mocktest.WantCounts(t, s, "k", 2, 1)
			})
		}
	}
}

// A key, and what names an operation, may stand in a form.
func TestKeyInForm(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Carrier = profile.Carrier{Place: profile.Form, Name: "meta[key]"}
	cfg := mockserver.Config{Profile: p, OperationPointer: "/meta/order", RequireKey: true}
	mocktest.Bubble(t, cfg, func(s *mockserver.Server, cl *client) {
		send := func(body string) mocktest.Reply {
			return cl.Do(request{Body: body, Header: http.Header{"Content-Type": {formType}}})
		}
		send("meta[key]=q1&meta[order]=7").Want(t, 201)
		send("meta[key]=q1&meta[order]=7").Want(t, 201)
		mocktest.WantCounts(t, s, "q1", 2, 1)
		send("meta[key]=q1&meta[key]=q2").Want(t, 400)
		send("amount=1").Want(t, 400)
		send("meta[key]=q2&meta[order]=7").Want(t, 201)
		if rules := mocktest.Rules(s); !slices.Contains(rules, mockserver.RuleOneKey) {
			t.Errorf("rules %q, want that one operation had two keys", rules)
		}
	})
}

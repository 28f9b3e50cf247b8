package profile_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

// TestParseEndpoint: what is an endpoint, and what is wrong with others.
func TestParseEndpoint(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]profile.Endpoint{
		"POST /":                         {Method: "POST", Path: "/"},
		"PUT /v2/orders/{order_id}":      {Method: "PUT", Path: "/v2/orders/{order_id}"},
		"!POST /v2/orders/search":        {Method: "POST", Path: "/v2/orders/search", Keyless: true},
		"DELETE /a:b/~c/{x}/d.e/{y}/f,g": {Method: "DELETE", Path: "/a:b/~c/{x}/d.e/{y}/f,g"},
	} {
		got, err := profile.ParseEndpoint(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v (%v), %v; want %+v", text, got, got, err, want)
		}
		spelled, err := json.Marshal(got)
		var again profile.Endpoint
		if err != nil || json.Unmarshal(spelled, &again) != nil || again != want {
			t.Errorf("%s: as JSON %s and %+v, %v", text, spelled, again, err)
		}
	}
	for text, want := range map[string]string{
		"": "a method in upper case", "POST": "a method and a path", "/payments": "a method in upper case", "post /p": "a method in upper case",
		"GET /p": "takes no key", "POST p": "a method and a path", "POST https://api.example.com/p": "a method and a path", "POST /p?x=1": "neither a query",
		"POST /p#x": "neither a query", "POST /{a": "a whole segment", "POST /x{a}": "a whole segment", "POST /{}": "a whole segment", "POST /a/../b": "as a segment",
		"POST /{a}{b}": "a whole segment", "POST /a b": "visible ASCII", "POST /%2e": "neither a query nor %", "!!POST /a": "a method in upper case",
	} {
		if got, err := profile.ParseEndpoint(text); err == nil || !strings.Contains(err.Error(), want) || got != (profile.Endpoint{}) {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, want)
		}
	}
}

// TestEndpointsOfAFile: a file states endpoints, and what is wrong with them is said by their name.
func TestEndpointsOfAFile(t *testing.T) {
	t.Parallel()
	load := func(endpoints string) (*profile.Profile, error) {
		return profile.Load(strings.NewReader(`{"name": "mine", "version": "1",
			"sources": {"docs": {"ref": "https://example.com/keys", "date": "2026-11-30", "confidence": "excerpt"}},
			"methods": {"value": ["POST", "PUT"], "source": "docs"}, "endpoints": {"value": ` + endpoints + `, "source": "docs"}}`))
	}
	p, err := load(`["POST /v1/payments", "PUT /v1/payments/{id}", "!PUT /v1/payments/search"]`)
	if err != nil {
		t.Fatal(err)
	}
	want := []profile.Endpoint{{Method: "POST", Path: "/v1/payments"}, {Method: "PUT", Path: "/v1/payments/{id}"}, {Method: "PUT", Path: "/v1/payments/search", Keyless: true}}
	if !slices.Equal(p.Endpoints, want) {
		t.Errorf("%+v", p.Endpoints)
	}
	if p.Check() != nil || p.Sources["Endpoints"].Ref != "https://example.com/keys" {
		t.Errorf("%v, %+v", p.Check(), p.Sources)
	}
	clone := p.Clone()
	clone.Endpoints[0].Method = "PATCH"
	if p.Endpoints[0].Method != "POST" || !slices.Equal(p.Differences(clone), []string{"endpoints"}) || clone.Check() == nil {
		t.Errorf("a clone shares memory, or differs in %v, or is taken: %v", p.Differences(clone), clone.Check())
	}
	for text, want := range map[string]string{
		`["POST /a", "POST /a"]`:  "endpoints: POST /a is there twice",
		`["POST /a", "!POST /a"]`: "endpoints: POST /a is there twice",
		`["DELETE /a"]`:           "endpoints: DELETE /a: methods do not list DELETE",
		`["!POST /a"]`:            "endpoints: want one at which keys count",
		`["POST a"]`:              `endpoints: "POST a": want a method and a path`,
		`[{"method": "POST"}]`:    `endpoints: a JSON object, want a string, such as "POST /payments/{id}"`,
		`"POST /a"`:               "endpoints: a JSON string, want a list",
		`[]`:                      "endpoints: an empty value says nothing",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestEndpointsOfLongLists: how many operations of the specifications take keys, and some that do not (coinbase/cdp-sdk openapi.yaml
// f9bbf41, square/connect-api-specification api.json 5733f66).
func TestEndpointsOfLongLists(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		keyed    int
		has, not []string
	}{
		"coinbase": {66, []string{"POST /platform/v2/transfers", "PUT /platform/v2/evm/accounts/{address}", "DELETE /platform/v2/policy-engine/policies/{policyId}"},
			[]string{"POST /platform/v2/x402/settle", "POST /platform/v2/onramp/orders", "POST /platform/v2/onramp/sessions", "POST /platform/v2/evm/faucet"}},
		"square": {63, []string{"POST /v2/payments", "PUT /v2/payments/{payment_id}", "POST /v2/refunds", "POST /v2/orders/{order_id}/pay"},
			[]string{"POST /v2/payments/{payment_id}/complete", "POST /v2/subscriptions/{subscription_id}/cancel", "POST /v2/orders/search"}},
	} {
		p, _ := profile.ByName(name)
		var texts []string
		for _, e := range p.Endpoints {
			if !e.Keyless {
				texts = append(texts, e.String())
			}
		}
		if len(texts) != want.keyed {
			t.Errorf("%s: %d endpoints, want %d", name, len(texts), want.keyed)
		}
		for _, e := range want.has {
			if !slices.Contains(texts, e) {
				t.Errorf("%s: %s is missing", name, e)
			}
		}
		for _, e := range want.not {
			if slices.Contains(texts, e) {
				t.Errorf("%s: %s takes no key", name, e)
			}
		}
	}
}

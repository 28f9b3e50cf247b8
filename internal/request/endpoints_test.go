package request

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestCoverage: where keys count, by method and path.
func TestCoverage(t *testing.T) {
	t.Parallel()
	endpoint := func(texts ...string) (list []profile.Endpoint) {
		for _, text := range texts {
			e, err := profile.ParseEndpoint(text)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, e)
		}
		return list
	}
	header := profile.Carrier{Place: profile.Header, Name: "K"}
	listed := &profile.Profile{Name: "listed", Carrier: header, Methods: []string{"POST", "PUT"}, Endpoints: endpoint(
		"POST /v1/payments", "POST /v1/payments/{id}/refunds", "PUT /v1/vendors/{id}", "!PUT /v1/vendors/bulk", "PUT /v1/{kind}/{id}")}
	methods := &profile.Profile{Name: "methods", Carrier: header, Methods: []string{"POST"}}
	silent := &profile.Profile{Name: "silent", Carrier: header}
	keyless := &profile.Profile{Name: "keyless", Carrier: profile.Carrier{Place: profile.Nowhere}, Methods: []string{"POST"}}
	for _, c := range []struct {
		p              *profile.Profile
		method, target string
		base, honoured string
		want           Coverage
	}{
		{p: listed, method: "POST", target: "/v1/payments", want: Covered},
		{p: listed, method: "POST", target: "/v1/payments?x=/v1/other", want: Covered},
		{p: listed, method: "PUT", target: "/v1/payments", want: Uncovered},
		{p: listed, method: "POST", target: "/v1/payments/", want: Uncovered},
		{p: listed, method: "POST", target: "/V1/payments", want: Uncovered},
		{p: listed, method: "POST", target: "//v1/payments", want: Uncovered},
		{p: listed, method: "POST", target: "/x/v1/payments", want: Uncovered},
		{p: listed, method: "POST", target: "/v1/payments/p_1", want: Uncovered},
		{p: listed, method: "POST", target: "/v1/payments/p_1/refunds", want: Covered},
		{p: listed, method: "POST", target: "/v1/payments/%7Bid%7D/refunds", want: Covered},
		{p: listed, method: "POST", target: "/v1/payments//refunds", want: Uncovered},
		{p: listed, method: "POST", target: "/v1/payments/../refunds", want: Uncovered},
		{p: listed, method: "POST", target: "/v1/payments/%2e%2E/refunds", want: Uncovered},
		{p: listed, method: "POST", target: "/v1/payments/a%2Fb/refunds", want: Uncovered},
		{p: listed, method: "POST", target: "/v1/payments/a%5cb/refunds", want: Uncovered},
		{p: listed, method: "POST", target: "/v1/payments/a;b/refunds", want: Uncovered},
		{p: listed, method: "PUT", target: "/v1/vendors/7", want: Covered},
		{p: listed, method: "PUT", target: "/v1/vendors/bulk", want: Uncovered},
		{p: listed, method: "POST", target: "/gw/v1/payments", base: "/gw", want: Covered},
		{p: listed, method: "POST", target: "/v1/payments", base: "/gw", want: Covered},
		{p: listed, method: "POST", target: "/gwv1/payments", base: "/gw", want: Uncovered},
		{p: listed, method: "POST", target: "/gw/gw/v1/payments", base: "/gw", want: Uncovered},
		{p: listed, method: "POST", target: "/v1/payouts/7", honoured: "POST /v1/payouts/{id}", want: Covered},
		{p: listed, method: "PATCH", target: "/v1/payouts/7", honoured: "POST /v1/payouts/{id}", want: Uncovered},
		{p: listed, method: "POST", target: "/gw/v1/payouts/7", base: "/gw", honoured: "POST /v1/payouts/{id}", want: Covered},
		{p: methods, method: "POST", target: "/any", want: Covered},
		{p: methods, method: "PUT", target: "/any", want: Uncovered},
		{p: methods, method: "PUT", target: "/any", honoured: "PUT /any", want: Covered},
		{p: silent, method: "POST", target: "/any", want: Covered},
		{p: silent, method: "PATCH", target: "/any", want: Covered},
		{p: silent, method: "DELETE", target: "/any", want: Unheard},
		{p: silent, method: "DELETE", target: "/any", honoured: "DELETE /any", want: Covered},
		{p: profile.Draft07(), method: "DELETE", target: "/any", want: Unheard},
		{p: keyless, method: "POST", target: "/any", want: Covered},
		{p: keyless, method: "PUT", target: "/any", honoured: "PUT /any", want: Uncovered},
	} {
		e := Endpoints{BasePath: c.base}
		if c.honoured != "" {
			e.Honoured = endpoint(c.honoured)
		}
		rec := &persist.Record{Method: c.method, Target: c.target}
		if got := e.coverage(rec, c.p); got != c.want {
			t.Errorf("%s: %s %s (base %q, honoured %q): %d, want %d", c.p.Name, c.method, c.target, c.base, c.honoured, got, c.want)
		}
		sent := c.p.Carrier.Place != profile.Nowhere
		if got := protected(rec, c.p, c.want); got != (c.want != Uncovered && sent) {
			t.Errorf("%s: %s %s: protected %t", c.p.Name, c.method, c.target, got)
		}
	}
}

// TestNormalPath: ids are left out of it, versions are not.
func TestNormalPath(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/v2/payments/41/refunds?a=1":          "/v2/payments/{}/refunds",
		"/api/1.0/pay":                         "/api/{}/pay",
		"/payments/abcdefghijklmnopqrstuvwxyz": "/payments/{}",
		"/v1.1/vault/x":                        "/v1.1/vault/x",
		"/":                                    "/",
		"/p/8e03978e-40d5-43e8-bc93-6894a57f9324/cancel": "/p/{}/cancel",
	} {
		if got := NormalPath(target); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}

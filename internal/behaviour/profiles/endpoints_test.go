package profiles_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestAKeyProtectsOnlyAtItsEndpoints: elsewhere a request is sent once, and held where that leaves a doubt. A caller can say more,
// and that a gateway has put something before the paths.
func TestAKeyProtectsOnlyAtItsEndpoints(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		profile, method, path string
		change                func(*oncehttp.Config)
		bound                 bool // one send only
	}{
		{"coinbase", "POST", "/platform/v2/transfers", nil, false},
		{"coinbase", "POST", "/platform/v2/x402/settle", nil, true},
		{"coinbase", "PUT", "/platform/v2/evm/accounts/0x1", nil, false},
		{"coinbase", "PUT", "/platform/v2/transfers", nil, true},
		{"lithic", "POST", "/v1/payments", nil, true},
		{"rapyd", "POST", "/v1/payouts", nil, true},
		{"rapyd", "POST", "/v1/payouts", func(c *oncehttp.Config) { c.KeyHonoured = []string{"POST /v1/payouts"} }, false},
		{"rapyd", "POST", "/gw/v1/payments", nil, true},
		{"rapyd", "POST", "/gw/v1/payments", func(c *oncehttp.Config) { c.BasePath = "/gw" }, false},
		{"paypal-payments", "POST", "/v1/payments/payouts-item/x/cancel", nil, true},
		{"paypal-payments", "POST", "/v2/payments/captures/x/refund", nil, false},
		{"modern-treasury", "PATCH", "/api/payment_orders/1", nil, true},
		{"modern-treasury", "PATCH", "/api/payment_orders/1", func(c *oncehttp.Config) { c.KeyHonoured = []string{"PATCH /api/payment_orders/{id}"} }, false},
		{"checkout-com", "POST", "/payouts", nil, true},
	} {
		t.Run(fmt.Sprint(r.profile, " ", r.method, " ", r.path), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Body: `{"status":"COMPLETED"}`}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Profile = clienttest.Named(t, r.profile)
					if r.change != nil {
						r.change(cfg)
					}
				})
				const key = "8e03978e-40d5-43e8-bc93-6894a57f9324"
				_, err := c.DoKey(clienttest.Request(t, r.method, "https://api.example.com"+r.path, "{}"), key)
				rec := clienttest.Lookup(t, c, key)
				switch {
				case rec.Protected == r.bound:
					t.Errorf("protected %t, want %t", rec.Protected, !r.bound)
				case r.bound && (w.Count() != 1 || rec.State != persist.StateHeld || rec.HoldReason != persist.HoldNoKey):
					t.Errorf("%v, %d sends, record %v (%s); want one send, and held", err, w.Count(), rec.State, rec.HoldReason)
				case !r.bound && (err != nil || w.Count() != 2 || rec.State != persist.StateConfirmed):
					t.Errorf("%v, %d sends, record %v; want the 201", err, w.Count(), rec.State)
				}
			})
		})
	}
}

// TestAnOperationWithoutProtectionIsToldOnce for each path without its ids, up to a bound, and never where keys count.
func TestAnOperationWithoutProtectionIsToldOnce(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		profile string
		paths   []string
		change  func(*oncehttp.Config)
		lines   int
		has     string
	}{
		"one operation":  {"rapyd", []string{"/v1/payouts", "/v1/payouts", "/v1/payouts"}, nil, 1, "POST /v1/payouts"},
		"ids":            {"rapyd", []string{"/v1/payouts/p_1/cancel", "/v1/payouts/p_2/cancel"}, nil, 1, "POST /v1/payouts/{}/cancel"},
		"two operations": {"rapyd", []string{"/v1/payouts", "/v1/refunds", "/v1/payouts"}, nil, 2, "POST /v1/refunds"},
		"an endpoint":    {"rapyd", []string{"/v1/payments", "/v1/payments?x=1"}, nil, 0, ""},
		"honoured":       {"rapyd", []string{"/v1/payouts"}, func(c *oncehttp.Config) { c.KeyHonoured = []string{"POST /v1/payouts"} }, 0, ""},
		"of the caller":  {"none", []string{"/v1/payouts"}, nil, 0, ""},
		"very many":      {"rapyd", manyPaths(150), nil, 100, "further operations are not named"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := &clienttest.Log{}
				w := &wiretest.Wire{}
				for range r.paths {
					w.Replies = append(w.Replies, wiretest.Reply{Status: 201, Body: "{}"})
				}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Profile, cfg.Logger = clienttest.Named(t, r.profile), log.Warner()
					if r.change != nil {
						r.change(cfg)
					}
				})
				for i, path := range r.paths {
					if _, err := c.DoKey(clienttest.Request(t, http.MethodPost, "https://api.example.com"+path, "{}"), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
						t.Fatal(err)
					}
				}
				if log.Lines() != r.lines || !log.Has(r.has) {
					t.Errorf("%d lines, want %d with %q:\n%s", log.Lines(), r.lines, r.has, log)
				}
			})
		})
	}
}

func manyPaths(n int) (paths []string) {
	for i := range n {
		paths = append(paths, "/v1/"+strings.Repeat("x", i/20+1)+strings.Repeat("y", i%20))
	}
	return paths
}

// TestKeyHonouredIsChecked when the client is made.
func TestKeyHonouredIsChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/v1/payouts": "a method in upper case", "POST": "a method and a path", "PSOT /v1": "want POST", "!POST /v1": "an operation at which keys count", "GET /v1": "takes no key",
	} {
		if _, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), KeyHonoured: []string{text}}); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "in KeyHonoured: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, base := range []string{"gw", "/gw/", "/gw?x", "/gw#x", "/{x}", "/"} {
		if _, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), BasePath: base}); !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "BasePath") {
			t.Errorf("a base %q: %v", base, err)
		}
	}
}

package profiles_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestADeclineWith2xxIsNoPayment: where the API of a built-in profile answers a declined payment with a 2xx, its body decides. Other endpoints of the API
// answer by their status.
func TestADeclineWith2xxIsNoPayment(t *testing.T) {
	t.Parallel()
	const refused, done, held = "refused", "done", "held"
	for _, r := range []struct {
		profile, path, answer, want string
	}{
		{"adyen", "/v72/payments", `{"resultCode":"Refused","refusalReasonCode":"2"}`, refused},
		{"adyen", "/checkout/v72/payments/details", `{"resultCode":"Cancelled"}`, refused},
		{"adyen", "/pal/servlet/Payment/v68/authorise", `{"resultCode":"Refused"}`, refused},
		{"adyen", "/v72/donations", `{"status":"refused"}`, refused},
		{"adyen", "/v72/payments", `{"resultCode":"Authorised"}`, done},
		{"adyen", "/v72/payments", `{"resultCode":"RedirectShopper","action":{"type":"redirect"}}`, done},
		{"adyen", "/v72/payments", `{"resultCode":"Pending"}`, done},
		{"adyen", "/v72/payments", `{"resultCode":"Received"}`, done},
		{"adyen", "/v72/payments", `{"resultCode":"Error"}`, held},
		{"adyen", "/v72/payments", `{"resultCode":"PartiallyAuthorised"}`, held},
		{"adyen", "/v72/payments", `{}`, held},
		{"adyen", "/v72/payments/X1/captures", `{"status":"received"}`, done},
		{"adyen", "/v72/sessions", `{"id":"s1"}`, done},
		{"checkout-com", "/payments", `{"approved":false,"status":"Declined"}`, refused},
		{"checkout-com", "/payments/pay_1/authorizations", `{"approved":false,"status":"Declined"}`, refused},
		{"checkout-com", "/payments", `{"approved":true,"status":"Authorized"}`, done},
		{"checkout-com", "/payments", `{"id":"pay_1","status":"Pending"}`, done},
		{"checkout-com", "/payments", `{"approved":false,"status":"Retry Scheduled"}`, held},
		{"checkout-com", "/payments/pay_1/captures", `{"action_id":"act_1"}`, done},
		{"lithic-payments", "/v1/payments", `{"status":"DECLINED","result":"DECLINED"}`, refused},
		{"lithic-payments", "/v1/payments", `{"status":"PENDING","result":"APPROVED"}`, done},
		{"mangopay", "/v2.01/c1/payins/card/direct/", `{"Status":"FAILED","ResultCode":"101101"}`, refused},
		{"mangopay", "/v2.01/c1/transfers", `{"Status":"FAILED"}`, refused},
		{"mangopay", "/v2.01/c1/payouts/bankwire", `{"Status":"CREATED"}`, done},
		{"mangopay", "/v2.01/c1/users/natural", `{"Id":"u1"}`, done},
		{"mercado-pago", "/v1/payments", `{"status":"rejected"}`, refused},
		{"mercado-pago", "/v1/payments", `{"status":"approved"}`, done},
		{"mercado-pago", "/v1/customers", `{"id":"c1"}`, done},
		{"mollie", "/v2/payments", `{"status":"failed"}`, refused},
		{"mollie", "/v2/payments", `{"status":"open"}`, done},
		{"mollie", "/v2/customers", `{"id":"cst_1"}`, done},
		{"paypal-payments", "/v2/payments/authorizations/A1/capture", `{"status":"DECLINED"}`, refused},
		{"paypal-payments", "/v2/payments/authorizations/A1/capture", `{"status":"FAILED"}`, held},
		{"paypal-payments", "/v2/payments/authorizations/A1/capture", `{"status":"COMPLETED"}`, done},
		{"paypal-payments", "/v2/payments/authorizations/A1/reauthorize", `{"status":"DENIED"}`, refused},
		{"paypal-payments", "/v2/payments/captures/C1/refund", `{"status":"FAILED"}`, refused},
		{"paypal-payments", "/v2/payments/captures/C1/refund", `{"status":"PENDING"}`, done},
		{"paypal-orders", "/v2/checkout/orders/O1/capture", `{"status":"COMPLETED","purchase_units":[{"payments":{"captures":[{"status":"DECLINED"}]}}]}`, held},
		{"paypal-orders", "/v2/checkout/orders/O1/capture", `{"status":"COMPLETED","purchase_units":[{"payments":{"captures":[{"status":"COMPLETED"}]}}]}`, done},
		{"paypal-orders", "/v2/checkout/orders", `{"status":"CREATED"}`, done},
		{"paystack", "/charge", `{"status":true,"data":{"status":"failed"}}`, refused},
		{"paystack", "/charge", `{"status":true,"data":{"status":"success"}}`, done},
		{"paystack", "/charge", `{"status":true,"data":{"status":"send_otp"}}`, done},
		{"paystack", "/charge", `{"status":true,"data":{"status":"timeout"}}`, held},
		{"paystack", "/transfer", `{"status":true,"data":{"status":"failed"}}`, refused},
		{"paystack", "/customer", `{"status":true,"data":{"id":1}}`, done},
		{"plaid", "/transfer/authorization/create", `{"authorization":{"decision":"declined"}}`, refused},
		{"plaid", "/transfer/authorization/create", `{"authorization":{"decision":"approved"}}`, done},
		{"plaid", "/transfer/ledger/deposit", `{"sweep":{"id":"s1"}}`, done},
		{"revolut-business", "/api/1.0/pay", `{"state":"declined"}`, refused},
		{"revolut-business", "/api/1.0/pay", `{"state":"pending"}`, done},
		{"yookassa", "/v3/payments", `{"status":"canceled"}`, refused},
		{"yookassa", "/v3/payments", `{"status":"waiting_for_capture"}`, done},
		{"yookassa", "/v3/payments/p1/cancel", `{"status":"canceled"}`, done},
	} {
		t.Run(r.profile+" "+r.path+" "+r.answer, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Header: "Content-Type: application/json", Body: r.answer}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = clienttest.Named(t, r.profile) })
				const key = "8e03978e-40d5-43e8-bc93-6894a57f9324"
				body := `{"reference":"` + key + `","idempotency_key":"` + key + `","request_id":"` + key + `","token":"` + key + `"}`
				resp, err := c.DoKey(clienttest.Request(t, http.MethodPost, "https://api.example.com"+r.path, body), key)
				if err == nil {
					clienttest.Read(t, resp)
				}
				rec := clienttest.Lookup(t, c, key)
				effect, state := rec.FinalEffect(), rec.State
				want := map[string]struct {
					effect persist.Effect
					state  persist.State
				}{
					refused: {persist.EffectRefused, persist.StateConfirmed}, done: {oncehttp.EffectHappened, persist.StateConfirmed}, held: {oncehttp.EffectUnknown, persist.StateHeld},
				}[r.want]
				if effect != want.effect || state != want.state || w.Count() != 1 {
					t.Errorf("%v, %v after %d sends, %v; want %v, %v", state, effect, w.Count(), err, want.state, want.effect)
				}
			})
		})
	}
}

package profile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

// words are facts by their names in files, as people read them; "" is: nobody says it.
type words map[string]string

// documented holds what the sources of a profile say of requests, times and kept answers, written down from them and not from
// the profile. The answers that they document stand in internal/classify/providers_test.go and mockserver/answers_test.go.
func documented() map[string]words {
	const lettersDashes = "A-Za-z0-9-_"
	return map[string]words{
		// draft-ietf-httpapi-idempotency-key-header-07, sections 2.1 and 2.7; its window and the marks are choices.
		"draft-07": {
			"carrier": "header Idempotency-Key", "encoding": "raw", "key": "1 to 255 bytes", "methods": "POST, PATCH", "window": "24h, a cap that nobody promised",
			"replay": "Idempotent-Replayed: true; Idempotency-Replayed: true; X-Idempotent-Replayed: true; X-Idempotency-Replayed: true; " +
				"Request-Idempotency: true; Idempotent-Response: true; X-Idempotency-Cache-Hit: true; Idempotency-Status: replayed; X-Idempotency-Status: replayed",
			"not_acted": "421, 425, 429 (send again); 401, 403, 407 (stop)", "retry_after": "Retry-After",
			"stored": "2xx: yes; 4xx: unknown; 5xx: unknown",
		},
		// "saves the resulting status code and body … including 500 errors"; "at least 24 hours"; stripe-go stripe.go shouldRetry.
		"stripe": {
			"endpoints": "",
			"carrier":   "header Idempotency-Key", "key": "1 to 255 bytes", "methods": "POST", "window": "24h", "replay": "Idempotent-Replayed: true",
			"account_headers": "Stripe-Account, Stripe-Context", "fingerprint": "Stripe-Version", "body": "form, compared by values",
			"should_retry": `Stripe-Should-Retry: "true" sends again, "false" stops`,
			"stored":       "2xx: yes; 4xx: 402 with /error/type = card_error; 5xx: yes",
		},
		// One page for v1 and v2: "up to 255 characters long"; the mark is that of v1.
		"stripe-v2": {"key": "1 to 255 bytes", "replay": "Idempotent-Replayed: true", "window": "30d", "methods": "POST, DELETE", "stored": "2xx: yes; 4xx: unknown; 5xx: no"},
		// docs.adyen.com/development-resources/api-idempotency; CheckoutService-v72.json, Idempotency-Key and IOEXCEPTION_RECEIVED.
		"adyen": {
			"endpoints": "",
			"carrier":   "header Idempotency-Key", "key": "1 to 64 bytes", "methods": "POST", "window": "7d", "mismatch": "",
			"should_retry": `transient-error: "true" sends again, "false" stops, an error without it stops`,
			"stored":       "2xx: yes; 4xx: 200 with /resultCode = Refused or Cancelled; 5xx: yes",
		},
		// spec/2026-04-17/openapi/openapi.delegate_payment.yaml, IdempotencyKey; rfcs/rfc.delegate_payment.md section 5.
		"acp": {
			"endpoints": "",
			"carrier":   "header Idempotency-Key", "key": "1 to 255 bytes", "methods": "POST", "window": "24h", "body": "json, compared by values",
			"replay": "Idempotent-Replayed: true", "stored": "2xx: yes; 4xx: unknown; 5xx: no",
		},
		// openapi.yaml, parameters/IdempotencyKey, which operations refer to it; the page says UUID v4.
		"coinbase": {"carrier": "header X-Idempotency-Key", "key": "36 to 36 bytes, a UUID of version 4", "methods": "POST, PUT, DELETE", "window": "24h", "stored": "2xx: yes; 4xx: unknown; 5xx: unknown"},
		// 2020-09-14.yml, the nine …IdempotencyKey schemas: six of them state no time, and six of them 50 characters.
		"plaid":  {"endpoints": "POST /transfer/authorization/create, POST /transfer/refund/create, POST /transfer/recurring/create, POST /transfer/ledger/deposit, POST /transfer/ledger/withdraw, POST /transfer/ledger/distribute, POST /bank_transfer/create, POST /processor/bank_transfer/create, POST /wallet/transaction/execute, POST /payment_initiation/consent/payment/execute, POST /payment_initiation/payment/reverse", "carrier": "JSON body at /idempotency_key", "key": "1 to 50 bytes", "window": "1h, a cap that nobody promised", "min_delay": "1m", "stored": ""},
		"dwolla": {"endpoints": "POST /transfers, POST /mass-payments", "carrier": "header Idempotency-Key", "methods": "POST", "window": "24h", "mismatch": ""},
		// resources/idempotency.md of 2023.
		"datatrans": {"carrier": "header Idempotency-Key", "window": "1h", "stored": "2xx: yes; 4xx: unknown; 5xx: unknown"},
		// openapi/*.json, parameters/paypal_request_id: "The server stores keys for …", maxLength.
		"paypal-orders":        {"endpoints": "POST /v2/checkout/orders, POST /v2/checkout/orders/{id}/authorize, POST /v2/checkout/orders/{id}/capture", "carrier": "header PayPal-Request-Id", "key": "1 to 108 bytes", "methods": "POST", "window": "6h"},
		"paypal-payments":      {"endpoints": "POST /v2/payments/authorizations/{authorization_id}/capture, POST /v2/payments/authorizations/{authorization_id}/reauthorize, POST /v2/payments/captures/{capture_id}/refund", "carrier": "header PayPal-Request-Id", "key": "1 to 38 bytes", "methods": "POST", "window": "45d"},
		"paypal-vault":         {"endpoints": "POST /v3/vault/payment-tokens, POST /v3/vault/setup-tokens", "carrier": "header PayPal-Request-Id", "key": "1 to 38 bytes", "methods": "POST", "window": "3h"},
		"paypal-payouts":       {"endpoints": "POST /v1/payments/payouts", "carrier": "header PayPal-Request-Id", "key": "1 to 1000 bytes", "methods": "POST", "window": "30d"},
		"paypal-subscriptions": {"carrier": "header PayPal-Request-Id", "key": "1 to 38 bytes", "methods": "POST", "window": "3d"},
		// api.json: the least of all limits is 45; UpdatePayment and ten other PUTs take the key.
		"square": {"carrier": "JSON body at /idempotency_key", "key": "1 to 45 bytes", "methods": "POST, PUT", "window": "1h, a cap that nobody promised", "stored": "2xx: yes; 4xx: unknown; 5xx: unknown"},
		"gocardless": {
			"carrier": "header Idempotency-Key", "methods": "POST", "window": "1h, a cap that nobody promised", "stored": "",
			"lookup": "GET {path}/{id}, the id from /error/errors/0/links/conflicting_resource_id",
		},
		"checkout-com": {"endpoints": "POST /payment-contexts, POST /payments, POST /payments/{id}/authorizations, POST /payments/{id}/cancellations, POST /payments/{id}/captures, POST /payments/{id}/refunds, POST /payments/{id}/voids, POST /transfers", "carrier": "header Cko-Idempotency-Key", "window": "24h", "min_delay": "30s", "stored": "2xx: yes; 4xx: unknown; 5xx: no", "mismatch": ""},
		// "at most one object per key"
		"increase": {"endpoints": "", "carrier": "header Idempotency-Key", "key": "1 to 200 bytes", "window": "24h, a cap that nobody promised", "replay": "Idempotent-Replayed: true"},
		"mollie":   {"endpoints": "", "carrier": "header Idempotency-Key", "methods": "POST", "window": "1h"},
		// api/x/payout-idempotency/make-request.md: 4-36 characters; refunds: at least 10; both: letters, digits, - and _.
		"razorpay-payouts":   {"endpoints": "POST /v1/payouts", "carrier": "header X-Payout-Idempotency", "key": "4 to 36 bytes, of " + lettersDashes, "window": "7d"},
		"razorpay-refunds":   {"endpoints": "POST /v1/payments/{id}/refund", "carrier": "header X-Refund-Idempotency", "key": "10 to 255 bytes, of " + lettersDashes, "window": "1h, a cap that nobody promised"},
		"razorpay-transfers": {"endpoints": "POST /v1/transfers", "carrier": "header X-Transfer-Idempotency", "key": "4 to 36 bytes, of " + lettersDashes, "window": "1h, a cap that nobody promised"},
		// docs/specification/signatures.md: 22+ characters, SHA-256 of the raw body, at least 24 hours.
		"ucp": {"carrier": "header Idempotency-Key", "key": "22 to 255 bytes", "body": "json, compared by bytes", "window": "24h"},
		// lithic-go card.go:1300; payment.go:1149.
		"lithic":          {"endpoints": "POST /v1/cards, POST /v1/financial_accounts", "carrier": "header Idempotency-Key", "key": "36 to 36 bytes, a UUID", "methods": "POST"},
		"lithic-payments": {"carrier": "JSON body at /token", "key": "36 to 36 bytes, a UUID", "methods": "POST", "window": "24h, a cap that nobody promised"},
		// dist/betting.yaml TransferBase.reference: lower case, digits, - and _; minimum 16.
		"paystack": {"carrier": "JSON body at /reference", "key": "16 to 255 bytes, of a-z0-9-_"},
		// circle-nodejs-sdk src/generated: the requests that have an idempotencyKey, "UUID v4".
		"circle": {
			"endpoints": "POST /v1/addressBook/recipients, POST /v1/businessAccount/banks/cubix, POST /v1/businessAccount/banks/pix, POST /v1/businessAccount/banks/wires, POST /v1/businessAccount/payouts, POST /v1/businessAccount/transfers, POST /v1/businessAccount/wallets/addresses/deposit, POST /v1/businessAccount/wallets/addresses/recipient, POST /v1/exchange/quotes, POST /v1/exchange/trades, POST /v1/paymentIntents, POST /v1/paymentIntents/{id}/refund, POST /v1/payouts, POST /v2/reserveManagement/dailyCustodyBalances",
			"carrier":   "JSON body at /idempotencyKey", "key": "1 to 255 bytes, a UUID of version 4", "methods": "POST",
		},
		// docs.wise.com/api-reference: balancecreate, balancemovement and cardordercreate require X-idempotence-uuid.
		"wise-balances": {
			"endpoints": "POST /v4/profiles/{profileId}/balances, POST /v2/profiles/{profileId}/balance-movements, POST /v3/spend/profiles/{profileId}/card-orders",
			"carrier":   "header X-idempotence-uuid", "key": "36 to 36 bytes, a UUID", "window": "1h, a cap that nobody promised", "mismatch": "", "stored": "",
		},
		// "24 hours after the initial request"; "All POST APIs"; "will return the original response".
		"bridge": {"carrier": "header Idempotency-Key", "methods": "POST", "window": "24h", "mismatch": "", "stored": "2xx: yes; 4xx: unknown; 5xx: unknown"},
		// "any POST request"; "the same result, including any 400 or 500 errors"; "after 24 hours".
		"easyship": {"carrier": "header Idempotency-Key", "methods": "POST", "window": "24h", "stored": "2xx: yes; 4xx: unknown; 5xx: yes"},
		// "X-Qonto-Idempotency-Key"; "expire after 30 minutes"; "even if the request body differs".
		"qonto": {"carrier": "header X-Qonto-Idempotency-Key", "window": "30m", "mismatch": "", "stored": "2xx: yes; 4xx: unknown; 5xx: unknown"},
		// "up to 255 bytes"; "24 hours"; "Idempotent-Replayed: true"; the Api-Version-Date has to match.
		"whop": {"carrier": "header Idempotency-Key", "key": "1 to 255 bytes", "methods": "POST", "window": "24h", "fingerprint": "Api-Version-Date", "replay": "Idempotent-Replayed: true", "mismatch": ""},
		// "POST (Create calls) and PATCH (Update calls)"; "irrespective of status code".
		"solid": {"carrier": "header idempotency-key", "methods": "POST, PATCH", "window": "1h, a cap that nobody promised", "unclear": "409", "stored": "2xx: yes; 4xx: unknown; 5xx: yes"},
		// "X-GCS-Idempotence-Key"; "24 hours"; 409 while the first has not finished; the mark of "all subsequent requests".
		"worldline-connect": {"carrier": "header X-GCS-Idempotence-Key", "key": "1 to 40 bytes", "window": "24h", "in_progress": "409", "replay": "X-GCS-Idempotence-Request-Timestamp"},
		// rest-catalog-open-api.yaml: the operations with the parameter idempotency-key; UUIDv7; "e.g., PT30M"; 5xx "not stored/replayed".
		"iceberg-rest": {
			"endpoints": "POST /v1/{prefix}/namespaces, DELETE /v1/{prefix}/namespaces/{namespace}, POST /v1/{prefix}/namespaces/{namespace}/properties, POST /v1/{prefix}/namespaces/{namespace}/tables, POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan, DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}, POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks, POST /v1/{prefix}/namespaces/{namespace}/register, POST /v1/{prefix}/namespaces/{namespace}/tables/{table}, DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}, POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister, POST /v1/{prefix}/tables/rename, POST /v1/{prefix}/transactions/commit, POST /v1/{prefix}/namespaces/{namespace}/views/{view}, DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}, POST /v1/{prefix}/views/rename, POST /v1/{prefix}/namespaces/{namespace}/register-view",
			"carrier":   "header Idempotency-Key", "key": "36 to 36 bytes, a UUID", "methods": "POST, DELETE", "window": "30m, a cap that nobody promised", "stored": "2xx: yes; 4xx: unknown; 5xx: no", "mismatch": "",
		},
		// oas/trading/openapi.yaml: client_order_id, maxLength 48.
		"alpaca": {"endpoints": "POST /v2/orders, POST /v1/trading/accounts/{account_id}/orders", "carrier": "JSON body at /client_order_id", "key": "1 to 48 bytes", "methods": "POST", "window": "1h, a cap that nobody promised", "unclear": "422 with /message = client_order_id must be unique", "stored": "", "mismatch": ""},
		// resend.json: maxLength 256; the page: the last 24 hours, POST /emails and /emails/batch.
		"resend": {"endpoints": "POST /emails, POST /emails/batch", "carrier": "header Idempotency-Key", "key": "1 to 256 bytes", "methods": "POST", "window": "24h", "stored": "2xx: yes; 4xx: unknown; 5xx: unknown"},
		// "less than 255 characters"; "All POST and PATCH requests"; "24 hours"; "saved regardless of whether it succeeded or failed".
		"zuora": {"endpoints": "", "carrier": "header idempotency-key", "key": "1 to 254 bytes", "methods": "POST, PATCH", "window": "24h", "stored": "2xx: yes; 4xx: unknown; 5xx: yes"},
		// xero_accounting.yaml, components/parameters/idempotencyKey: "128 character max."; 99 operations have it, 53 PUTs and 46 POSTs.
		"xero": {"carrier": "header Idempotency-Key", "key": "1 to 128 bytes", "methods": "POST, PUT", "window": "1h, a cap that nobody promised", "mismatch": ""},
		// One page says 30 days, another one 6 hours.
		"truelayer": {
			"endpoints": "POST /v3/payments", "carrier": "header Idempotency-Key", "methods": "POST", "window": "6h",
			"mismatch": "422 with /type = https://docs.truelayer.com/docs/error-types#idempotency-key-reuse", "in_progress": "409 with /type = https://docs.truelayer.com/docs/error-types#idempotency-key-concurrency-conflict",
		},
		// "up to 36 characters"; "will not expire"; any repeat is a 409.
		"moov": {"carrier": "header X-Idempotency-Key", "key": "1 to 36 bytes", "methods": "POST", "window": "30d", "unclear": "409", "stored": ""},
		// "between 16 and 36 alphanumeric characters or dashes"; "all POST calls"; any repeat is a 409.
		"mangopay": {"carrier": "header Idempotency-Key", "key": "16 to 36 bytes, of A-Za-z0-9-", "methods": "POST", "window": "24h", "unclear": "409", "stored": ""},
		// "up to 255 characters"; the page's list.
		"column": {
			"endpoints": "POST /bank-accounts, POST /bank-accounts/{bank_account_id}/account-numbers, POST /entities/business, POST /entities/person, POST /interests/configs, POST /interests/pivot-rates, POST /loans, POST /loans/disbursements, POST /loans/payments, POST /loans/{loan_id}/sales, POST /transfers/ach, POST /transfers/ach/{ach_transfer_id}/reverse, POST /transfers/book, POST /transfers/checks/deposit, POST /transfers/checks/issue, POST /transfers/international-wire, POST /transfers/international-wire/fx-rate, POST /transfers/wire, POST /transfers/wire/{wire_transfer_id}/reverse",
			"carrier":   "header Idempotency-Key", "key": "1 to 255 bytes", "window": "1h, a cap that nobody promised", "stored": "2xx: yes; 4xx: unknown; 5xx: unknown",
		},
		// "For all POST endpoints"; X-Idempotency-Cache-Hit: true.
		"flutterwave": {"endpoints": "", "carrier": "header X-Idempotency-Key", "methods": "POST", "window": "1h, a cap that nobody promised", "replay": "X-Idempotency-Cache-Hit: true"},
		// mercury-go payment.go: three requests have the member idempotencyKey, which is required.
		"mercury": {
			"endpoints": "POST /api/v1/account/{accountId}/request-send-money, POST /api/v1/account/{accountId}/transactions, POST /api/v1/transfer",
			"carrier":   "JSON body at /idempotencyKey", "methods": "POST", "window": "1h, a cap that nobody promised",
		},
		// "a maximum of 32 characters", a-z A-Z 0-9 - _; "stored indefinitely".
		"amazon-pay": {"endpoints": "", "carrier": "header x-amz-pay-idempotency-key", "key": "1 to 32 bytes, of " + lettersDashes, "methods": "POST", "window": "30d", "stored": "2xx: yes; 4xx: unknown; 5xx: unknown"},
	}
}

// TestXeroEndpoints: the specification has 99 operations with the key: 53 PUTs and 46 POSTs.
func TestXeroEndpoints(t *testing.T) {
	t.Parallel()
	p, _ := profile.ByName("xero")
	puts := 0
	for _, e := range p.Endpoints {
		if e.Method == "PUT" {
			puts++
		}
	}
	if len(p.Endpoints) != 99 || puts != 53 {
		t.Errorf("got %d endpoints, %d of them PUT; want 99 and 53", len(p.Endpoints), puts)
	}
}

// TestDocumentedFacts: the profiles say what their sources say.
func TestDocumentedFacts(t *testing.T) {
	t.Parallel()
	for name, want := range documented() {
		p, ok := profile.ByName(name)
		if !ok {
			t.Errorf("no profile %q", name)
			continue
		}
		got := words{}
		for _, s := range p.Statements() {
			got[s.Name] = s.Text
		}
		for fact, text := range want {
			if is, known := got[fact]; is != text || !known {
				t.Errorf("%s: %s is %q, want %q", name, fact, is, text)
			}
		}
	}
}

// TestCompleteProfiles: those that call themselves complete are, and no others. What each lacks is in its sources' silence.
func TestCompleteProfiles(t *testing.T) {
	t.Parallel()
	var complete []string
	for _, name := range profile.Names() {
		if p, _ := profile.ByName(name); p.Complete() {
			complete = append(complete, name)
		}
	}
	if want := []string{"acp", "stripe", "zuora"}; !slices.Equal(complete, want) {
		t.Errorf("complete are %v, want %v", complete, want)
	}
}

// TestQuotesAreShort: what a source is quoted for is a few words of it.
func TestQuotesAreShort(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *profile.Profile) {
		for field, s := range p.Sources {
			if n := len(strings.Fields(s.Said)); n >= 25 {
				t.Errorf("%s: %d words of its source", field, n)
			}
		}
	})
	quoted := 0
	for name := range documented() {
		p, _ := profile.ByName(name)
		for _, s := range p.Sources {
			if s.Said != "" {
				quoted++
			}
		}
	}
	if quoted < 60 {
		t.Errorf("%d facts are quoted", quoted)
	}
}

package classify_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/profile"
)

// said is one answer that a provider's sources document (the sources stand in profile/data), and what it proves: of an
// operation of which nothing is in doubt, and of one in doubt ("" is the same).
type said struct {
	what           string
	a              classify.Answer
	fresh, inDoubt string
}

// What a verdict is called in the tables.
const (
	problem, replayed                 = "application/problem+json", "Idempotent-Replayed"
	again, inFlight, mismatched, held = "unknown, again", "in flight, again", "mismatch", "unknown, held"
	final, stored, refusal            = "final", "final, stored", "refused, again"
)

// saidAtoL holds the answers of the first half of the profiles.
func saidAtoL() map[string][]said {
	rejected := []string{"Repeatability-Result", "rejected"}
	return map[string][]said{
		"draft-07": {
			{"missing key", answer(400, `{"title":"Idempotency-Key is missing"}`, "Content-Type", problem), final, again},
			{"reused key", answer(422, `{"title":"Idempotency-Key is already used"}`, "Content-Type", problem), mismatched, "mismatch, held"},
			{"outstanding", answer(409, `{}`, "Content-Type", problem), inFlight, ""},
		},
		"draft-07-quoted": {{"reused key, by a link", answer(422, ``, "Link", `<https://a/>; rel="describedby"`), mismatched, "mismatch, held"}},
		"acp": {
			{"in flight", answer(409, `{"type":"invalid_request","code":"idempotency_in_flight"}`, "Retry-After", "1"), inFlight, ""},
			{"other body", answer(422, `{"type":"invalid_request","code":"idempotency_conflict"}`), mismatched, "mismatch, held"},
			{"other body, as the releases to 2026-01-30 have it", answer(409, `{"type":"invalid_request","code":"idempotency_conflict","message":"Same Idempotency-Key used with different parameters"}`), mismatched, "mismatch, held"},
			{"other 422", answer(422, `{"type":"invalid_request","code":"invalid_card"}`), final, again},
			{"no key", answer(400, `{"type":"invalid_request","code":"idempotency_key_required"}`), final, again},
			{"replayed error", answer(400, `{"code":"invalid_card"}`, replayed, "true"), stored, ""},
			{"5xx is not kept", answer(500, `{}`), again, ""},
		},
		"adyen": {
			{"in progress, 422", answer(422, `{"status":422,"errorCode":"704"}`, "Transient-Error", "true"), inFlight, ""},
			{"in progress, 409", answer(409, `{"status":409,"errorCode":704}`, "Transient-Error", "true"), inFlight, ""},
			{"validation", answer(422, `{"status":422,"errorCode":"130","errorType":"validation"}`), final, "unknown"},
			{"error in the talk with the issuer, kept as the result", answer(500, `{"status":500,"errorType":"internal"}`), held, ""},
			{"the same, told apart", answer(500, `{"status":500,"errorType":"internal"}`, "transient-error", "false"), held, ""},
			{"a gateway", answer(502, `<html><body>Bad Gateway</body></html>`, "Content-Type", "text/html"), again, ""},
			{"no connection", answer(500, `{}`, "transient-error", "true"), again, ""},
			{"store down", answer(503, `{"errorCode":"703"}`), again, ""},
		},
		"airwallex": {
			{"repeat", answer(400, `{"code":"duplicate_request"}`), held, ""},
			{"repeat, other code", answer(400, `{"code":"request_id_duplicate"}`), held, ""},
			{"bad request", answer(400, `{"code":"validation_failed"}`), final, again},
		},
		"antom": {
			{"other values", answer(200, `{"result":{"resultCode":"REPEAT_REQ_INCONSISTENT","resultStatus":"F"}}`), mismatched, "mismatch, held"},
			{"success", answer(200, `{"result":{"resultCode":"SUCCESS","resultStatus":"S"}}`), stored, ""},
			{"refused in a 200", answer(200, `{"result":{"resultCode":"ORDER_IS_CLOSED","resultStatus":"F"}}`), held, ""},
			{"not final", answer(200, `{"result":{"resultCode":"PAYMENT_IN_PROCESS","resultStatus":"U"}}`), held, ""},
		},
		"azure-repeatability": {
			{"other request, or badly formed", answer(400, ``, rejected...), held, ""},
			{"too old", answer(412, ``, rejected...), held, ""},
			{"in progress", answer(409, ``), inFlight, ""},
			{"another 412", answer(412, `no`), final, again},
			{"accepted", answer(201, ``, "Repeatability-Result", "accepted"), stored, ""},
		},
		"amazon-pay": {
			{"other request", answer(400, `{"reasonCode":"DuplicateIdempotencyKey","message":"The IdempotencyKey was already used in a different request."}`), mismatched, "mismatch, held"},
			{"other 400", answer(400, `{"reasonCode":"InvalidParameterValue","message":"The value is invalid."}`), final, again},
		},
		"braintree":    {{"key in progress, or other values", answer(200, `{"errors":[{"extensions":{"errorClass":"VALIDATION"}}]}`), held, ""}},
		"checkout-com": {{"concurrent", answer(409, ``), inFlight, ""}, {"validation is not kept", answer(422, `{}`), final, again}},
		"iceberg-rest": {
			{"the table exists", answer(409, `{"error":{"message":"The given table already exists","type":"AlreadyExistsException","code":409}}`), final, again},
			{"a commit failed", answer(409, `{"error":{"message":"requirements failed","type":"CommitFailedException","code":409}}`), final, again},
			{"another 409", answer(409, `{"error":{"message":"x","type":"SomethingNew","code":409}}`), inFlight, ""},
			{"the commit state is unknown", answer(500, `{"error":{"message":"Internal Server Error","type":"CommitStateUnknownException","code":500}}`), again, ""},
		},
		"alpaca":   {{"a repeat", answer(422, `{"code":40010001,"message":"client_order_id must be unique"}`), held, ""}, {"no buying power", answer(403, `{"code":40310000,"message":"insufficient buying power"}`), "refused", "unknown"}},
		"bridge":   {{"past the window", answer(422, `{"code":"x"}`), final, again}},
		"easyship": {{"a 500, which is kept", answer(500, `{}`), again, ""}},
		"circle":   {{"other request", answer(409, `{}`), held, ""}},
		"coinbase": {
			{"other payload", answer(422, `{"errorType":"idempotency_error"}`), mismatched, "mismatch, held"},
			{"other payload, payments", answer(409, `{"errorType":"idempotency_error"}`), mismatched, "mismatch, held"},
			{"processing", answer(409, `{"errorType":"already_exists","errorMessage":"Another request with the same idempotency key is currently processing."}`), inFlight, ""},
			{"name taken", answer(409, `{"errorType":"already_exists","errorMessage":"EVM account with the given name already exists."}`), final, again},
			{"delegation active", answer(409, `{"errorType":"already_exists","errorMessage":"Account already has an active EIP-7702 delegation on the given network."}`), final, again},
			{"already_exists with another message", answer(409, `{"errorType":"already_exists","errorMessage":"Something new."}`), held, ""},
			{"bad key", answer(400, `{"errorType":"invalid_request"}`), final, again},
		},
		"datatrans": {{"running", answer(409, ``), inFlight, ""}, {"other body", answer(422, ``), mismatched, "mismatch, held"}},
		"dwolla":    {{"running, or the lock after a 500", answer(409, `{}`), inFlight, ""}, {"500", answer(500, `{}`), again, ""}},
		"gocardless": {{"repeat, not the first of the errors", answer(409, `{"error":{"type":"invalid_state","errors":[{"reason":"other"},{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM1"}}]}}`), "already done, stored", ""},
			{"state", answer(409, `{"error":{"type":"invalid_state","errors":[{"reason":"payment_not_cancellable"}]}}`), final, again}, {"repeat", answer(409, `{"error":{"type":"invalid_state","errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM1"}}]}}`), "already done, stored", ""}},
		"increase": {
			{"other arguments", answer(409, `{"type":"idempotency_key_already_used_error","resource_id":"t_1"}`), mismatched, "mismatch, held"},
			{"the same, the SDK's header notwithstanding", answer(409, `{"type":"idempotency_key_already_used_error"}`, "X-Should-Retry", "true"), mismatched, "mismatch, held"},
			{"state", answer(409, `{"type":"invalid_operation_error"}`), final, again},
			{"replay", answer(200, `{}`, replayed, "true"), stored, ""},
		},
		"google-request-id": {{"done before", answer(200, `{"status":"DONE"}`), stored, ""}},
		"finix":             {{"repeat", answer(201, `{"id":"TR1","state":"PENDING"}`), stored, ""}},
		"lithic-payments":   {{"advised against", answer(500, `{}`, "X-Should-Retry", "false"), held, ""}, {"5xx", answer(500, `{}`), again, ""}},
		"lithic":            {{"advised against", answer(500, `{}`, "X-Should-Retry", "false"), held, ""}, {"advised", answer(503, `{}`, "X-Should-Retry", "true"), again, ""}},
		"klarna":            {{"state, or in progress", answer(409, `{"error_code":"CAPTURE_NOT_ALLOWED"}`), held, ""}},
	}
}

// saidMtoZ holds those of the other half.
func saidMtoZ() map[string][]said {
	return map[string][]said{
		"marqeta":         {{"repeat with the same content", answer(201, `{"token":"t"}`), stored, ""}},
		"open-banking-uk": {{"repeat, with the present status", answer(201, `{"Data":{"Status":"AcceptedSettlementCompleted"}}`), stored, ""}},
		"mercado-pago": {
			{"locked", answer(423, `{"errors":[{"code":"resource_locked"}]}`), inFlight, ""},
			{"key used, from a copy of the list", answer(409, `{"errors":[{"code":"idempotency_key_already_used"}]}`), held, ""},
			{"state, from a copy of the list", answer(409, `{"errors":[{"code":"cannot_refund_order"}]}`), held, ""},
			{"key spoilt, from a copy of the list", answer(500, `{"errors":[{"code":"idempotency_validation_failed"}]}`), held, ""},
			{"failed dependency", answer(424, `{}`), held, ""},
		},
		"modern-treasury": {{"running", answer(409, `{}`), inFlight, ""}, {"advised against", answer(500, `{}`, "X-Should-Retry", "false"), held, ""}},
		"mollie": {
			{"running", answer(409, `{"status":409,"title":"Conflict"}`), inFlight, ""},
			{"other parameters, or a bad request", answer(400, `{"status":400,"title":"Bad Request"}`), final, again},
			{"replay", answer(201, `{}`, replayed, "true"), stored, ""},
		},
		"paypal-orders":   {{"repeat", answer(200, `{"status":"CREATED"}`), stored, ""}},
		"paypal-payments": {{"running", answer(409, `{"name":"RESOURCE_CONFLICT","details":[{"issue":"PREVIOUS_REQUEST_IN_PROGRESS"}]}`), inFlight, ""}},
		"paypal-vault": {
			{"used", answer(422, `{"name":"UNPROCESSABLE_ENTITY","details":[{"issue":"PAYPAL_REQUEST_ID_PREVIOUSLY_USED"}]}`), mismatched, "mismatch, held"},
			{"other 422", answer(422, `{"details":[{"issue":"INVALID_SECURITY_CODE"}]}`), final, again},
		},
		"paypal-payouts":       {{"accepted", answer(201, `{"batch_header":{"payout_batch_id":"5UXD2E8A7EBQJ","batch_status":"PENDING"}}`), stored, ""}, {"error", answer(400, `{"name":"VALIDATION_ERROR"}`), final, again}},
		"paypal-subscriptions": {{"repeat", answer(200, `{"id":"I-BW452GLLEP1G","status":"APPROVAL_PENDING"}`), stored, ""}},
		"resend": {
			{"other payload", answer(409, `{"statusCode":409,"name":"invalid_idempotent_request","message":"Same idempotency key used with a different request payload."}`), mismatched, "mismatch, held"},
			{"running", answer(409, `{"statusCode":409,"name":"concurrent_idempotent_requests","message":"Same idempotency key used while original request is still in progress."}`), inFlight, ""},
			{"bad key", answer(400, `{"statusCode":400,"name":"invalid_idempotency_key","message":"The key must be between 1-256 chars."}`), final, again},
		},
		"zuora": {
			{"other URL or method", answer(422, `{}`), mismatched, "mismatch, held"}, {"running", answer(409, `{}`), inFlight, ""},
			{"an error in a 200", answer(200, `{"success":false,"processId":"CBCFED6580B4E076","reasons":[{"code":53100320,"message":"'termType' value should be one of: TERMED, EVERGREEN"}]}`), held, ""},
			{"done", answer(200, `{"success":true,"orderNumber":"O-1"}`), stored, ""},
		},
		// The bodies are those of truelayer-php's tests, tests/Mocks/ErrorResponse.php.
		"truelayer": {
			{"running", answer(409, `{"type":"https://docs.truelayer.com/docs/error-types#idempotency-key-concurrency-conflict","title":"Idempotency-Key Concurrency Conflict","status":409}`), inFlight, ""},
			{"other request", answer(422, `{"type":"https://docs.truelayer.com/docs/error-types#idempotency-key-reuse","title":"Idempotency-Key Reuse","status":422}`), mismatched, "mismatch, held"},
			{"another request at the same resource", answer(409, `{"type":"https://docs.truelayer.com/docs/error-types#conflict","title":"Conflict","status":409}`), inFlight, ""},
			{"bad request", answer(400, `{"type":"https://docs.truelayer.com/docs/error-types#invalid-parameters","title":"Invalid Parameters","status":400}`), final, again},
		},
		"flutterwave": {{"repeat", answer(201, `{}`, "X-Idempotency-Cache-Hit", "true"), stored, ""}},
		"moov":        {{"any repeat", answer(409, `{}`), held, ""}},
		"mangopay":    {{"any repeat", answer(409, `{}`), held, ""}},
		"qonto":       {{"repeat, whatever its body", answer(200, `{"id":"x"}`), stored, ""}},
		"solid":       {{"conflict in its database, kept", answer(409, `{"errorCode":"EC_QLDB_OCC_ERROR_RETRY","sysMessage":"qldb occ error please retry"}`), held, ""}},
		"whop": {
			{"other request, or a bad one", answer(400, `{}`), final, again}, {"a refusal, given again", answer(400, `{}`, replayed, "true"), stored, ""},
		},
		"worldline-connect": {{"running", answer(409, `{"errorId":"x"}`), inFlight, ""}, {"a repeat", answer(201, `{}`, "X-GCS-Idempotence-Request-Timestamp", "1420000000000"), stored, ""},
			{"a refusal, given again", answer(402, `{}`, "X-GCS-Idempotence-Request-Timestamp", "1420000000000"), stored, ""}},
		"plaid": {{"may exist all the same", answer(500, `{}`), again, ""}},
		"razorpay-payouts": {{"other values", answer(400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"Different request body sent for the same Idempotency Header.","source":"business"}}`), mismatched, "mismatch, held"},
			{"other bad request", answer(400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"Idempotency key is missing. Include idempotency header and key in the request."}}`), final, again}, {"send again", answer(502, `{}`), again, ""}},
		"razorpay-refunds": {
			{"running", answer(409, `{"error":{"code":"BAD_REQUEST_ERROR","description":"Another request with the same idempotency key is still in progress."}}`), inFlight, ""},
			{"other values, with the status of the example", answer(400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"Different request with the same idempotency key has already been processed.","source":"NA"}}`), mismatched, "mismatch, held"},
			{"other values, with that of the list", answer(409, `{"error":{"code":"BAD_REQUEST_ERROR","description":"Different request with the same idempotency key has already been processed."}}`), mismatched, "mismatch, held"},
			{"refunded before", answer(400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"The payment has been fully refunded already."}}`), final, again},
		},
		"razorpay-transfers": {{"running", answer(409, `{}`), inFlight, ""}},
		"revolut-business":   {{"repeat", answer(400, `{"code":3020}`), held, ""}, {"state", answer(409, `{"code":3004}`), held, ""}, {"bad request", answer(400, `{"code":3001}`), final, again}},
		"revolut-business-cards": {
			{"running", answer(429, `{"code":3162}`), inFlight, ""},
			{"rate limit", answer(429, `{"code":9000}`), refusal, again},
			{"spoilt", answer(422, `{"code":33009}`), held, ""},
		},
		"square":    {{"other values", answer(400, `{"errors":[{"category":"INVALID_REQUEST_ERROR","code":"IDEMPOTENCY_KEY_REUSED"}]}`), held, ""}},
		"stripe":    {{"in use", answer(409, `{"error":{"code":"idempotency_key_in_use"}}`), inFlight, ""}, {"other values", answer(400, `{"error":{"type":"idempotency_error"}}`), mismatched, "mismatch, held"}},
		"stripe-v2": {{"failed, runs again", answer(500, `{}`), again, ""}, {"replay", answer(201, `{}`, replayed, "true"), stored, ""}},
		"ucp":       {{"conflict, maybe other body", answer(409, `{"code":"idempotency_conflict"}`), held, ""}},
		"wechat-pay": {
			{"number used", answer(400, `{"code":"OUT_TRADE_NO_USED"}`), held, ""},
			{"system error", answer(500, `{"code":"SYSTEM_ERROR"}`), again, ""},
		},
		"xendit":   {{"one of its errors", answer(400, `{"error_code":"DUPLICATE_ERROR"}`), held, ""}, {"the other", answer(409, `{"error_code":"IDEMPOTENCY_ERROR"}`), held, ""}},
		"yookassa": {{"not known", answer(500, `{}`), again, ""}, {"older: still running", answer(202, `{"type":"processing","retry_after":1800}`), held, ""}},
	}
}

// inWords is the part of a verdict that decides what happens next.
func inWords(v classify.Verdict) string {
	text := v.Kind.String()
	switch {
	case v.AlreadyDone:
		text = "already done"
	case v.Hold:
		text += ", held"
	case v.Again:
		text += ", again"
	}
	if v.Kind == classify.KindFinal && v.Stored {
		text += ", stored"
	}
	return text
}

// silent are the profiles whose sources document no answer that a matcher could read: none that differs from any success,
// or one in XML or in the middle of a GraphQL answer.
var silent = []string{
	"alipay", "brex", "column", "lob", "mercury", "none", "paystack", "rapyd", "shopify", "wise-balances", "wise-transfers", "worldpay-wpg", "xero",
}

// TestProviders: the answers that each provider's sources document, and what they prove. A success is tried for every
// profile, and so is a bare 409, which no profile may take for anything better than a request in progress.
func TestProviders(t *testing.T) {
	t.Parallel()
	table := saidAtoL()
	maps.Copy(table, saidMtoZ())
	for _, name := range profile.Names() {
		p, _ := profile.ByName(name)
		p.Verdicts = slices.DeleteFunc(p.Verdicts, func(v profile.Verdict) bool { return len(v.At) > 0 }) // an endpoint without any
		if len(table[name]) == 0 && !slices.Contains(silent, name) {
			t.Errorf("no answer of %s is in the table, though its sources may document one", name)
		}
		rows := append(table[name], said{"success", answer(201, `{"id":"r_1"}`), stored, ""})
		delete(table, name)
		for _, row := range rows {
			want := map[bool]string{false: row.fresh, true: row.inDoubt}
			if row.inDoubt == "" {
				want[true] = row.fresh
			}
			for inDoubt, want := range want {
				if got := inWords(classify.Classify(p, row.a, facts(inDoubt))); got != want {
					t.Errorf("%s: %s (%d, in doubt %t) is %q, want %q", name, row.what, row.a.Status, inDoubt, got, want)
				}
			}
		}
		for _, inDoubt := range []bool{false, true} {
			switch got := classify.Classify(p, answer(409, `{}`), facts(inDoubt)); {
			case got.Kind == classify.KindUnknown || got.Kind == classify.KindInFlight:
			default:
				t.Errorf("%s: a bare 409 (in doubt %t) is %q", name, inDoubt, inWords(got))
			}
		}
	}
	for name := range table {
		t.Errorf("rows for %q, which is no profile", name)
	}
}

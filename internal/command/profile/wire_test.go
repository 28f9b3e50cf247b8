package profile_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestSendDocumentedAnswers: what send makes of answers that the sources of a profile document, on the wire: how often it sends,
// and with which status it ends. The answers are those of the sources, and not made from the profiles.
func TestSendDocumentedAnswers(t *testing.T) {
	t.Parallel()
	const attempts = 3
	for name, c := range map[string]struct {
		profile string
		status  int
		body    string
		sends   int32
		exit    int
	}{
		// CheckoutService-v72.json, IOEXCEPTION_RECEIVED: kept as the final result, without the header transient-error.
		"adyen, kept error": {"adyen", 500, `{"status":500,"errorType":"internal"}`, 1, terminal.ExitUnknown},
		// spec/2026-01-30/openapi/openapi.delegate_payment.yaml, 409.
		"acp, mismatch of older releases": {"acp", 409, `{"type":"invalid_request","code":"idempotency_conflict","message":"Same Idempotency-Key used with different parameters"}`, 1, terminal.ExitRefused},
		// cdp-sdk openapi.yaml, the examples of AlreadyExistsError and of the creation of accounts.
		"coinbase, name taken":  {"coinbase", 409, `{"errorType":"already_exists","errorMessage":"EVM account with the given name already exists."}`, 1, terminal.ExitRefused},
		"coinbase, in progress": {"coinbase", 409, `{"errorType":"already_exists","errorMessage":"Another request with the same idempotency key is currently processing."}`, attempts, terminal.ExitUnknown},
		// developer.zuora.com/docs/guides/error-codes: an error in a 200.
		"zuora, error in a 200": {"zuora", 200, `{"success":false,"processId":"CBCFED6580B4E076","reasons":[{"code":53100320,"message":"'termType' value should be one of: TERMED, EVERGREEN"}]}`, 1, terminal.ExitUnknown},
		// rest-catalog-open-api.yaml, the examples TableAlreadyExistsError and CommitStateUnknownException.
		"iceberg, table exists":  {"iceberg-rest", 409, `{"error":{"message":"The given table already exists","type":"AlreadyExistsException","code":409}}`, 1, terminal.ExitRefused},
		"iceberg, state unknown": {"iceberg-rest", 500, `{"error":{"message":"Internal Server Error","type":"CommitStateUnknownException","code":500}}`, attempts, terminal.ExitUnknown},
		// resend.com/docs/api-reference/errors.
		"resend, other payload": {"resend", 409, `{"statusCode":409,"name":"invalid_idempotent_request","message":"Same idempotency key used with a different request payload."}`, 1, terminal.ExitRefused},
		"resend, in progress":   {"resend", 409, `{"statusCode":409,"name":"concurrent_idempotent_requests","message":"Same idempotency key used while original request is still in progress."}`, attempts, terminal.ExitUnknown},
		// api/refunds/normal-refunds-idempotent.md, Failure.
		"razorpay, other refund": {"razorpay-refunds", 400, `{"error":{"code":"BAD_REQUEST_ERROR","description":"Different request with the same idempotency key has already been processed.","source":"NA"}}`, 1, terminal.ExitRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sends atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sends.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer s.Close()
			commandtest.Run(t, "send", "POST", s.URL+commandtest.EndpointOf(t, c.profile, 0), "--profile", c.profile, "--journal", filepath.Join(t.TempDir(), "j.db"), "-d", `{"amount":100}`, "--max-attempts", commandtest.Itoa(attempts), "--min-delay", "1ms", "--max-delay", "1ms").Want(t, c.exit)
			if n := sends.Load(); n != c.sends {
				t.Errorf("%d sends, want %d", n, c.sends)
			}
		})
	}
}

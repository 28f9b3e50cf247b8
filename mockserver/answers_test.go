package mockserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

// spelledBy is how an API says something: a status, and what stands in its JSON body (names parted by dots, each list by its
// first element) or in a header. A status of -1 is not documented, and of the zero value nothing is.
type spelledBy struct {
	status int
	where  string
	text   string
}

// documented are the answers as the documentation of each API spells them; the sources stand in profile/data. They are
// written out here, and not read from the profiles, so that a profile which says otherwise is found.
var documented = map[string]struct{ inProgress, mismatch, replay spelledBy }{
	"stripe":                 {spelledBy{409, "error.code", "idempotency_key_in_use"}, spelledBy{400, "error.type", "idempotency_error"}, spelledBy{201, "Idempotent-Replayed", "true"}},
	"acp":                    {spelledBy{409, "code", "idempotency_in_flight"}, spelledBy{422, "code", "idempotency_conflict"}, spelledBy{201, "Idempotent-Replayed", "true"}},
	"coinbase":               {spelledBy{409, "errorMessage", "Another request with the same idempotency key is currently processing."}, spelledBy{422, "errorType", "idempotency_error"}, spelledBy{status: 201}},
	"zuora":                  {spelledBy{status: 409}, spelledBy{status: 422}, spelledBy{status: 201}},
	"resend":                 {spelledBy{409, "name", "concurrent_idempotent_requests"}, spelledBy{409, "name", "invalid_idempotent_request"}, spelledBy{status: 201}},
	"amazon-pay":             {spelledBy{}, spelledBy{400, "reasonCode", "DuplicateIdempotencyKey"}, spelledBy{status: 201}},
	"razorpay-payouts":       {spelledBy{}, spelledBy{400, "error.description", "Different request body sent for the same Idempotency Header."}, spelledBy{status: 201}},
	"datatrans":              {spelledBy{status: 409}, spelledBy{status: 422}, spelledBy{status: 201}},
	"adyen":                  {spelledBy{409, "errorCode", "704"}, spelledBy{}, spelledBy{status: 201}},
	"checkout-com":           {spelledBy{status: 409}, spelledBy{}, spelledBy{status: 201}},
	"dwolla":                 {spelledBy{status: 409}, spelledBy{}, spelledBy{status: 201}},
	"modern-treasury":        {spelledBy{status: 409}, spelledBy{}, spelledBy{status: 201}},
	"mollie":                 {spelledBy{status: 409}, spelledBy{}, spelledBy{201, "Idempotent-Replayed", "true"}},
	"increase":               {spelledBy{}, spelledBy{409, "type", "idempotency_key_already_used_error"}, spelledBy{201, "Idempotent-Replayed", "true"}},
	"gocardless":             {spelledBy{}, spelledBy{409, "error.errors.0.reason", "idempotent_creation_conflict"}, spelledBy{409, "error.errors.0.reason", "idempotent_creation_conflict"}},
	"paypal-payments":        {spelledBy{409, "details.0.issue", "PREVIOUS_REQUEST_IN_PROGRESS"}, spelledBy{}, spelledBy{status: 201}},
	"paypal-vault":           {spelledBy{}, spelledBy{422, "details.0.issue", "PAYPAL_REQUEST_ID_PREVIOUSLY_USED"}, spelledBy{status: 201}},
	"mercado-pago":           {spelledBy{status: 423}, spelledBy{}, spelledBy{status: 201}},
	"revolut-business-cards": {spelledBy{429, "code", "3162"}, spelledBy{}, spelledBy{status: 201}},
	"razorpay-refunds":       {spelledBy{status: 409}, spelledBy{400, "error.description", "Different request with the same idempotency key has already been processed."}, spelledBy{status: 201}},
	"razorpay-transfers":     {spelledBy{status: 409}, spelledBy{}, spelledBy{status: 201}},
	"truelayer": {
		spelledBy{409, "type", "https://docs.truelayer.com/docs/error-types#idempotency-key-concurrency-conflict"},
		spelledBy{422, "type", "https://docs.truelayer.com/docs/error-types#idempotency-key-reuse"}, spelledBy{status: 201},
	},
	"flutterwave": {spelledBy{}, spelledBy{}, spelledBy{201, "X-Idempotency-Cache-Hit", "true"}},
	"antom":       {spelledBy{}, spelledBy{-1, "result.resultCode", "REPEAT_REQ_INCONSISTENT"}, spelledBy{status: 201}},
}

// keyedBy is a request of the API with this key and amount.
func keyedBy(p *profile.Profile, key string, amount int) request {
	r := request{Header: http.Header{}, Body: fmt.Sprintf(`{"amount":%d}`, amount), Path: "/payments?sleep=1000"}
	switch {
	case p.Carrier.Place == profile.Body:
		r.Body = fmt.Sprintf(`{"amount":%d,%q:%q}`, amount, strings.TrimPrefix(p.Carrier.Name, "/"), key)
	case p.Body.Default() == profile.FormBody:
		r.Body, r.Header["Content-Type"] = fmt.Sprintf("amount=%d", amount), []string{formType}
	}
	if len(p.Endpoints) > 0 {
		r.Path = strings.NewReplacer("{", "", "}", "").Replace(p.Endpoints[0].Path) + "?sleep=1000"
	}
	if p.Carrier.Place == profile.Header {
		r.Header.Set(p.Carrier.Name, key)
	}
	return r
}

// wantIn holds an answer to what is documented.
func (s spelledBy) wantIn(t *testing.T, what string, got mocktest.Reply) {
	t.Helper()
	switch {
	case s.status > 0 && got.Status != s.status:
		t.Errorf("%s: status %d (%s, %v), want %d", what, got.Status, got.Body, got.Err, s.status)
	case s.where == "":
	case strings.Contains(s.where, "-"):
		if text := got.Header.Get(s.where); text != s.text {
			t.Errorf("%s: %s: %q, want %q", what, s.where, text, s.text)
		}
	default:
		if text := fmt.Sprint(mocktest.Member(t, got.Body, strings.Split(s.where, ".")...)); text != s.text {
			t.Errorf("%s: %s in %s, want %q", what, s.where, got.Body, s.text)
		}
	}
}

// TestDocumentedAnswers: the mock says what each API's documentation says, and every complete profile is in the table.
func TestDocumentedAnswers(t *testing.T) {
	t.Parallel()
	for _, name := range profile.Names() {
		if p, _ := profile.ByName(name); p.Complete() && (documented[name].inProgress.status == 0 || documented[name].mismatch.status == 0) {
			t.Errorf("profile %s is complete, and the table lacks its answers", name)
		}
	}
	for name, want := range documented {
		p, ok := profile.ByName(name)
		if !ok {
			t.Fatalf("no profile %s", name)
		}
		key := "00000000-0000-4000-8000-00000000000a"
		if p.Key.MaxBytes > 0 && p.Key.MaxBytes < len(key) {
			key = strings.ReplaceAll(key, "-", "")
		}
		mocktest.Bubble(t, mockserver.Config{Profile: p}, func(s *mockserver.Server, cl *client) {
			first := make(chan mocktest.Reply, 1)
			go func() { first <- cl.Do(keyedBy(p, key, 1)) }()
			synctest.Wait()
			if want.inProgress.status != 0 {
				want.inProgress.wantIn(t, name+", in progress", cl.Do(keyedBy(p, key, 1)))
			}
			time.Sleep(time.Second)
			if got := <-first; got.Status != 201 {
				t.Errorf("%s: the first is answered %d (%s)", name, got.Status, got.Body)
			}
			if want.mismatch.status != 0 {
				want.mismatch.wantIn(t, name+", mismatch", cl.Do(keyedBy(p, key, 2)))
			}
			want.replay.wantIn(t, name+", replay", cl.Do(keyedBy(p, key, 1)))
			if effects := s.Ledger().Effects(key); effects != 1 {
				t.Errorf("%s: %d effects", name, effects)
			}
		})
	}
}

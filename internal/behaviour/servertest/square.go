package servertest

import (
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/profile"
)

// Square returns the profile of an API with undoing of payments by key.
func Square(t *testing.T) *profile.Profile {
	t.Helper()
	p, found := profile.ByName("square")
	if !found || p.Cancel == nil {
		t.Fatal("no profile square, or it cannot undo")
	}
	return p
}

// SquarePay returns a request for a payment by the API of the profile square, to the test's server.
func SquarePay(t *testing.T) *http.Request {
	t.Helper()
	return clienttest.Request(t, "POST", "http://mock.test/v2/payments", SquarePayment)
}

// SquarePayment is the body of SquarePay.
const SquarePayment = `{"idempotency_key":"k","amount_money":{"amount":100}}`

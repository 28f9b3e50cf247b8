package classify_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/profile"
)

// TestKeptError: only a 500 with a body of the API's own may be kept under a key, and equal ones are one.
func TestKeptError(t *testing.T) {
	t.Parallel()
	keeps, executes := profile.StripeV1(), profile.StripeV1()
	executes.Stored.ServerError = profile.No
	one := classify.KeptError(keeps, answer(500, `{"error":{"type":"api_error"}}`))
	if one == 0 || classify.KeptError(profile.Draft07(), answer(500, `{"error":{"type":"api_error"}}`)) != one {
		t.Error("an error of the API's own is none")
	}
	if other := classify.KeptError(keeps, answer(500, `{"error":{"type":"api_error","id":1}}`)); other == 0 || other == one {
		t.Error("two errors are one")
	}
	cut := answer(500, `{"a":1}`)
	cut.Whole = false
	unread := answer(500, `x`)
	unread.Unread = true
	for name, a := range map[string]classify.Answer{
		"502": answer(502, `{"a":1}`), "503": answer(503, `{"a":1}`), "504": answer(504, `{"a":1}`), "501": answer(501, `{"a":1}`), "400": answer(400, `{"a":1}`),
		"a page": answer(500, `<html><body>no</body></html>`, "Content-Type", "text/html"), "empty": answer(500, ``), "blank": answer(500, " \n"), "not whole": cut, "coded": unread,
	} {
		if got := classify.KeptError(keeps, a); got != 0 {
			t.Errorf("%s counts as an error that is kept", name)
		}
	}
	if got := classify.KeptError(executes, answer(500, `{"a":1}`)); got != 0 {
		t.Error("the API says that it keeps no errors, and one counts as kept")
	}
}

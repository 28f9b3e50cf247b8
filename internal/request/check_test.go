package request_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/request"
)

// TestMisspelled: one slip away from a method that has an effect, in whatever case; standard methods and those of others'
// own are none.
func TestMisspelled(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		"POTS": "POST", "PSOT": "POST", "OPST": "POST", "POSTT": "POST", "PST": "POST", "POS": "POST", "OST": "POST", "HOST": "POST", "pots": "POST",
		"PUTT": "PUT", "PTU": "PUT", "PU": "PUT", "PATHC": "PATCH", "PTACH": "PATCH", "PACH": "PATCH", "DELET": "DELETE", "DELEET": "DELETE",
		"POST": "", "PUT": "", "PATCH": "", "DELETE": "", "GET": "", "post": "", "PURGE": "", "CHARGE": "", "MOVE": "", "COPY": "", "LOCK": "",
		"UPDATE": "", "PROPPATCH": "", "SEARCH": "", "BIND": "", "LINK": "", "P": "", "": "",
	} {
		if got := request.Misspelled(method); got != want {
			t.Errorf("Misspelled(%q) = %q, want %q", method, got, want)
		}
	}
}

package operation_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/operation"
)

// TestLedTo: what replaced an operation led to a key if it is a generation of the same first key, and none above it.
func TestLedTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		by, key string
		want    bool
	}{
		{"k:gen=2", "k:gen=2", true}, {"k:gen=2", "k:gen=3", true}, {"k:gen=3", "k:gen=2", false}, {"other", "k:gen=2", false}, {"other", "other", true},
		{"l:gen=2", "k:gen=2", false}, {"k", "k:gen=2", true},
	} {
		if got := operation.LedTo(c.by, c.key); got != c.want {
			t.Errorf("LedTo(%q, %q) is %t", c.by, c.key, got)
		}
	}
}

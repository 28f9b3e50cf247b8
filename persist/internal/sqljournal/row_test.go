package sqljournal

import (
	"errors"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// TestFits: each part of a row counts, at the bound and one past it.
func TestFits(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]func(*Row) *[]byte{
		"account": func(r *Row) *[]byte { return &r.Account }, "key": func(r *Row) *[]byte { return &r.Key },
		"origin": func(r *Row) *[]byte { return &r.Origin }, "intent": func(r *Row) *[]byte { return &r.Intent },
		"progress": func(r *Row) *[]byte { return &r.Progress }, "body": func(r *Row) *[]byte { return &r.Body },
		"answer": func(r *Row) *[]byte { return &r.Answer },
	} {
		for size, fits := range map[int]bool{0: true, 10: true, 11: false} {
			var row Row
			*part(&row) = make([]byte, size)
			err := row.Fits(10, "the bound")
			if (err == nil) != fits || err != nil && (!errors.Is(err, persist.ErrTooLarge) || !errors.Is(err, persist.ErrInvalid) || !strings.Contains(err.Error(), "11 bytes, and the bound allows 10")) {
				t.Errorf("%s of %d bytes: %v", name, size, err)
			}
			if err := row.Fits(0, ""); err != nil {
				t.Errorf("without a bound: %v", err)
			}
		}
	}
}

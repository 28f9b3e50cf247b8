package bolt_test

import (
	"context"
	"errors"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// TestEndedListingYieldsEachRecordOnce: a listing whose context ends yields no record again, and the context's error last.
func TestEndedListingYieldsEachRecordOnce(t *testing.T) {
	t.Parallel()
	j := open(t, newPath(t))
	begin(t, j, record("k1"))
	begin(t, j, record("k2"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	yielded := map[string]int{}
	var last error
	for r, err := range j.List(ctx, persist.Query{AllAccounts: true}) {
		if last = err; err == nil {
			yielded[r.Key]++
		}
		cancel()
	}
	if yielded["k1"] != 1 || yielded["k2"] != 1 || !errors.Is(last, context.Canceled) {
		t.Errorf("yielded %v, and %v; want each once, and the context's error", yielded, last)
	}
}

package sqltest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Damaged damages one row of several. The others must be claimed and read all the same, every time. A call that meets the damaged row alone must return an
// error about it. The first claim leases that row, too, so the test ends this lease before the second claim.
func Damaged(t *testing.T, e Engine) {
	j := e.Open(t, e.Address, 30*time.Second)
	claimer, ok := persist.As[persist.Claimer](j)
	if !ok {
		t.Fatal("no leases")
	}
	const n = 5
	var records []persist.Record
	for i := range n {
		rec, _, err := j.Begin(t.Context(), Record("a", fmt.Sprintf("key %d", i)))
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, rec)
	}
	if _, err := e.DB.ExecContext(t.Context(), "UPDATE "+e.Records+" SET progress = 'no progress' WHERE revision = 1 AND created = "+fmt.Sprint(records[0].Created.UnixNano())); err != nil {
		t.Fatal(err)
	}
	for i, err := range atOnce(4*n, func(i int) error { _, err := j.Get(t.Context(), records[i%n].ID); return err }) {
		if bad := i%n == 0; bad != errors.Is(err, persist.ErrCorrupt) || !bad && err != nil {
			t.Errorf("Get %d at once: %v", i, err)
		}
	}
	claim := func() (int, error) {
		claimed, _, err := claimer.Claim(t.Context(), persist.Query{Account: "a"}, "me", time.Hour, n)
		return len(claimed), err
	}
	if got, err := claim(); got != n-1 || err != nil {
		t.Errorf("claimed %d beside a damaged one, want %d: %v", got, n-1, err)
	}
	if _, err := e.DB.ExecContext(t.Context(), "UPDATE "+e.Records+" SET lease_until = 0 WHERE created = "+fmt.Sprint(records[0].Created.UnixNano())); err != nil {
		t.Fatal(err)
	}
	if got, err := claim(); got != 0 || !errors.Is(err, persist.ErrCorrupt) {
		t.Errorf("claimed %d where only a damaged one is left: %v", got, err)
	}
}

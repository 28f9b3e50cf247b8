package sqltest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Counted is a table with many records.
type Counted struct {
	Query    string             // of Count
	Multiply func(n int) string // fills the table with n copies of its only row
	Analyze  string             // lets the server learn about the table
	Index    string             // that of the unfinished records
}

// CountByIndex checks by the server's plan that Count reads the index of unfinished records only, without and then with statistics about the table. "Seq Scan"
// and " ALL " are how the two engines' plans name a scan of the table. c has the query, the index, and the statements that copy the only row (Multiply) and
// make statistics (Analyze).
func CountByIndex(t *testing.T, e Engine, c Counted) {
	j := e.Open(t, e.Address, time.Minute)
	ended(t, j, Record("a", "ended"))
	if _, err := e.DB.Exec(c.Multiply(2500)); err != nil {
		t.Fatal(err)
	}
	unfinished(t, j, 5)
	for _, learn := range []string{"", c.Analyze} {
		if learn != "" {
			if _, err := e.DB.Exec(learn); err != nil {
				t.Fatal(err)
			}
		}
		plan := e.plan(t, c.Query)
		if !strings.Contains(plan, c.Index) || strings.Contains(plan, "Seq Scan") || strings.Contains(plan, " ALL ") {
			t.Errorf("after %q the plan of Count is\n%s\nwant the index %s, and no scan of the table", learn, plan, c.Index)
		}
	}
	counter, ok := persist.As[persist.Counter](j)
	if !ok {
		t.Fatal("it is no persist.Counter")
	}
	if got, err := counter.Count(t.Context()); err != nil || got.Pending != 4 || got.Held[persist.HoldExpired] != 1 || len(got.Held) != 1 {
		t.Errorf("Count: %d pending, held %v, error %v; want 4, and 1 expired", got.Pending, got.Held, err)
	}
}

// unfinished begins n records. Every fifth of them is held.
func unfinished(t testing.TB, j persist.Journal, n int) {
	t.Helper()
	for i := range n {
		rec := begun(j, Record("a", fmt.Sprint("open ", i)))
		if i%5 > 0 {
			continue
		}
		rec.State, rec.HoldReason = persist.StateHeld, persist.HoldExpired
		if _, err := j.Update(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
}

// CountBeside measures Count in a table with many final records. The table is filled with copies of one pending record; the statement finish ends the number
// final of them, and open stay, beside the first record.
func CountBeside(b *testing.B, e Engine, c Counted, finish string, final, open int) {
	j := e.Open(b, e.Address, time.Minute)
	begun(j, Record("a", "pending"))
	for _, s := range []string{c.Multiply(final + open), finish, c.Analyze} {
		if _, err := e.DB.Exec(s); err != nil {
			b.Fatal(err)
		}
	}
	counter, _ := persist.As[persist.Counter](j)
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		got, err := counter.Count(b.Context())
		if err != nil || got.Pending != open+1 {
			b.Fatalf("Count: %d pending, error %v; want %d", got.Pending, err, open+1)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}

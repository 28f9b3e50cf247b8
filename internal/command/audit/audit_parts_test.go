package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/results"
)

// What is missing near the edges of the exports is told apart.
func TestAuditEdges(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := &audit{flags: &auditFlags{edge: time.Hour}, from: now.Add(-24 * time.Hour), to: now}
	for name, c := range map[string]struct {
		at            time.Time
		outside, near bool
	}{
		"inside": {now.Add(-12 * time.Hour), false, false}, "before": {now.Add(-48 * time.Hour), true, false}, "after": {now.Add(2 * time.Hour), true, false},
		"first hour": {now.Add(-24*time.Hour + time.Minute), false, true}, "last hour": {now.Add(-time.Minute), false, true}, "no time": {time.Time{}, false, false},
	} {
		if outside, near := a.outside(c.at), a.nearEdge(c.at); outside != c.outside || near != c.near {
			t.Errorf("%s: outside %t, near %t", name, outside, near)
		}
	}
}

// Amounts are compared as numbers, in the currency's own decimals, whichever side has its smallest unit.
func TestSameAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ours, theirs     string
		ourUnit, theirOf string
		currency         string
		want             bool
	}{
		{"100", "100", "", "", "", true}, {"100", "100.00", "", "", "", true}, {"1e2", "100", "", "", "", true}, {"100", "101", "", "", "", false},
		{"100", "1.00", "", "major", "EUR", true}, {"100", "100", "", "major", "jpy", true}, {"1500", "1.5", "", "major", "KWD", true},
		{"100", "1.001", "", "major", "EUR", false}, {"100", "100", "", "major", "EUR", false},
		{"1.00", "100", "major", "minor", "EUR", true}, {"1.00", "1", "major", "minor", "JPY", true}, {"1.5", "1500", "major", "minor", "KWD", true},
		{"1.00", "1", "major", "minor", "EUR", false}, {"1.00", "1", "major", "", "EUR", true}, {"-1.00", "-100", "major", "minor", "", true},
		{"0.1", "0.10000000000000000001", "", "", "", false},
	} {
		u := units{theirs: c.theirOf, ours: c.ourUnit}
		if err := u.check(); err != nil {
			t.Fatal(err)
		}
		ours, err := results.ParseDecimal(c.ours)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := results.ParseDecimal(c.theirs)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.same(ours, theirs, c.currency); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestUnclearValues: of the different statuses of a column so many are kept, and the rows of all are counted.
func TestUnclearValues(t *testing.T) {
	t.Parallel()
	x := &exportIndex{unclear: map[string]*unclear{}}
	const rows = 2 * unclearValuesMax
	for i := range rows {
		x.judge(&auditFlags{}, map[string]string{"status": fmt.Sprint(i)})
	}
	u := x.unclear["status"]
	if text, want := u.text("status"), fmt.Sprintf("%d rows with other values", rows-unclearValuesShown); u.rows != rows || len(u.values) != unclearValuesMax || !strings.HasSuffix(text, want) {
		t.Errorf("%d rows, %d values, %q", u.rows, len(u.values), text)
	}
}

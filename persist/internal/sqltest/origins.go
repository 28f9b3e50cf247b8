package sqltest

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
)

// The operations of Origins: two for each origin.
var (
	manyOrigins    = testrun.N(700, 3000)
	manyOperations = 2 * manyOrigins
)

// manyExchanges bounds the exchanges of DueTimes for the origins of Origins; some of its connections are made for it. It is far
// below the number of origins.
const manyExchanges = 40

// Series are the numbers i from 1 on as rows, and expressions of i: 32 bytes of its own, and the name of an origin.
type Series struct {
	Rows   string // for a FROM; it has one %d for the last number
	Bytes  string
	Origin string // "https://c" with the remainder of i by a number, as one %d, and ".example:443"
}

// Origins asks for the due times of thousands of origins, in a table without statistics, and counts the exchanges with the server, which must be few: one for
// many origins. Then it does so while connections are cut. n has the engine's SQL to make the rows.
func Origins(t *testing.T, e Engine, n Series) {
	p := NewProxy(t, e.Address)
	j := e.Open(t, p.Address(), time.Minute)
	due, _ := persist.As[persist.DueTimes](j)
	ask := func() map[string]time.Time {
		all, err := due.DueTimes(t.Context(), persist.Query{Account: "mine"})
		if err != nil {
			t.Fatalf("DueTimes: %v", err)
		}
		times := make(map[string]time.Time, len(all))
		for _, d := range all {
			if _, twice := times[d.Origin]; twice {
				t.Fatalf("DueTimes names %q twice", d.Origin)
			}
			times[d.Origin] = d.At
		}
		return times
	}
	if got := ask(); len(got) != 0 {
		t.Errorf("DueTimes of an empty journal: %v", got)
	}
	want := fill(t, e, j, n)
	before := p.Exchanges()
	got := ask()
	if took := p.Exchanges() - before; took > manyExchanges {
		t.Errorf("%d exchanges for %d origins, want %d at most", took, len(got), manyExchanges)
	}
	if !maps.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("%d origins, want %d, or the times are others", len(got), len(want))
	}
	for name, fault := range map[string]Fault{"cut before": CutBefore, "cut after": CutAfter} {
		for skip := range 5 {
			p.Arm(fault, skip)
			if got := ask(); !maps.EqualFunc(got, want, time.Time.Equal) {
				t.Errorf("%s, exchange %d: %d origins, want %d, or the times are others", name, skip, len(got), len(want))
			}
		}
	}
}

// fill inserts the operations of Origins: operation i is due at i milliseconds, and the operations i and manyOrigins+i are of
// one origin. Of the first of them each seventh is leased, each eleventh had a lease now ended, and each thirteenth is of another
// account. n has the engine's SQL for the rows i and for expressions of i. It returns the time at which the first operation of each
// origin is due that is neither leased nor of another account.
func fill(t *testing.T, e Engine, j persist.Journal, n Series) (want map[string]time.Time) {
	t.Helper()
	rec, _, err := j.Begin(context.Background(), Record("mine", "other")) // its key serves as the name of the other account, and of the leases' owner
	if err != nil {
		t.Fatal(err)
	}
	first := fmt.Sprintf(" AND i <= %d", manyOrigins)
	values := map[string]string{
		"id": n.Bytes, "seq": "1000 + i", "origin": fmt.Sprintf(n.Origin, manyOrigins), "next_attempt": "1000000 * i",
		"account":     "CASE WHEN i % 13 = 0" + first + " THEN r.op_key ELSE r.account END",
		"lease_owner": "CASE WHEN (i % 7 = 0 OR i % 11 = 0)" + first + " THEN r.op_key ELSE r.lease_owner END",
		"lease_until": "CASE WHEN i % 7 = 0" + first + " THEN r.created + 3600000000000 WHEN i % 11 = 0" + first + " THEN r.created ELSE 0 END",
	}
	var names, selected []string
	for _, c := range sqljournal.Columns() {
		names = append(names, c.Name)
		if value, own := values[c.Name]; own {
			selected = append(selected, value)
		} else {
			selected = append(selected, "r."+c.Name)
		}
	}
	_, err = e.DB.Exec(fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s r CROSS JOIN %s",
		e.Records, strings.Join(names, ", "), strings.Join(selected, ", "), e.Records, fmt.Sprintf(n.Rows, manyOperations)))
	if err != nil {
		t.Fatal(err)
	}
	want = map[string]time.Time{rec.Origin: {}}
	for i := manyOperations; i > 0; i-- {
		if i > manyOrigins || i%7 != 0 && i%13 != 0 {
			want[fmt.Sprintf("https://c%d.example:443", i%manyOrigins)] = time.UnixMilli(int64(i))
		}
	}
	return want
}

package sqltest

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// ended begins and finishes a record, and returns it as it was finished.
func ended(t *testing.T, j persist.Journal, rec persist.Record) persist.Record {
	t.Helper()
	rec = Finished(begun(j, rec))
	if err := j.Finish(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

// sweeps requires that a sweep changes want records. The sweep is an hour after the end of rec, and changes at most most records; 0 is no limit.
func sweeps(t *testing.T, j persist.Journal, rec persist.Record, most, want int) {
	t.Helper()
	sweepsBy(t, j, persist.Limits{Now: rec.Finished.Add(time.Hour), Max: most}, want)
}

// sweepsBy checks the number of records changed by a sweep under these limits.
func sweepsBy(t *testing.T, j persist.Journal, l persist.Limits, want int) {
	t.Helper()
	if n, err := j.Sweep(t.Context(), l); n != want || err != nil {
		t.Errorf("Sweep of %d at most changed %d, error %v; want %d", l.Max, n, err, want)
	}
}

// SweepPages tests the pruning of a table of several pages. Nearly all records ended at the same moment, too late to be pruned; a few ended two hours earlier,
// and these lose their answers. The pages are read in the order of the sweep index (sweep_at, id). multiply is the SQL statement that fills the table with
// 2,500 copies of its only row, each with an id and a number of its own.
func SweepPages(t *testing.T, e Engine, multiply string) {
	j := e.Open(t, e.Address, time.Minute)
	rec := ended(t, j, Record("a", "first"))
	numbers := func(where, order string) (list []int64) {
		t.Helper()
		rows, err := e.DB.Query("SELECT seq FROM " + e.Records + " WHERE " + where + " ORDER BY " + order)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			list = append(list, 0)
			if err := rows.Scan(&list[len(list)-1]); err != nil {
				t.Fatal(err)
			}
		}
		return list
	}
	set := func(change string, list []int64) {
		t.Helper()
		in := strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
		if _, err := e.DB.Exec("UPDATE " + e.Records + " SET " + change + " WHERE seq IN (" + in + ")"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.DB.Exec(multiply); err != nil {
		t.Fatal(err)
	}
	const place = "sweep_at, id" // in the index
	set("sweep_at = sweep_at + 1", numbers("1 = 1", place)[2200:])
	all := numbers("1 = 1", place)
	var due []int64 // at the ends of pages of 1000, and elsewhere
	for _, i := range []int{0, 1, 500, 998, 999, 1000, 1001, 1999, 2000, 2001, 2250, 2499, 2500} {
		due = append(due, all[i])
	}
	set("finished = finished - 7200000000000", due)
	l := persist.Limits{Prune: true, KeepAnswer: 3 * time.Hour, Now: rec.Finished.Add(time.Hour), Max: 4}
	sweepsBy(t, j, l, 4)
	l.Max = 0
	sweepsBy(t, j, l, len(due)-4)
	sweepsBy(t, j, l, 0)
	slices.Sort(due)
	if got := numbers("swept = 1", "seq"); !slices.Equal(got, due) {
		t.Errorf("the tombstones have the numbers %v, want %v", got, due)
	}
	if n := len(numbers("1 = 1", place)); n != 2501 {
		t.Errorf("there are %d records, want 2501", n)
	}
}

// SweepLocked sweeps beside an open transaction that has locked two records: one that is not due, and one that is. The sweep must not wait, and passes over the
// second; a sweep after that transaction takes it. multiply fills the table with 200 copies of its only row, so that nearly all of it goes.
func SweepLocked(t *testing.T, e Engine, multiply string) {
	j := e.Open(t, e.Address, 15*time.Second)
	rec := Record("a", "generated")
	rec.Window, rec.Generated = time.Minute, true
	ended(t, j, rec)
	if _, err := e.DB.Exec(multiply); err != nil {
		t.Fatal(err)
	}
	records := map[string]persist.Record{}
	for _, key := range []string{"kept", "locked", "due 1", "due 2"} {
		rec := Record("a", key)
		if key != "kept" {
			rec.Window = time.Minute
		}
		records[key] = ended(t, j, rec)
	}
	holder := e.begin(t, sql.LevelReadCommitted)
	for _, key := range []string{"kept", "locked"} {
		if _, err := holder.Exec(fmt.Sprintf("SELECT id FROM %s WHERE seq = %d FOR UPDATE", e.Records, records[key].Seq)); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	sweeps(t, j, records["kept"], 0, 201+2) // the generated one, its 200 copies, and those that are due
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Sweep took %v beside a transaction that has locked what it must not touch", took)
	}
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	sweeps(t, j, records["kept"], 0, 1)
	got, err := j.Get(t.Context(), records["kept"].ID)
	if err != nil || got.Swept {
		t.Errorf("what is within its window is swept: %t, error %v", got.Swept, err)
	}
}

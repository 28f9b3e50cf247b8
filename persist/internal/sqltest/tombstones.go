package sqltest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Tombstones measures Begin in an empty table and beside this many tombstones (old records without their texts), in turns, so that other work of the
// machine slows both. multiply fills the table of an engine with copies of its only row, each with an id and a number of its own.
func Tombstones(b *testing.B, empty, full Engine, tombstones int, multiply string) {
	beside, alone := full.Open(b, full.Address, time.Minute), empty.Open(b, empty.Address, time.Minute)
	rec := begun(beside, Record("a", "tombstone"))
	if err := beside.Finish(b.Context(), Finished(rec)); err != nil {
		b.Fatal(err)
	}
	if n, err := beside.Sweep(b.Context(), persist.Limits{Prune: true, KeepAnswer: -1, Now: rec.Created.Add(time.Minute)}); n != 1 || err != nil {
		b.Fatalf("swept %d, error %v", n, err)
	}
	start := time.Now()
	if _, err := full.DB.Exec(multiply); err != nil {
		b.Fatal(err)
	}
	var rows int
	if err := full.DB.QueryRow("SELECT COUNT(*) FROM " + full.Records).Scan(&rows); err != nil || rows != tombstones+1 {
		b.Fatalf("%d rows, error %v; want %d", rows, err, tombstones+1)
	}
	b.Logf("%d tombstones made in %v", rows, time.Since(start).Round(time.Millisecond))
	var took [2][]time.Duration
	n := 0
	for b.Loop() {
		for i, j := range []persist.Journal{alone, beside} {
			rec := Record("a", fmt.Sprint("begin ", n))
			start := time.Now()
			if _, created, err := j.Begin(b.Context(), rec); err != nil || !created {
				b.Fatalf("created %t, error %v", created, err)
			}
			took[i] = append(took[i], time.Since(start))
		}
		n++
	}
	for i, name := range []string{"empty", "beside"} {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][n/2].Microseconds()), name+"-p50-µs")
		b.ReportMetric(float64(took[i][n*99/100].Microseconds()), name+"-p99-µs")
	}
	b.ReportMetric(float64(took[1][n*99/100])/float64(took[0][n*99/100]), "p99-ratio")
	start = time.Now()
	swept, err := beside.Sweep(b.Context(), persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: time.Nanosecond, Max: min(tombstones, 10_000), Now: rec.Created.Add(time.Hour)})
	if err != nil || swept == 0 {
		b.Fatalf("swept %d tombstones, error %v", swept, err)
	}
	b.Logf("a sweep removed %d tombstones in %v", swept, time.Since(start).Round(time.Millisecond))
}

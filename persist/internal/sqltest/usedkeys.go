package sqltest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// Used says how an engine makes many used keys, and how large they are.
type Used struct {
	Engine
	Keep   []string                            // the statements that move the two rows of the journal elsewhere
	Begin  func(n int) string                  // the statement that makes n copies of the row of the key "pending", each with an id and a number of its own
	End    string                              // the statement that ends each pending row like that of the key "ended"
	Sweep  []string                            // in place of sweeps, after the first keys: the statements that end each ended row as a used key; nil: sweeps do
	Rows   string                              // the table of used keys, with a condition for them if it has others
	Vacuum []string                            // the statements after a sweep
	Full   []string                            // the statements that give back all free space
	Sizes  func(b *testing.B) map[string]int64 // of the parts of the table, in bytes
}

// UsedKeys measures the bytes that a used key, what is left of an erased record, takes: in the table, and in each index. It makes the number keys of them,
// atOnce at a time: u.Begin copies a pending record, u.End ends the copies, and a sweep, or u.Sweep in its place, takes their texts. Sweeps meet the rows in
// the order of their ids, which is random. u.Full rebuilds the tables. The first sweep is always one of the journal, so that u.Sweep has its result to imitate.
// With sealed the records are encrypted.
func UsedKeys(b *testing.B, u Used, keys, atOnce int, sealed bool) {
	ctx, j := b.Context(), u.Open(b, u.Address, time.Minute)
	if sealed {
		j = sealedBy(b, j, seal.Config{})
	}
	for _, key := range []string{"pending", "ended"} {
		rec := Record("shop", key)
		rec.Header = http.Header{"Content-Type": {"application/json"}}
		rec.KeepAnswer, rec.KeepText = -1, -1
		rec.Window = time.Second
		rec = begun(j, rec)
		if key == "ended" {
			if err := j.Finish(ctx, Finished(rec)); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, statement := range u.Keep {
		if _, err := u.DB.Exec(statement); err != nil {
			b.Fatalf("%s: %v", statement, err)
		}
	}
	started := time.Now()
	b.ResetTimer()
	for made := 0; made < keys; made += atOnce {
		for _, statement := range []string{u.Begin(atOnce), u.End} {
			if _, err := u.DB.Exec(statement); err != nil {
				b.Fatalf("%s: %v", statement, err)
			}
		}
		after := u.Vacuum
		if made > 0 && u.Sweep != nil {
			after = slices.Concat(u.Sweep, u.Vacuum)
		} else {
			sweepAll(b, j, atOnce)
		}
		for _, statement := range after {
			if _, err := u.DB.Exec(statement); err != nil {
				b.Fatalf("%s: %v", statement, err)
			}
		}
	}
	b.StopTimer()
	var rows int
	if err := u.DB.QueryRow("SELECT COUNT(*) FROM " + u.Rows).Scan(&rows); err != nil || rows < keys {
		b.Fatalf("%d used keys, error %v; want %d", rows, err, keys)
	}
	b.Logf("%d used keys, %d at once, in %v", rows, atOnce, time.Since(started).Round(time.Second))
	u.report(b, "", rows)
	for _, statement := range u.Full {
		if _, err := u.DB.Exec(statement); err != nil {
			b.Fatalf("%s: %v", statement, err)
		}
	}
	u.report(b, "rebuilt: ", rows)
}

// sweepAll sweeps until it has changed n records, each into a used key.
func sweepAll(b *testing.B, j persist.Journal, n int) {
	for swept := 0; swept < n; {
		more, err := j.Sweep(b.Context(), persist.Limits{Now: time.Now().Add(time.Hour)})
		if err != nil || more == 0 {
			b.Fatalf("swept %d, error %v", more, err)
		}
		swept += more
	}
}

// report prints how many bytes each of the keys (rows) takes in the table and in its indexes. when begins the line; only the first report, without it, sets
// the metric of the benchmark.
func (u Used) report(b *testing.B, when string, rows int) {
	sizes, total := u.Sizes(b), int64(0)
	var parts []string // in one line: a benchmark prints ten at most
	each := func(size int64) float64 { return float64(size) / float64(rows) }
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		total += sizes[name]
		parts = append(parts, fmt.Sprintf("%s %.1f", name, each(sizes[name])))
	}
	b.Logf("%s%.1f bytes a key: %s", when, each(total), strings.Join(parts, ", "))
	if when == "" {
		b.ReportMetric(each(total), "B/key")
	}
}

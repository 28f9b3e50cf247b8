package sqltest

import (
	"maps"
	"net/http"
	"slices"
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
	Vacuum []string                            // the statements after a sweep
	Full   []string                            // the statements that give back all free space
	Sizes  func(b *testing.B) map[string]int64 // of the parts of the table, in bytes
}

// UsedKeys makes many used keys, so many at a time, and prints the bytes of each: of the table with its indexes, and of each part. Sweeps meet the
// rows in the order of their ids, which is none.
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
		for swept := 0; swept < atOnce; {
			n, err := j.Sweep(ctx, persist.Limits{Now: time.Now().Add(time.Hour)})
			if err != nil || n == 0 {
				b.Fatalf("swept %d, error %v", n, err)
			}
			swept += n
		}
		for _, statement := range u.Vacuum {
			if _, err := u.DB.Exec(statement); err != nil {
				b.Fatalf("%s: %v", statement, err)
			}
		}
	}
	b.StopTimer()
	var rows int
	if err := u.DB.QueryRow("SELECT COUNT(*) FROM " + u.Records + " WHERE swept = 2").Scan(&rows); err != nil || rows < keys {
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

// report prints how many bytes each key takes in the table and in its indexes.
func (u Used) report(b *testing.B, when string, rows int) {
	sizes, total := u.Sizes(b), int64(0)
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		total += sizes[name]
		b.Logf("%s%-24s %6.1f bytes a key", when, name, float64(sizes[name])/float64(rows))
	}
	b.Logf("%s%-24s %6.1f bytes a key", when, "all", float64(total)/float64(rows))
	if when == "" {
		b.ReportMetric(float64(total)/float64(rows), "B/key")
	}
}

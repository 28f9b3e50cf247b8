package postgres_test

import (
	"fmt"
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"strings"
)

// BenchmarkClaimBehind claims beside due records that are not for the worker: with none, and behind a million that are due for longer.
func BenchmarkClaimBehind(b *testing.B) {
	for _, n := range []int{0, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			db := admin(b)
			opts := migrated(b, db)
			sqltest.ClaimBehind(b, n, open(b, server(b), opts), func(n int) {
				columns := sqljournal.ColumnList("r.")
				columns = strings.Replace(columns, "r.id,", "substr(sha256(('other' || i)::bytea), 1, 23),", 1)
				columns = strings.Replace(columns, "r.seq,", "nextval('"+opts.Schema+".record_seq'),", 1)
				for _, statement := range []string{
					fmt.Sprintf("INSERT INTO %s.record (%s) SELECT %s FROM %s.record r, generate_series(1, %d) i", opts.Schema, sqljournal.ColumnList(""), columns, opts.Schema, n),
					"ANALYZE " + opts.Schema + ".record",
				} {
					if _, err := db.Exec(statement); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

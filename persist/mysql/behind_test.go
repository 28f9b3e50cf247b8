package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// BenchmarkClaimBehind claims beside due records that are not for the worker: with none, and behind a million that are due for longer.
func BenchmarkClaimBehind(b *testing.B) {
	for _, n := range []int{0, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			db := pool(b, "")
			opts := migrated(b, db)
			table := opts.Database + ".oncehttp_record"
			sqltest.ClaimBehind(b, n, open(b, server(b), opts), func(n int) {
				columns := strings.Replace(sqljournal.ColumnList("r."), "r.id,", "LEFT(UNHEX(SHA2(CONCAT('other', s.seq), 256)), 23),", 1)
				columns = strings.Replace(columns, "r.seq,", "s.seq + 10,", 1)
				for _, statement := range []string{
					fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s r, %s.seq_1_to_%d s", table, sqljournal.ColumnList(""), columns, table, opts.Database, n),
					fmt.Sprintf("SELECT SETVAL(%s.oncehttp_seq, %d)", opts.Database, n+20),
					"ANALYZE TABLE " + table,
				} {
					if _, err := db.Exec(statement); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

package mysql_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// usedKeys is how many BenchmarkUsedKeys makes, and usedAtOnce how many at a time; docs/journals.md has figures.
var (
	usedKeys   = flag.Int("used", 5_000, "used keys that are measured")
	usedAtOnce = flag.Int("used-at-once", 1_000, "keys that end before each sweep")
	usedSealed = flag.Bool("used-sealed", false, "they are in a sealed journal")
)

// BenchmarkUsedKeys prints the bytes of a used key, with its indexes, as the server's statistics have them.
func BenchmarkUsedKeys(b *testing.B) {
	db := pool(b, "")
	opts := migrated(b, db)
	table, used, kept := opts.Database+".oncehttp_record", opts.Database+".oncehttp_used", opts.Database+".kept"
	var names, values []string
	for _, c := range sqljournal.Columns() {
		value := c.Name
		switch c.Name {
		case "id":
			value = "LEFT(UNHEX(SHA2(UUID(), 256)), 23)"
		case "seq":
			value = "NEXTVAL(" + opts.Database + ".oncehttp_seq)"
		}
		names, values = append(names, c.Name), append(values, value)
	}
	sqltest.UsedKeys(b, sqltest.Used{
		Engine: sqltest.Engine{DB: db, Records: table, Open: func(t testing.TB, _ string, _ time.Duration) persist.Journal { return open(t, server(t), opts) }},
		Keep:   []string{"CREATE TABLE " + kept + " AS SELECT * FROM " + table, "DELETE FROM " + table},
		Begin: func(n int) string {
			return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s, %s.seq_1_to_%d n WHERE op_key = 'pending'", table, strings.Join(names, ", "), strings.Join(values, ", "), kept, opts.Database, n)
		},
		End: fmt.Sprintf(`UPDATE %s r JOIN %s e ON e.op_key = 'ended' SET r.state = e.state, r.finished = e.finished, r.sweep_at = e.sweep_at, r.progress = e.progress,
			r.answer = e.answer, r.revision = e.revision WHERE r.state = 0`, table, kept),
		Rows: used,
		Full: []string{"OPTIMIZE TABLE " + table, "OPTIMIZE TABLE " + used},
		Sizes: func(b *testing.B) map[string]int64 {
			if _, err := db.Exec("ANALYZE TABLE " + table + ", " + used); err != nil {
				b.Fatal(err)
			}
			rows, err := db.Query("SELECT CONCAT(table_name, ' ', index_name), stat_value * @@innodb_page_size FROM mysql.innodb_index_stats WHERE database_name = ? AND table_name LIKE 'oncehttp_%' AND stat_name = 'size'", opts.Database)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = rows.Close() }()
			sizes := map[string]int64{}
			for rows.Next() {
				var name string
				var size int64
				if err := rows.Scan(&name, &size); err != nil {
					b.Fatal(err)
				}
				sizes[name] = size
			}
			return sizes
		},
	}, *usedKeys, *usedAtOnce, *usedSealed)
}

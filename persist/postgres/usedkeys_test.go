package postgres_test

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
	usedByOne  = flag.Bool("used-by-statement", false, "after the first ones, one statement writes each row as a sweep does")
	usedSealed = flag.Bool("used-sealed", false, "they are in a sealed journal")
)

// BenchmarkUsedKeys prints the bytes of a used key, with its indexes.
func BenchmarkUsedKeys(b *testing.B) {
	db := admin(b)
	opts := migrated(b, db)
	table := opts.Schema + ".record"
	var sweep []string
	if *usedByOne {
		var changed []string
		for _, c := range sqljournal.Columns() {
			if c.Name != "id" {
				changed = append(changed, c.Name+" = used."+c.Name)
			}
		}
		kept := opts.Schema + ".kept"
		sweep = []string{
			fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE swept = 2 AND NOT EXISTS (SELECT FROM %s WHERE swept = 2) LIMIT 1", kept, table, kept),
			fmt.Sprintf("UPDATE %s r SET %s FROM %s used WHERE used.swept = 2 AND r.swept = 0 AND r.state = 2", table, strings.Join(changed, ", "), kept),
		}
	}
	sqltest.UsedKeys(b, sqltest.Used{
		Sweep:  sweep,
		Engine: sqltest.Engine{DB: db, Records: table, Open: func(t testing.TB, _ string, _ time.Duration) persist.Journal { return open(t, server(t), opts) }},
		Keep:   []string{"CREATE TABLE " + opts.Schema + ".kept AS SELECT * FROM " + table, "DELETE FROM " + table},
		Begin: func(n int) string {
			var names, values []string
			for _, c := range sqljournal.Columns() {
				value := c.Name
				switch c.Name {
				case "id":
					value = "substr(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 1, 23)"
				case "seq":
					value = "nextval('" + table + "_seq')"
				}
				names, values = append(names, c.Name), append(values, value)
			}
			return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s.kept, generate_series(1, %d) n WHERE op_key = 'pending'", table, strings.Join(names, ", "), strings.Join(values, ", "), opts.Schema, n)
		},
		End: fmt.Sprintf(`UPDATE %s r SET state = e.state, finished = e.finished, sweep_at = e.sweep_at, progress = e.progress, answer = e.answer, revision = e.revision
			FROM %s.kept e WHERE e.op_key = 'ended' AND r.state = 0`, table, opts.Schema),
		Rows:   table + " WHERE swept = 2",
		Vacuum: []string{"VACUUM " + table},
		Full:   []string{"VACUUM FULL " + table},
		Sizes: func(b *testing.B) map[string]int64 {
			rows, err := db.Query(`SELECT 'heap', pg_table_size('` + table + `'::regclass)
				UNION ALL SELECT c.relname, pg_relation_size(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = '` + table + `'::regclass`)
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

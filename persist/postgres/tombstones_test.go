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

// tombstones is how many BenchmarkBegin has beside it; docs/journals.md has figures of a million.
var tombstones = flag.Int("tombstones", 10_000, "tombstones beside the Begin that is measured")

// BenchmarkBegin measures Begin on an empty table, and beside tombstones.
func BenchmarkBegin(b *testing.B) {
	db := admin(b)
	var engines [2]sqltest.Engine
	for i := range engines {
		opts := migrated(b, db)
		engines[i] = sqltest.Engine{
			DB: db, Records: opts.Schema + ".record",
			Open: func(t testing.TB, _ string, _ time.Duration) persist.Journal { return open(t, server(t), opts) },
		}
	}
	sqltest.Tombstones(b, engines[0], engines[1], *tombstones, copies(engines[1].Records, *tombstones))
}

// copies is a statement that makes n copies of the only row of the table, each with an id and a number of its own.
func copies(table string, n int) string {
	var names, values []string
	for _, c := range sqljournal.Columns() {
		value := c.Name
		switch c.Name {
		case "id":
			value = "substr(sha256(n::text::bytea), 1, 23)"
		case "seq":
			value = "nextval('" + table + "_seq')"
		}
		names, values = append(names, c.Name), append(values, value)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s, generate_series(1, %d) n",
		table, strings.Join(names, ", "), strings.Join(values, ", "), table, n)
}

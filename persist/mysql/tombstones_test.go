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

// tombstones is how many BenchmarkBegin has beside it; docs/journals.md has figures of a million.
var tombstones = flag.Int("tombstones", 10_000, "tombstones beside the Begin that is measured")

// BenchmarkBegin measures Begin on an empty table, and beside tombstones.
func BenchmarkBegin(b *testing.B) {
	root := pool(b, "")
	var engines [2]sqltest.Engine
	for i := range engines {
		opts := migrated(b, root)
		engines[i] = sqltest.Engine{
			DB: pool(b, opts.Database), Records: "oncehttp_record",
			Open: func(t testing.TB, _ string, _ time.Duration) persist.Journal { return open(t, server(t), opts) },
		}
	}
	sqltest.Tombstones(b, engines[0], engines[1], *tombstones, copies(*tombstones))
}

// copies is a statement that makes n copies of the only row, each with an id and a number of its own.
func copies(n int) string {
	var names, values []string
	for _, c := range sqljournal.Columns() {
		value := "r." + c.Name
		switch c.Name {
		case "id":
			value = "LEFT(UNHEX(SHA2(n.seq, 256)), 23)"
		case "seq":
			value = "NEXTVAL(oncehttp_seq)"
		}
		names, values = append(names, c.Name), append(values, value)
	}
	return fmt.Sprintf("INSERT INTO oncehttp_record (%s) SELECT %s FROM oncehttp_record r, seq_1_to_%d n",
		strings.Join(names, ", "), strings.Join(values, ", "), n)
}

package postgres_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// counted describes the table of an engine for the tests of Count.
func counted(e sqltest.Engine) sqltest.Counted {
	opts := postgres.Options{Schema: strings.TrimSuffix(e.Records, ".record")}
	return sqltest.Counted{
		Query: opts.CountQuery(), Multiply: func(n int) string { return copies(e.Records, n) }, Analyze: "VACUUM ANALYZE " + e.Records, Index: "record_count_idx",
	}
}

func TestCountByIndex(t *testing.T) {
	t.Parallel()
	e := engine(t)
	sqltest.CountByIndex(t, e, counted(e))
}

// The sizes of BenchmarkCount.
var (
	countFinal = flag.Int("final", 10_000, "final records beside the Count that is measured")
	countOpen  = flag.Int("open", 1_000, "unfinished records that are counted")
)

// BenchmarkCount measures Count beside final records.
func BenchmarkCount(b *testing.B) {
	e := engineOf(b)
	finish := fmt.Sprintf("UPDATE %s SET state = 2, finished = created, sweep_at = created WHERE id IN (SELECT id FROM %s ORDER BY seq LIMIT %d)", e.Records, e.Records, *countFinal)
	sqltest.CountBeside(b, e, counted(e), finish, *countFinal, *countOpen)
}

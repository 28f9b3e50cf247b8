package mysql_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// counted describes the table of an engine for the tests of Count.
func counted() sqltest.Counted {
	return sqltest.Counted{Query: journal.Options{}.CountQuery(), Multiply: copies, Analyze: "ANALYZE TABLE oncehttp_record", Index: "record_count"}
}

func TestCountByIndex(t *testing.T) {
	t.Parallel()
	sqltest.CountByIndex(t, engine(t), counted())
}

// The sizes of BenchmarkCount.
var (
	countFinal = flag.Int("final", 10_000, "final records beside the Count that is measured")
	countOpen  = flag.Int("open", 1_000, "unfinished records that are counted")
)

// BenchmarkCount measures Count beside final records.
func BenchmarkCount(b *testing.B) {
	finish := fmt.Sprintf("UPDATE oncehttp_record SET state = 2, finished = created, sweep_at = created ORDER BY seq LIMIT %d", *countFinal)
	sqltest.CountBeside(b, engineOf(b), counted(), finish, *countFinal, *countOpen)
}

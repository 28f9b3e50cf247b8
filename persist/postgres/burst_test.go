package postgres_test

import (
	"fmt"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// TestBurstInTransactions: a journal lists what one transaction has begun, thousands of operations, although the statistics of its table know none without a
// number. With a plan for one such row the listing would not end within its time.
func TestBurstInTransactions(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	j := open(t, server(t), opts)
	begun := opts.Schema + ".record"
	exec := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("ALTER TABLE " + begun + " SET (autovacuum_enabled = false)")
	for i := range 100 {
		if _, _, err := j.Begin(t.Context(), sqltest.Record("a", fmt.Sprint("numbered", i))); err != nil {
			t.Fatal(err)
		}
	}
	exec("ANALYZE " + begun)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, _, err := (postgres.Options{Schema: opts.Schema}).BeginSQL(t.Context(), tx, sqltest.Record("a", "late")); err != nil {
		t.Fatal(err)
	}
	const burst = 12_000 // copies of that one
	if _, err := tx.Exec(fmt.Sprintf(`CREATE TEMPORARY TABLE one ON COMMIT DROP AS SELECT * FROM %[1]s WHERE seq IS NULL;
		INSERT INTO %[1]s SELECT (jsonb_populate_record(one, jsonb_build_object('id', '\x' || encode(substr(sha256(n::text::bytea), 1, 23), 'hex')))).*
		FROM one, generate_series(2, %[2]d) n`, begun, burst)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range j.List(t.Context(), persist.Query{Account: "a"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != burst+100 {
		t.Errorf("%d records, want %d", n, burst+100)
	}
}

package postgres

import (
	"context"
	"database/sql"
	"reflect"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testport"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// TestWriteAll: the shared statement itself begins and changes each row, with all of its columns. What it does not serve is
// made alone, so that no test of a journal would notice.
func TestWriteAll(t *testing.T) {
	t.Parallel()
	url := testport.Server(t, "ONCEHTTP_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")
	opts, err := Options{Schema: sqltest.Name()}.checked()
	if err != nil {
		t.Fatal(err)
	}
	db, _, err := opts.database(url, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("DROP SCHEMA IF EXISTS " + opts.Schema + " CASCADE"); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	})
	if err := Migrate(t.Context(), url, opts); err != nil {
		t.Fatal(err)
	}
	d := opts.dialect()
	one, two, three := filledRow("one", 100), filledRow("two", 200), filledRow("three", 300)
	two.Body, two.Answer = nil, nil
	writeAll(t, db, d, []*sqljournal.Row{one, two, three}, nil)
	changed := []*sqljournal.Row{filledRow("one", 400), filledRow("two", 500)}
	for i, was := range []*sqljournal.Row{one, two} {
		now := changed[i]
		now.Seq, now.Revision, now.Created, now.Fingerprint, now.Intent, now.Body = was.Seq, was.Revision, was.Created, was.Fingerprint, was.Intent, was.Body
		now.Generated, now.State = was.Generated, 1
	}
	changed[0].Intent = nil                                  // else its body would go
	changed[1].Seq, changed[1].Answer = sql.NullInt64{}, nil // it had no number when it was read
	four := filledRow("four", 600)
	writeAll(t, db, d, []*sqljournal.Row{four}, changed)
	changed[0].Intent, changed[1].Seq = one.Intent, two.Seq
	for _, row := range changed {
		row.Revision++
	}
	for _, want := range append(changed, three, four) {
		var got sqljournal.Row
		err := db.QueryRow("SELECT "+sqljournal.ColumnList("")+" FROM "+d.table+" WHERE id = $1", want.ID).Scan(got.Fields()...)
		if err != nil || !reflect.DeepEqual(&got, want) {
			t.Errorf("%s: there is\n%+v, want\n%+v, error %v", want.Key, &got, want, err)
		}
	}
}

// filledRow is a row in which every column has a value of its own.
func filledRow(key string, n int64) *sqljournal.Row {
	rec := sqltest.Record("account", key)
	row := sqljournal.NewRow(&rec)
	row.Revision, row.SweepAt, row.Unreported, row.Generated, row.Swept = n+1, n+2, 1, n%200/100, 1-n%200/100
	row.Created, row.NextAttempt, row.Finished, row.LeaseUntil = n+3, n+4, n+5, n+6
	row.LeaseOwner, row.Answer = []byte("owner of "+key), []byte("answer to "+key)
	return row
}

// writeAll runs the shared statement, which has to serve every row, and sets the numbers of those that it begins.
func writeAll(t *testing.T, db *sql.DB, d *dialect, begins, changes []*sqljournal.Row) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	numbers, err := d.WriteAll(ctx, conn, begins, changes)
	if err != nil || len(numbers) != len(begins)+len(changes) {
		t.Fatalf("it has written %d of %d rows, error %v", len(numbers), len(begins)+len(changes), err)
	}
	for _, row := range begins {
		row.Seq = numbers[string(row.Token)]
	}
}

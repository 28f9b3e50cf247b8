package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

func TestSweepPages(t *testing.T) {
	t.Parallel()
	e := engine(t)
	sqltest.SweepPages(t, e, copies(e.Records, 2500))
}

func TestSweepLocked(t *testing.T) {
	t.Parallel()
	e := engine(t)
	sqltest.SweepLocked(t, e, copies(e.Records, 200))
}

// TestSweepOfASlowServer: each change of a row takes so long that a whole transaction of a sweep is not answered in time. The sweep goes on with fewer rows.
func TestSweepOfASlowServer(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	j := open(t, server(t), opts)
	const rows = 8
	for i := range rows {
		rec, created, err := j.Begin(t.Context(), sqltest.Record("a", fmt.Sprint("k", i)))
		if err != nil || !created {
			t.Fatal(created, err)
		}
		rec.State, rec.Finished, rec.Answer = persist.StateConfirmed, time.Now().Add(-48*time.Hour), &persist.Answer{Status: 201, At: time.Now()}
		if err := j.Finish(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	run(t, db, "CREATE FUNCTION "+opts.Schema+".slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END $$",
		"CREATE TRIGGER slow BEFORE UPDATE ON "+opts.Schema+".record FOR EACH ROW EXECUTE FUNCTION "+opts.Schema+".slow()")
	slow := open(t, server(t), postgres.Options{Schema: opts.Schema, MaxConns: 2, CallTimeout: time.Second})
	for deadline := time.Now().Add(4 * time.Minute); ; time.Sleep(50 * time.Millisecond) { // the server works on after a cut transaction, and its rows are passed over
		_, err := slow.Sweep(context.WithoutCancel(t.Context()), persist.Limits{KeepAnswer: time.Hour})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) { // a busy machine may answer no single record in time
			t.Fatal(err)
		}
		var left int // the rows themselves: a commit may be done, and its answer cut
		if err := db.QueryRow("SELECT count(*) FROM " + opts.Schema + ".record WHERE swept = 0").Scan(&left); err != nil {
			t.Fatal(err)
		}
		switch {
		case left == 0:
			return
		case time.Now().After(deadline):
			t.Fatalf("%d of %d rows are left: %v", left, rows, err)
		}
	}
}

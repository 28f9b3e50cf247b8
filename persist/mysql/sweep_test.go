package mysql_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

func TestSweepPages(t *testing.T) {
	t.Parallel()
	sqltest.SweepPages(t, engine(t), copies(2500))
}

func TestSweepLocked(t *testing.T) {
	t.Parallel()
	sqltest.SweepLocked(t, engine(t), copies(200))
}

// TestSweepLocksNothingElse stops a Sweep within the transaction that makes a tombstone. What is
// not due is locked by nobody then: a Begin with its key returns the record.
func TestSweepLocksNothingElse(t *testing.T) {
	t.Parallel()
	root := pool(t, "")
	opts := migrated(t, root)
	db := pool(t, opts.Database)
	db.SetMaxOpenConns(1) // GET_LOCK is of a connection
	sweeper, caller := open(t, server(t), opts), open(t, server(t), opts)
	kept, _, err := caller.Begin(t.Context(), sqltest.Record("a", "kept"))
	if err != nil {
		t.Fatal(err)
	}
	if err := caller.Finish(t.Context(), sqltest.Finished(kept)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		copies(2000),
		"UPDATE oncehttp_record SET finished = finished - 90000000000000, sweep_at = sweep_at - 90000000000000 ORDER BY seq DESC LIMIT 1", // it is due
		"ANALYZE TABLE oncehttp_record",
		"CREATE TRIGGER stops BEFORE UPDATE ON oncehttp_record FOR EACH ROW IF NEW.swept > OLD.swept THEN DO GET_LOCK('" + opts.Database + "', 60); END IF",
		"DO GET_LOCK('" + opts.Database + "', 60)",
	} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	swept := make(chan error, 1)
	go func() {
		n, err := sweeper.Sweep(t.Context(), persist.Limits{Now: kept.Created.Add(time.Hour)})
		if err == nil && n != 1 {
			err = fmt.Errorf("it changed %d", n)
		}
		swept <- err
	}()
	for waits := 0; waits == 0; time.Sleep(time.Millisecond) {
		if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock' AND db = DATABASE()").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if len(swept) > 0 {
			t.Fatalf("Sweep ended before it changed anything: %v", <-swept)
		}
	}
	if _, created, err := caller.Begin(t.Context(), kept); err != nil || created {
		t.Errorf("Begin of what is not due, beside a Sweep: created %t, error %v", created, err)
	}
	if _, err := db.Exec("DO RELEASE_ALL_LOCKS()"); err != nil {
		t.Fatal(err)
	}
	if err := <-swept; err != nil {
		t.Errorf("Sweep: %v", err)
	}
}

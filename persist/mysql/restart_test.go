package mysql_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// TestOwnServer changes settings of a server of its own, and stops and starts it.
func TestOwnServer(t *testing.T) {
	t.Parallel()
	own := ownServer(t)
	db, err := sql.Open("mysql", "root@tcp("+own.Address+")/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec("CREATE DATABASE journal"); err != nil {
		t.Fatal(err)
	}
	url := "mysql://root@" + own.Address + "/journal"
	if err := journal.Migrate(t.Context(), url, journal.Options{}); err != nil {
		t.Fatal(err)
	}
	volatile(t, db, url)
	inJournal, err := sql.Open("mysql", "root@tcp("+own.Address+")/journal")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inJournal.Close() })
	sqltest.Restarted(t, sqltest.Engine{
		Address: own.Address, DB: inJournal, Records: "oncehttp_record",
		Open: func(t testing.TB, _ string, limit time.Duration) persist.Journal {
			return open(t, url, journal.Options{CallTimeout: limit})
		},
	}, own)
}

// volatile: neither Open nor a Begin in a transaction accepts a server that writes its log
// later than at the commit, unless that is allowed.
func volatile(t *testing.T, db *sql.DB, url string) {
	t.Helper()
	set := func(flush string) {
		t.Helper()
		if _, err := db.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = " + flush); err != nil {
			t.Fatal(err)
		}
	}
	for _, flush := range []string{"0", "2"} {
		set(flush)
		if _, err := journal.Open(t.Context(), url, journal.Options{}); !errors.Is(err, journal.ErrVolatile) {
			t.Errorf("Open with innodb_flush_log_at_trx_commit %s: %v, want ErrVolatile", flush, err)
		}
		open(t, url, journal.Options{AllowVolatile: true})
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		opts := journal.Options{Database: "journal"}
		if _, _, err := opts.Begin(t.Context(), tx, sqltest.Record("a", "k")); !errors.Is(err, journal.ErrVolatile) {
			t.Errorf("Begin with innodb_flush_log_at_trx_commit %s: %v, want ErrVolatile", flush, err)
		}
		opts.AllowVolatile = true
		if _, created, err := opts.Begin(t.Context(), tx, sqltest.Record("a", "k")); err != nil || !created {
			t.Errorf("Begin with AllowVolatile: created %t, error %v", created, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
	set("1")
	open(t, url, journal.Options{})
}

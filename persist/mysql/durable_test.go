package mysql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// inOwn makes the database of a journal in a server of the test's own.
func inOwn(t *testing.T, own *sqltest.OwnServer) (db *sql.DB, url string) {
	t.Helper()
	db, err := sql.Open("mysql", "root@tcp("+own.Address+")/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec("CREATE DATABASE journal"); err != nil {
		t.Fatal(err)
	}
	url = "mysql://root@" + own.Address + "/journal"
	if err := journal.Migrate(t.Context(), url, journal.Options{}); err != nil {
		t.Fatal(err)
	}
	return db, url
}

// set gives the server innodb_flush_log_at_trx_commit and sync_binlog.
func set(t *testing.T, db *sql.DB, values [2]int) {
	t.Helper()
	for i, name := range []string{"innodb_flush_log_at_trx_commit", "sync_binlog"} {
		if _, err := db.Exec(fmt.Sprintf("SET GLOBAL %s = %d", name, values[i])); err != nil {
			t.Fatal(err)
		}
	}
}

// volatile: neither Open, nor a new connection, nor a Begin in a transaction accepts a server
// that may lose commits, unless that is allowed. cases say of innodb_flush_log_at_trx_commit and
// sync_binlog whether they keep all.
func volatile(t *testing.T, db *sql.DB, url string, cases map[[2]int]bool) {
	t.Helper()
	for values, good := range cases {
		set(t, db, [2]int{1, 1})
		lonely := open(t, url, journal.Options{MaxConns: 1})
		dropConnections(t, db)
		set(t, db, values)
		wrong := func(err error) bool {
			if good {
				return err != nil
			}
			return !errors.Is(err, journal.ErrVolatile) || errors.Is(err, persist.ErrUncertain) ||
				!strings.Contains(err.Error(), fmt.Sprintf("innodb_flush_log_at_trx_commit is %d", values[0])) ||
				!strings.Contains(err.Error(), fmt.Sprintf("sync_binlog is %d", values[1]))
		}
		j, err := journal.Open(t.Context(), url, journal.Options{})
		if wrong(err) {
			t.Errorf("Open with innodb_flush_log_at_trx_commit and sync_binlog %v: %v; that they keep all is %t", values, err, good)
		}
		if err == nil {
			_ = j.Close()
		}
		if _, _, err := lonely.Begin(t.Context(), sqltest.Record("a", fmt.Sprint(values))); wrong(err) {
			t.Errorf("Begin on a new connection with %v: %v", values, err)
		}
		open(t, url, journal.Options{AllowVolatile: true})
		volatileIn(t, db, values, wrong)
	}
	set(t, db, [2]int{1, 1})
}

// volatileIn is volatile for a transaction of the caller's own.
func volatileIn(t *testing.T, db *sql.DB, values [2]int, wrong func(error) bool) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	opts := journal.Options{Database: "journal"}
	if _, created, err := opts.Begin(t.Context(), tx, sqltest.Record("a", "in a transaction")); wrong(err) || created != (err == nil) {
		t.Errorf("Begin in a transaction with %v: created %t, %v", values, created, err)
	}
	opts.AllowVolatile = true
	if _, created, err := opts.Begin(t.Context(), tx, sqltest.Record("a", "allowed")); err != nil || !created {
		t.Errorf("Begin with AllowVolatile: created %t, error %v", created, err)
	}
}

// dropConnections ends the connections of all journals, and returns when they have ended.
func dropConnections(t *testing.T, db *sql.DB) {
	t.Helper()
	for {
		var id int
		err := db.QueryRow("SELECT id FROM information_schema.processlist WHERE db = 'journal' LIMIT 1").Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = db.Exec(fmt.Sprintf("KILL %d", id)) // it may have ended
	}
}

// TestPowerFails: with a binary log, a server keeps what it acknowledged when its power fails
// exactly with the settings that Open accepts. What fails with the power is what was not synced:
// the server is killed at once after a commit, and of the binary log what came since is cut off.
func TestPowerFails(t *testing.T) {
	t.Parallel()
	own := ownServer(t, "--log-bin=binlog", "--server-id=1")
	db, url := inOwn(t, own)
	volatile(t, db, url, map[[2]int]bool{
		{0, 1}: false, {1, 0}: false, {1, 1}: true, {1, 2}: false, {2, 1}: false, {3, 0}: true, {3, 1}: true,
	})
	if !survives(t, own, db, url, [2]int{3, 0}) {
		t.Error("what was committed with innodb_flush_log_at_trx_commit 3 is lost with the binary log")
	}
	// InnoDB writes its log once a second, too, which may come between the commit and the kill.
	for range 10 {
		if !survives(t, own, db, url, [2]int{1, 0}) {
			return
		}
	}
	t.Error("what was committed with innodb_flush_log_at_trx_commit 1 and sync_binlog 0 is never lost; so why is it refused?")
}

// survives begins a record, lets the power fail, and reports whether the record is there.
func survives(t *testing.T, own *sqltest.OwnServer, db *sql.DB, url string, values [2]int) bool {
	t.Helper()
	set(t, db, values)
	opts := journal.Options{AllowVolatile: true}
	j := open(t, url, opts)
	var file string
	var size int64
	var none any
	if err := db.QueryRow("SHOW MASTER STATUS").Scan(&file, &size, &none, &none); err != nil {
		t.Fatal(err)
	}
	rec, _, err := j.Begin(t.Context(), sqltest.Record("a", sqltest.Name()))
	if err != nil {
		t.Fatal(err)
	}
	own.RestartAfter(func() {
		if err := os.Truncate(filepath.Join(own.Dir, file), size); err != nil {
			t.Fatal(err)
		}
	})
	_, err = open(t, url, opts).Get(t.Context(), rec.ID)
	if err != nil && !errors.Is(err, persist.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

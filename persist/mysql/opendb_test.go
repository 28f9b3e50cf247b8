package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/persisttest"
)

// hostile are settings of sessions in which a statement is not committed, cuts its values, or reads what is not committed.
func hostile() map[string]string {
	return map[string]string{"autocommit": "0", "sql_mode": "''", "tx_isolation": "'READ-UNCOMMITTED'", "completion_type": "1"}
}

// ownDB is a DB of the program's own, with these settings of its sessions.
func ownDB(t testing.TB, settings map[string]string, change func(*mysql.Config)) *sql.DB {
	t.Helper()
	c := config(t, "mysql") // some database
	c.Params = maps.Clone(settings)
	if change != nil {
		change(c)
	}
	db := connected(t, c)
	db.SetMaxOpenConns(8)
	return db
}

// openDB opens a journal on a DB, which is closed in the end.
func openDB(t testing.TB, db *sql.DB, opts journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.OpenDB(t.Context(), db, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// TestOpenDBSuite runs the suite on a DB with hostile sessions, and some cases on one with the settings of the journal's own.
func TestOpenDBSuite(t *testing.T) {
	t.Parallel()
	for name, db := range map[string]*sql.DB{
		"hostile": ownDB(t, hostile(), nil),
		"good": ownDB(t, map[string]string{"tx_isolation": "'READ-COMMITTED'", "idle_transaction_timeout": "3"}, func(c *mysql.Config) {
			c.InterpolateParams, c.ParseTime = true, true
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cases := sqltest.Half(persisttest.Names(), 0)
			if name == "good" {
				cases = sqltest.Part(persisttest.Names(), 1, 6)
			}
			dbSuite(t, db, cases)
		})
	}
}

func dbSuite(t *testing.T, db *sql.DB, cases []string) {
	url, beside := server(t), pool(t, "")
	persisttest.Run(t, persisttest.Harness{
		Durable: true, Cases: cases,
		New: func(string) (func() (persist.Journal, error), error) {
			opts := database(t, beside)
			if err := journal.Migrate(context.Background(), url, opts); err != nil {
				return nil, err
			}
			return func() (persist.Journal, error) {
				j, err := journal.OpenDB(context.Background(), db, opts)
				if err != nil {
					return nil, err
				}
				return j, nil
			}, nil
		},
	})
}

// TestOpenDBIsTheProgramsOwn: what each method wrote in hostile sessions is committed when it returns. The sessions of the DB stay as the
// program has them, and it goes on after the journal's Close.
func TestOpenDBIsTheProgramsOwn(t *testing.T) {
	t.Parallel()
	beside := pool(t, "")
	opts := migrated(t, beside)
	db := ownDB(t, hostile(), nil)
	j := openDB(t, db, opts)
	look := "SELECT revision FROM " + opts.Database + ".oncehttp_record WHERE op_key = 'k'"
	committed := func(name string, want int) {
		t.Helper()
		var revision int
		if err := beside.QueryRow(look).Scan(&revision); err != nil || revision != want {
			t.Errorf("after %s, another connection sees revision %d, want %d; %v", name, revision, want, err)
		}
	}
	if _, created, err := j.Begin(t.Context(), sqltest.Record("a", "k")); err != nil || !created {
		t.Fatalf("Begin: %t, %v", created, err)
	}
	committed("Begin", 1)
	claimed, _, err := j.Claim(t.Context(), persist.Query{AllAccounts: true}, "w", time.Minute, 1)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("Claim: %d, %v", len(claimed), err)
	}
	committed("Claim", 2)
	rec, err := j.Update(t.Context(), claimed[0])
	if err != nil {
		t.Fatal(err)
	}
	committed("Update", 3)
	if err := j.Finish(t.Context(), sqltest.Finished(rec)); err != nil {
		t.Fatal(err)
	}
	committed("Finish", 4)
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("the journal holds %d connections between its calls", n)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for range db.Stats().OpenConnections {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		var autocommit, idle, open int
		var mode, isolation string
		if err := conn.QueryRowContext(t.Context(), "SELECT @@autocommit, @@idle_transaction_timeout, @@in_transaction, @@sql_mode, @@tx_isolation").Scan(&autocommit, &idle, &open, &mode, &isolation); err != nil ||
			autocommit != 0 || idle != 0 || open != 0 || mode != "" || isolation != "READ-UNCOMMITTED" {
			t.Errorf("after Close a session has autocommit %d, idle_transaction_timeout %d, in_transaction %d, sql_mode %q and tx_isolation %q; %v", autocommit, idle, open, mode, isolation, err)
		}
	}
}

// TestOpenDBReadsWhatIsCommitted: in a DB of READ UNCOMMITTED, the journal does not read a record that is rolled back.
func TestOpenDBReadsWhatIsCommitted(t *testing.T) {
	t.Parallel()
	beside := pool(t, "")
	opts := migrated(t, beside)
	j := openDB(t, ownDB(t, hostile(), nil), opts)
	tx, err := beside.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, _, err := opts.Begin(t.Context(), tx, sqltest.Record("a", "k")); err != nil {
		t.Fatal(err)
	}
	if rec, err := j.Get(t.Context(), persist.ID{Account: "a", Key: "k"}); !errors.Is(err, persist.ErrNotFound) {
		t.Errorf("Get of a record that is not committed: %v, %v", rec.State, err)
	}
}

// TestOpenDBRefused: what contradicts the journal's promises is refused in one line.
func TestOpenDBRefused(t *testing.T) {
	t.Parallel()
	opts := migrated(t, pool(t, ""))
	_, err := journal.OpenDB(t.Context(), nil, opts)
	oneLine(t, "no DB", err, journal.ErrOptions, "there is no DB")
	db := ownDB(t, nil, nil)
	large := opts
	large.MaxConns = 9
	_, err = journal.OpenDB(t.Context(), db, large)
	oneLine(t, "MaxConns", err, journal.ErrOptions, "the DB opens at most 8 connections")
	_, err = journal.OpenDB(t.Context(), db, journal.Options{Database: "no name"})
	oneLine(t, "Database", err, journal.ErrOptions, "Database")
	_, err = journal.OpenDB(t.Context(), pool(t, ""), opts)
	oneLine(t, "no database", err, journal.ErrOptions, "no database selected")

	db.SetMaxOpenConns(1)
	opts.MaxConns, opts.CallTimeout = 0, 12*time.Second // also for the opening, on a busy machine
	j := openDB(t, db, opts)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, created, err := j.Begin(t.Context(), sqltest.Record("a", "k"))
	if created || errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin without a connection: created %t, %v", created, err)
	}
	oneLine(t, "Begin without a connection", err, context.DeadlineExceeded, "all 1 connections of the DB are in use; raise its SetMaxOpenConns")
	if _, err := conn.ExecContext(t.Context(), "START TRANSACTION"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil { // it is given back with its transaction
		t.Fatal(err)
	}
	_, created, err = j.Begin(t.Context(), sqltest.Record("a", "k"))
	if created || errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin in an open transaction: created %t, %v", created, err)
	}
	oneLine(t, "Begin in an open transaction", err, journal.ErrVolatile, "has an open transaction")
}

// TestOpenDBVolatile: a server whose settings lose commits is refused, when the journal is opened and in each call after, on connections
// that stay open.
func TestOpenDBVolatile(t *testing.T) {
	t.Parallel()
	own := ownServer(t)
	beside, _ := inOwn(t, own)
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.DBName = "tcp", own.Address, "root", "journal"
	db := connected(t, c)
	db.SetMaxOpenConns(1)
	j := openDB(t, db, journal.Options{})
	set(t, beside, [2]int{0, 1})
	_, created, err := j.Begin(t.Context(), sqltest.Record("a", "k"))
	if created || errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin: created %t, %v", created, err)
	}
	oneLine(t, "Begin", err, journal.ErrVolatile, "innodb_flush_log_at_trx_commit is 0")
	_, err = journal.OpenDB(t.Context(), db, journal.Options{})
	oneLine(t, "OpenDB", err, journal.ErrVolatile, "innodb_flush_log_at_trx_commit is 0")
	if _, created, err := openDB(t, db, journal.Options{AllowVolatile: true}).Begin(t.Context(), sqltest.Record("a", "k")); err != nil || !created {
		t.Errorf("Begin where it is allowed: created %t, %v", created, err)
	}
}

// oneLine checks that an error is of a kind, and one line with these words.
func oneLine(t *testing.T, name string, err, kind error, words string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v; want one line of %v that says %q", name, err, kind, words)
	}
}

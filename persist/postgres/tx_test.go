package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// code is the SQLSTATE of an error, found by its type.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	sqltest.Transactions(t, engine(t))
}

func TestHeld(t *testing.T) {
	t.Parallel()
	sqltest.Held(t, engine(t), func(err error) bool { return code(err) == "55P03" })
}

// order is the role of a program that is killed: see sqltest.Order.
func order(ctx context.Context, args []string) error {
	db, err := sql.Open("pgx", args[0])
	if err != nil {
		return err
	}
	return sqltest.Order(ctx, db, args[2], postgres.Options{Schema: args[1]}.BeginSQL, args[3], args[4], args[5] == "commit")
}

func TestKilled(t *testing.T) {
	t.Parallel()
	e := engine(t)
	sqltest.Killed(t, e, server(t), e.Records[:len(e.Records)-len(".record")])
}

// TestSerializationFailure: at REPEATABLE READ a record that was begun after the
// transaction's snapshot is a conflict, whose error the caller's own retry has to see.
func TestSerializationFailure(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	j := open(t, server(t), opts)
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec("SELECT 1"); err != nil { // takes the snapshot
		t.Fatal(err)
	}
	if _, _, err := j.Begin(t.Context(), sqltest.Record("a", "k")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := opts.BeginSQL(t.Context(), tx, sqltest.Record("a", "k")); code(err) != "40001" {
		t.Errorf("Begin: %v, want a *pgconn.PgError with code 40001", err)
	}
}

// TestPgxTransaction: the same through pgx's own interface, which leaves the settings of the
// caller's transaction as they were.
func TestPgxTransaction(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	j := open(t, server(t), opts)
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '12345ms'"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		rec, created, err := opts.Begin(ctx, tx, sqltest.Record("a", "k"))
		if err != nil || created != (i == 0) || rec.Revision != 1 {
			t.Errorf("Begin number %d: created %t at revision %d, error %v", i+1, created, rec.Revision, err)
		}
	}
	var timeout string
	if err := tx.QueryRow(ctx, "SELECT current_setting('lock_timeout')").Scan(&timeout); err != nil || timeout != "12345ms" {
		t.Errorf("lock_timeout is %q, error %v; want that of the caller", timeout, err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if _, created, err := j.Begin(ctx, sqltest.Record("a", "k")); err != nil || created {
		t.Errorf("Begin after the commit: created %t, error %v", created, err)
	}
}

// TestVolatile: neither Open nor a Begin in a transaction accepts settings that lose commits,
// and what is refused is not written.
func TestVolatile(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	volatile := server(t) + "?options=-c%20synchronous_commit%3Doff"
	if _, err := postgres.Open(t.Context(), volatile, opts); !errors.Is(err, postgres.ErrVolatile) {
		t.Errorf("Open with synchronous_commit off: %v, want ErrVolatile", err)
	}
	allowed := opts
	allowed.AllowVolatile = true
	open(t, volatile, allowed)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec("SET LOCAL synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := opts.BeginSQL(t.Context(), tx, sqltest.Record("a", "k")); !errors.Is(err, postgres.ErrVolatile) {
		t.Errorf("Begin with synchronous_commit off: %v, want ErrVolatile", err)
	}
	if _, created, err := allowed.BeginSQL(t.Context(), tx, sqltest.Record("a", "k")); err != nil || !created {
		t.Errorf("Begin with synchronous_commit off, which is allowed: created %t, error %v", created, err)
	}
}

// TestVolatileLater: a server that loses commits is noticed on each new connection, not at Open
// alone.
func TestVolatileLater(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	role := sqltest.Name()
	if _, err := db.Exec("CREATE ROLE " + role + " LOGIN SUPERUSER"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("DROP ROLE " + role); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "hunter2")
	j := open(t, u.String(), opts)
	if _, err := db.Exec("ALTER ROLE " + role + " SET synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0; {
		if err := db.QueryRow("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1", role).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	// A read finds out that the old connection has ended. A Begin on that would be in doubt, and not be settled here.
	if _, err := j.Get(t.Context(), persist.ID{Account: "a", Key: "k"}); !errors.Is(err, postgres.ErrVolatile) {
		t.Errorf("Get on a new connection with synchronous_commit off: %v, want ErrVolatile", err)
	}
	_, created, err := j.Begin(t.Context(), sqltest.Record("a", "k"))
	if created || !errors.Is(err, postgres.ErrVolatile) || errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin on a new connection with synchronous_commit off: created %t, error %v; want ErrVolatile", created, err)
	}
}

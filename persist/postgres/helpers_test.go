package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/oncehttp/oncehttp/internal/testport"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// server is the URL of the PostgreSQL that the tests use.
func server(t testing.TB) string {
	t.Helper()
	return testport.Server(t, "ONCEHTTP_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")
}

// admin is a pool beside the journals, for what the tests do to the server.
func admin(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// schema returns options with a schema of the test's own, which is removed in the end.
func schema(t testing.TB, db *sql.DB) postgres.Options {
	t.Helper()
	opts := postgres.Options{Schema: sqltest.Name(), MaxConns: 4, CallTimeout: time.Minute}
	t.Cleanup(func() {
		if _, err := db.Exec("DROP SCHEMA IF EXISTS " + opts.Schema + " CASCADE"); err != nil {
			t.Error(err)
		}
	})
	return opts
}

// migrated is schema with its tables.
func migrated(t testing.TB, db *sql.DB) postgres.Options {
	t.Helper()
	opts := schema(t, db)
	if err := postgres.Migrate(t.Context(), server(t), opts); err != nil {
		t.Fatal(err)
	}
	return opts
}

// open opens a journal that is closed in the end.
func open(t testing.TB, url string, opts postgres.Options) *postgres.Journal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	j, err := postgres.Open(ctx, url, opts)
	for ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) { // the short CallTimeout of a test, on a busy machine
		j, err = postgres.Open(ctx, url, opts)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// oneLine checks that an error is one line with these words.
func oneLine(t *testing.T, name string, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v; want one line that says %q", name, err, words)
	}
}

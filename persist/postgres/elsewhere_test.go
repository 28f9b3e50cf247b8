package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// TestBeginTxElsewhere: a transaction of another database, with the same tables, begins nothing there, and goes on. That of the journal's own database
// begins the record, also once the tables are others than when the journal was opened.
func TestBeginTxElsewhere(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts, other := migrated(t, db), sqltest.Name()
	if _, err := db.Exec("CREATE DATABASE " + other); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("DROP DATABASE " + other + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + other
	if err := postgres.Migrate(t.Context(), u.String(), opts); err != nil {
		t.Fatal(err)
	}
	j := open(t, server(t), opts)
	for name, begin := range map[string]func(url, key string) (bool, error){
		"BeginTx": func(url, key string) (bool, error) { return beginSQL(t, j, url, key) },
		"pgx":     func(url, key string) (bool, error) { return beginPgx(t, j, url, key) },
	} {
		created, err := begin(u.String(), name)
		if created || !errors.Is(err, persist.ErrInvalid) || !errors.Is(err, persist.ErrOutcomeUnknown) {
			t.Errorf("%s elsewhere: created %t, %v", name, created, err)
		}
		oneLine(t, name, err, "another database than the journal")
		if created, err := begin(server(t), name); !created || err != nil {
			t.Errorf("%s: created %t, %v", name, created, err)
		}
	}
	if _, err := db.Exec("DROP SCHEMA " + opts.Schema + " CASCADE"); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), server(t), opts); err != nil {
		t.Fatal(err)
	}
	if created, err := beginSQL(t, j, server(t), "made anew"); !created || err != nil {
		t.Errorf("in tables that were made anew: created %t, %v", created, err)
	}
}

// beginSQL begins a record in a transaction at url, and commits it, whatever Begin said.
func beginSQL(t *testing.T, j *postgres.Journal, url, key string) (bool, error) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	_, created, err := persist.BeginTx(t.Context(), j, tx, sqltest.Record("a", key))
	if err := tx.Commit(); err != nil {
		t.Errorf("commit: %v", err)
	}
	return created, err
}

// beginPgx is beginSQL over pgx.
func beginPgx(t *testing.T, j *postgres.Journal, url, key string) (bool, error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, created, err := postgres.BeginPgx(t.Context(), j, tx, sqltest.Record("a", key))
	if err := tx.Commit(t.Context()); err != nil {
		t.Errorf("commit: %v", err)
	}
	return created, err
}

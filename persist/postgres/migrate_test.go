package postgres_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

func TestMain(m *testing.M) {
	sqltest.Main(m, map[string]func(context.Context, []string) error{
		"migrate": func(ctx context.Context, args []string) error {
			return postgres.Migrate(ctx, args[0], postgres.Options{Schema: args[1]})
		},
		"order":  order,
		"fleet":  fleetWorker,
		"caller": caller, "rolling": rollingWorker,

		"listener": listener, "deliverer": deliverer,
	})
}

// shape is all columns and indexes of a schema, as text that does not name the schema.
func shape(t *testing.T, db *sql.DB, schema string) string {
	t.Helper()
	var text string
	err := db.QueryRow(`SELECT string_agg(line, E'\n' ORDER BY line) FROM (
		SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable FROM information_schema.columns WHERE table_schema = $1
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = $1) AS all_lines (line)`, schema).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text, schema, "SCHEMA")
}

func versions(t *testing.T, db *sql.DB, schema string) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT count(*) FROM " + schema + ".version").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMigrateTogether: ten processes that start at once make each step once.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := schema(t, db)
	if err := sqltest.Together(t.Context(), 10, "migrate", server(t), opts.Schema); err != nil {
		t.Fatal(err)
	}
	if n := versions(t, db, opts.Schema); n != 1 {
		t.Errorf("%d steps are noted, want 1", n)
	}
	open(t, server(t), opts)
}

// TestMigratePrint: what Print writes is what Migrate does.
func TestMigratePrint(t *testing.T) {
	t.Parallel()
	db := admin(t)
	byMigrate, byHand := migrated(t, db), schema(t, db)
	var text bytes.Buffer
	if err := postgres.Print(&text, byHand); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(text.String()); err != nil {
		t.Fatalf("what Print wrote: %v", err)
	}
	if got, want := shape(t, db, byHand.Schema), shape(t, db, byMigrate.Schema); got != want {
		t.Errorf("by hand there is\n%s\nby Migrate\n%s", got, want)
	}
	open(t, server(t), byHand)
}

// TestOpenNeverMigrates: without tables Open fails, says what to do, and makes nothing.
func TestOpenNeverMigrates(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := schema(t, db)
	_, err := postgres.Open(t.Context(), server(t), opts)
	if !errors.Is(err, postgres.ErrSchema) || !strings.Contains(err.Error(), "Migrate") {
		t.Errorf("Open without tables: %v, want ErrSchema that names Migrate", err)
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM pg_namespace WHERE nspname = $1", opts.Schema).Scan(&n); err != nil || n != 0 {
		t.Errorf("Open made the schema: %d, %v", n, err)
	}
}

// TestNewerSchema: a program goes on with a newer schema that allows it, and with no other.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	if _, err := db.Exec("INSERT INTO " + opts.Schema + ".version (version, oldest) VALUES (98, 1)"); err != nil {
		t.Fatal(err)
	}
	open(t, server(t), opts)
	if err := postgres.Migrate(t.Context(), server(t), opts); err != nil {
		t.Errorf("Migrate of a newer schema that may be used: %v", err)
	}
	if _, err := db.Exec("INSERT INTO " + opts.Schema + ".version (version, oldest) VALUES (99, 57)"); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Open":    second(postgres.Open(t.Context(), server(t), opts)),
		"Migrate": postgres.Migrate(t.Context(), server(t), opts),
	} {
		if !errors.Is(err, postgres.ErrSchema) || !strings.Contains(err.Error(), "version 57 or later") {
			t.Errorf("%s of a newer schema: %v, want ErrSchema that names version 57", name, err)
		}
	}
}

// TestOlderTables: the tables of a program from before the first release are refused with one line, which names one of them
// and says what to do, and nothing is changed.
func TestOlderTables(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := schema(t, db)
	for _, s := range []string{
		"CREATE SCHEMA SCHEMA", "CREATE TABLE SCHEMA.schema_version (version integer PRIMARY KEY, oldest integer NOT NULL)",
		"INSERT INTO SCHEMA.schema_version VALUES (4, 1)", "CREATE TABLE SCHEMA.record (id bytea PRIMARY KEY)",
	} {
		if _, err := db.Exec(strings.ReplaceAll(strings.Replace(s, "CREATE SCHEMA SCHEMA", "CREATE SCHEMA "+opts.Schema, 1), "SCHEMA.", opts.Schema+".")); err != nil {
			t.Fatal(err)
		}
	}
	before := shape(t, db, opts.Schema)
	for name, err := range map[string]error{
		"Open":    second(postgres.Open(t.Context(), server(t), opts)),
		"Migrate": postgres.Migrate(t.Context(), server(t), opts),
	} {
		if !errors.Is(err, postgres.ErrSchema) || errors.Is(err, postgres.ErrNotMigrated) {
			t.Errorf("%s: %v, want ErrSchema that Migrate does not end", name, err)
		} else if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, opts.Schema+".schema_version") || !strings.Contains(text, "another schema") {
			t.Errorf("%s: %q, want one line that names the table and the way on", name, text)
		}
	}
	if after := shape(t, db, opts.Schema); after != before {
		t.Errorf("there is\n%s\nwant\n%s", after, before)
	}
}

// TestFirstTables: the tables of version 1, from before the first release, are refused with one line, and stay as they are.
func TestFirstTables(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	if _, err := db.Exec("UPDATE " + opts.Schema + ".version SET version = 1, oldest = 1"); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Open":    second(postgres.Open(t.Context(), server(t), opts)),
		"Migrate": postgres.Migrate(t.Context(), server(t), opts),
	} {
		if !errors.Is(err, postgres.ErrSchema) || errors.Is(err, postgres.ErrNotMigrated) {
			t.Errorf("%s: %v, want ErrSchema that Migrate does not end", name, err)
		} else if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, opts.Schema+".version") || !strings.Contains(text, "another schema") {
			t.Errorf("%s: %q, want one line that names the table and the way on", name, text)
		}
	}
	if n := versions(t, db, opts.Schema); n != 1 {
		t.Errorf("%d steps are noted, want 1", n)
	}
}

func second[T any](_ T, err error) error { return err }

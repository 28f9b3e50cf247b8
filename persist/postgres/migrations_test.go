package postgres_test

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// bySQL runs a text of several statements as it is, in the simple protocol.
func bySQL(t *testing.T, text string) {
	t.Helper()
	config, err := pgx.ParseConfig(server(t))
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// TestMigrations: the files, run as plain SQL one after the other on an empty schema, make the tables of Migrate, each notes its own version,
// and the journal opens and works. A later step that says so is refused by this program with one line.
func TestMigrations(t *testing.T) {
	t.Parallel()
	db := admin(t)
	byMigrate, opts := migrated(t, db), schema(t, db)
	files := opts.Migrations()
	names, err := fs.Glob(files, "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	if err := fstest.TestFS(files, names...); err != nil {
		t.Error(err)
	}
	bySQL(t, "CREATE SCHEMA "+opts.Schema)
	version := 0
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		bySQL(t, string(text))
		number, _, _ := strings.Cut(name, "_")
		if err := db.QueryRow("SELECT max(version) FROM " + opts.Schema + ".version").Scan(&version); err != nil || strconv.Itoa(version) != strings.TrimLeft(number, "0") {
			t.Errorf("%s notes version %d, %v", name, version, err)
		}
	}
	if got, want := shape(t, db, opts.Schema), shape(t, db, byMigrate.Schema); got != want {
		t.Errorf("the files make\n%s\nMigrate makes\n%s", got, want)
	}
	if err := postgres.Migrate(t.Context(), server(t), opts); err != nil || versions(t, db, opts.Schema) != len(names) {
		t.Errorf("Migrate behind the files: %v, %d versions", err, versions(t, db, opts.Schema))
	}
	if _, created, err := open(t, server(t), opts).Begin(t.Context(), sqltest.Record("a", "k")); err != nil || !created {
		t.Errorf("Begin: created %t, %v", created, err)
	}
	next := strconv.Itoa(version + 1)
	bySQL(t, "ALTER TABLE "+opts.Schema+".record ADD COLUMN later bytea; INSERT INTO "+opts.Schema+".version (version, oldest) VALUES ("+next+", "+next+")")
	_, err = postgres.Open(t.Context(), server(t), opts)
	oneLine(t, "Open of the next version", err, "version "+next+" or later")
	if !errors.Is(err, postgres.ErrSchema) {
		t.Errorf("%v, want ErrSchema", err)
	}
	bad := postgres.Options{Schema: "Bad"}.Migrations()
	if _, err := fs.ReadFile(bad, names[0]); !errors.Is(err, postgres.ErrOptions) {
		t.Errorf("a wrong schema: %v, want ErrOptions", err)
	}
}

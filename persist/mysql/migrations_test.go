package mysql_test

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// TestMigrations: the files, run as plain SQL one after the other on an empty database, make the tables of Migrate, each notes its own version,
// and the journal opens and works. A later step that says so is refused by this program with one line. No statement has a semicolon inside,
// where a client that does not know the language would cut it.
func TestMigrations(t *testing.T) {
	t.Parallel()
	root := pool(t, "")
	opts := database(t, root)
	c := config(t, opts.Database)
	c.MultiStatements = true
	db := connected(t, c)
	files := journal.Options{}.Migrations() // for the database of the connection
	names, err := fs.Glob(files, "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	if err := fstest.TestFS(files, names...); err != nil {
		t.Error(err)
	}
	version := 0
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(string(text)); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			code, _, _ := strings.Cut(line, "--")
			if code = strings.TrimSpace(code); strings.Contains(strings.TrimSuffix(code, ";"), ";") {
				t.Errorf("%s: a semicolon inside of %q", name, line)
			}
		}
		number, _, _ := strings.Cut(name, "_")
		if err := db.QueryRow("SELECT max(version) FROM oncehttp_version").Scan(&version); err != nil || strconv.Itoa(version) != strings.TrimLeft(number, "0") {
			t.Errorf("%s notes version %d, %v", name, version, err)
		}
	}
	byMigrate := migrated(t, root)
	if got, want := shape(t, root, opts.Database), shape(t, root, byMigrate.Database); got != want {
		t.Errorf("the files make\n%s\nMigrate makes\n%s", got, want)
	}
	if err := journal.Migrate(t.Context(), server(t), opts); err != nil {
		t.Errorf("Migrate behind the files: %v", err)
	}
	if _, created, err := open(t, server(t), opts).Begin(t.Context(), sqltest.Record("a", "k")); err != nil || !created {
		t.Errorf("Begin: created %t, %v", created, err)
	}
	next := strconv.Itoa(version + 1)
	if _, err := db.Exec("ALTER TABLE oncehttp_record ADD COLUMN later BLOB; INSERT INTO oncehttp_version (version, oldest) VALUES (" + next + ", " + next + ")"); err != nil {
		t.Fatal(err)
	}
	_, err = journal.Open(t.Context(), server(t), opts)
	if !errors.Is(err, journal.ErrSchema) || !strings.Contains(err.Error(), "version "+next+" or later") || strings.Contains(err.Error(), "\n") {
		t.Errorf("Open of the next version: %v; want one line that is ErrSchema", err)
	}
	if _, err := fs.ReadFile(journal.Options{Database: "a b"}.Migrations(), names[0]); !errors.Is(err, journal.ErrOptions) {
		t.Errorf("a wrong database: %v, want ErrOptions", err)
	}
}

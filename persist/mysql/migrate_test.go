package mysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

func TestMain(m *testing.M) {
	sqltest.Main(m, map[string]func(context.Context, []string) error{
		"migrate": func(ctx context.Context, args []string) error {
			return journal.Migrate(ctx, args[0], journal.Options{Database: args[1]})
		},
		"order":  order,
		"fleet":  fleetWorker,
		"caller": caller, "deliverer": deliverer,
	})
}

// shape is all columns and indexes of a database, and the rows of the gate.
func shape(t *testing.T, db *sql.DB, database string) string {
	t.Helper()
	var text string
	err := db.QueryRow(`SET STATEMENT group_concat_max_len = 100000 FOR SELECT GROUP_CONCAT(line ORDER BY line SEPARATOR '\n') FROM (
		SELECT CONCAT(table_name, '.', column_name, ' ', column_type, ' ', is_nullable, ' ', COALESCE(generation_expression, '')) AS line FROM information_schema.columns WHERE table_schema = ?
		UNION ALL SELECT CONCAT(table_name, ' ', index_name, ' ', seq_in_index, ' ', column_name, ' ', non_unique) FROM information_schema.statistics WHERE table_schema = ?
		UNION ALL SELECT CONCAT('gate ', gate) FROM `+database+`.oncehttp_gate) AS lines_of_all`, database, database).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestMigrateTogether: ten processes that start at once make each step once.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	db := pool(t, "")
	opts := database(t, db)
	if err := sqltest.Together(t.Context(), 10, "migrate", server(t), opts.Database); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM " + opts.Database + ".oncehttp_version").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d steps are noted, error %v, want 1", n, err)
	}
	open(t, server(t), opts)
}

// printed are the statements that Print writes.
func printed(t *testing.T, opts journal.Options) []string {
	t.Helper()
	var text bytes.Buffer
	if err := journal.Print(&text, opts); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(text.String(), ";\n\n"), ";\n\n")
}

// TestMigrateGoesOn: a migration that was killed after any statement, the last included, is
// ended by the next one. Those statements are what Print writes.
func TestMigrateGoesOn(t *testing.T) {
	t.Parallel()
	db := pool(t, "")
	whole := migrated(t, db)
	want := shape(t, db, whole.Database)
	statements := len(printed(t, whole))
	if statements < 5 {
		t.Fatalf("Print wrote %d statements", statements)
	}
	for killed := range statements + 1 {
		t.Run(fmt.Sprintf("after %d", killed), func(t *testing.T) {
			opts := database(t, db)
			for _, s := range printed(t, opts)[:killed] {
				if _, err := db.Exec(s); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			if err := journal.Migrate(t.Context(), server(t), opts); err != nil {
				t.Fatal(err)
			}
			if got := shape(t, db, opts.Database); got != want {
				t.Errorf("there is\n%s\nwant\n%s", got, want)
			}
			open(t, server(t), opts)
		})
	}
}

// TestOpenNeverMigrates: without tables Open fails, says what to do, and makes nothing.
func TestOpenNeverMigrates(t *testing.T) {
	t.Parallel()
	db := pool(t, "")
	opts := database(t, db)
	_, err := journal.Open(t.Context(), server(t), opts)
	if !errors.Is(err, journal.ErrSchema) || !strings.Contains(err.Error(), "Migrate") {
		t.Errorf("Open without tables: %v, want ErrSchema that names Migrate", err)
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM information_schema.tables WHERE table_schema = ?", opts.Database).Scan(&n); err != nil || n != 0 {
		t.Errorf("Open made %d tables, %v", n, err)
	}
}

// TestNewerSchema: a program goes on with a newer schema that allows it, and with no other.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	db := pool(t, "")
	opts := migrated(t, db)
	if _, err := db.Exec("INSERT INTO " + opts.Database + ".oncehttp_version (version, oldest) VALUES (98, 1)"); err != nil {
		t.Fatal(err)
	}
	open(t, server(t), opts)
	if err := journal.Migrate(t.Context(), server(t), opts); err != nil {
		t.Errorf("Migrate of a newer schema that may be used: %v", err)
	}
	if _, err := db.Exec("INSERT INTO " + opts.Database + ".oncehttp_version (version, oldest) VALUES (99, 57)"); err != nil {
		t.Fatal(err)
	}
	_, err := journal.Open(t.Context(), server(t), opts)
	for name, err := range map[string]error{"Open": err, "Migrate": journal.Migrate(t.Context(), server(t), opts)} {
		if !errors.Is(err, journal.ErrSchema) || !strings.Contains(err.Error(), "version 57 or later") {
			t.Errorf("%s of a newer schema: %v, want ErrSchema that names version 57", name, err)
		}
	}
}

// TestOlderTables: the tables of a program from before the first release are refused with one line, which names one of them
// and says what to do, and nothing is changed.
func TestOlderTables(t *testing.T) {
	t.Parallel()
	db := pool(t, "")
	opts := database(t, db)
	for _, s := range []string{"oncehttp_schema (version INT PRIMARY KEY, oldest INT NOT NULL)", "oncehttp_record (id BINARY(32) PRIMARY KEY)"} {
		if _, err := db.Exec("CREATE TABLE " + opts.Database + "." + s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("INSERT INTO " + opts.Database + ".oncehttp_schema VALUES (3, 1)"); err != nil {
		t.Fatal(err)
	}
	_, opened := journal.Open(t.Context(), server(t), opts)
	for name, err := range map[string]error{"Open": opened, "Migrate": journal.Migrate(t.Context(), server(t), opts)} {
		if !errors.Is(err, journal.ErrSchema) || errors.Is(err, journal.ErrNotMigrated) {
			t.Errorf("%s: %v, want ErrSchema that Migrate does not end", name, err)
		} else if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, "oncehttp_schema") || !strings.Contains(text, "another database") {
			t.Errorf("%s: %q, want one line that names the table and the way on", name, text)
		}
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM information_schema.columns WHERE table_schema = ?", opts.Database).Scan(&n); err != nil || n != 3 {
		t.Errorf("there are %d columns, %v; want the 3 that were there", n, err)
	}
}

package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/oncehttp/oncehttp/internal/testport"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// init registers the driver of PostgreSQL under the name by which atlas opens it.
func init() { sql.Register("postgres", stdlib.GetDefaultDriver()) }

// journal is a journal of either engine.
type journal interface {
	persist.Journal
	Close() error
}

// place is the database of a shop, to which a journal is added. On PostgreSQL the shop and the journal have a schema each.
type place struct {
	db        *sql.DB // connections to the shop
	url       string  // of the shop, for atlas
	dialect   goose.Dialect
	steps     fs.FS
	record    string // table of the journal, as written in a statement
	version   string // table of the journal's versions, likewise
	binary    string // type of a column
	migrate   func(ctx context.Context) error
	open      func(ctx context.Context) (journal, error)
	errSchema error
	shape     func(t *testing.T) string // of the journal, without its own name and times
	byMigrate func(t *testing.T) string // shape of a journal made by Migrate
}

// places are the engines.
var places = map[string]func(t *testing.T) *place{"PostgreSQL": onPostgres, "MariaDB": onMariaDB}

// name returns a name for a schema or a database of one test.
func name() string { return fmt.Sprintf("migrations_%016x", rand.Uint64()) }

// connected returns connections that are closed at the end of the test.
func connected(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// own makes a schema or a database (the same on MariaDB) that is removed at the end of the test.
func own(t *testing.T, db *sql.DB, name, remove string) {
	t.Helper()
	run(t, db, "CREATE SCHEMA "+name)
	t.Cleanup(func() {
		if _, err := db.Exec("DROP SCHEMA " + name + remove); err != nil {
			t.Error(err)
		}
	})
}

// run runs a statement.
func run(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// lines returns the first column of all rows, one a line.
func lines(t *testing.T, db *sql.DB, query string, args ...any) string {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// onPostgres is a place on PostgreSQL. The schema of the journal exists, as docs/journals.md says.
func onPostgres(t *testing.T) *place {
	t.Helper()
	server := testport.Server(t, "ONCEHTTP_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")
	admin := connected(t, "pgx", server)
	opts, other, shop := postgres.Options{Schema: name(), MaxConns: 4}, postgres.Options{Schema: name()}, name()
	for _, schema := range []string{opts.Schema, other.Schema, shop} {
		own(t, admin, schema, " CASCADE")
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", shop)
	u.RawQuery = query.Encode()
	shape := func(t *testing.T, schema string) string {
		text := lines(t, admin, `SELECT line FROM (
			SELECT format('column %s.%s %s %s %s %s', table_name, ordinal_position, column_name, data_type, is_nullable, column_default) FROM information_schema.columns WHERE table_schema = $1
			UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = $1
			UNION ALL SELECT format('%s %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = $1::regnamespace
			UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = $1::regnamespace
			UNION ALL SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = $1::regnamespace
			UNION ALL SELECT format('sequence %s %s %s %s', sequencename, data_type, start_value, cache_size) FROM pg_sequences WHERE schemaname = $1
			UNION ALL SELECT format('%s %s %s', relkind, relname, reloptions) FROM pg_class WHERE relnamespace = $1::regnamespace) AS all_lines (line) ORDER BY line`, schema)
		text += "\n" + lines(t, admin, "SELECT version || ' ' || oldest FROM "+schema+".version ORDER BY version")
		return strings.ReplaceAll(text, schema, "SCHEMA")
	}
	return &place{
		db: connected(t, "pgx", u.String()), url: u.String(), dialect: goose.DialectPostgres, steps: opts.Migrations(),
		record: opts.Schema + ".record", version: opts.Schema + ".version", binary: "bytea",
		migrate:   func(ctx context.Context) error { return postgres.Migrate(ctx, server, opts) },
		open:      func(ctx context.Context) (journal, error) { return postgres.Open(ctx, server, opts) },
		errSchema: postgres.ErrSchema,
		shape:     func(t *testing.T) string { return shape(t, opts.Schema) },
		byMigrate: func(t *testing.T) string {
			if err := postgres.Migrate(t.Context(), server, other); err != nil {
				t.Fatal(err)
			}
			return shape(t, other.Schema)
		},
	}
}

// onMariaDB is a place on MariaDB. The tables of the journal lie beside those of the shop.
func onMariaDB(t *testing.T) *place {
	t.Helper()
	server := testport.Server(t, "ONCEHTTP_TEST_MYSQL", "mysql://root@127.0.0.1:3306/test")
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	c := driver.NewConfig()
	c.Net, c.Addr, c.User, c.ParseTime = "tcp", u.Host, u.User.Username(), true
	c.Passwd, _ = u.User.Password()
	admin := connected(t, "mysql", c.FormatDSN())
	opts, other := mysql.Options{Database: name(), MaxConns: 4}, mysql.Options{Database: name()}
	for _, database := range []string{opts.Database, other.Database} {
		own(t, admin, database, "")
	}
	c.DBName = opts.Database
	shop := *u
	shop.Scheme, shop.Path = "maria", "/"+opts.Database
	shape := func(t *testing.T, database string) string {
		tables := strings.Fields(lines(t, admin, "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_name LIKE 'oncehttp%' ORDER BY table_name", database))
		for i, table := range tables {
			var name string
			if err := admin.QueryRow("SHOW CREATE TABLE "+database+"."+table).Scan(&name, &tables[i]); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Join(slices.Concat(tables, []string{
			lines(t, admin, "SELECT gate FROM "+database+".oncehttp_gate ORDER BY gate"),
			lines(t, admin, "SELECT CONCAT(version, ' ', oldest) FROM "+database+".oncehttp_version ORDER BY version"),
		}), "\n")
	}
	return &place{
		db: connected(t, "mysql", c.FormatDSN()), url: shop.String(), dialect: goose.DialectMySQL, steps: mysql.Options{}.Migrations(),
		record: "oncehttp_record", version: "oncehttp_version", binary: "BLOB",
		migrate:   func(ctx context.Context) error { return mysql.Migrate(ctx, server, opts) },
		open:      func(ctx context.Context) (journal, error) { return mysql.Open(ctx, server, opts) },
		errSchema: mysql.ErrSchema,
		shape:     func(t *testing.T) string { return shape(t, opts.Database) },
		byMigrate: func(t *testing.T) string {
			if err := mysql.Migrate(t.Context(), server, other); err != nil {
				t.Fatal(err)
			}
			return shape(t, other.Database)
		},
	}
}

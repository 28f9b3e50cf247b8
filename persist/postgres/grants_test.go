package postgres_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

func TestGrants(t *testing.T) {
	t.Parallel()
	beside := admin(t)
	opts := migrated(t, beside)
	if _, err := beside.Exec("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA " + opts.Schema + " FROM PUBLIC"); err != nil {
		t.Fatal(err)
	}
	table := opts.Schema + ".record"
	insert := "INSERT INTO " + table + " SELECT * FROM " + table
	facts := []string{"UPDATE " + opts.Schema + ".fact SET value = 'plain'", "DELETE FROM " + opts.Schema + ".fact"}
	sqltest.Granted(t, sqltest.Grants{
		Is:    func(statement string) bool { return !strings.Contains(statement, "oncehttp_") }, // MariaDB's name tables so
		Role:  func(t *testing.T, statements []string) string { return asRole(t, beside, opts, statements) },
		Owner: server(t),
		Open: func(t *testing.T, url string, readOnly bool) persist.Journal {
			opts := opts
			opts.ReadOnly = readOnly
			return open(t, url, opts)
		},
		DB: func(t *testing.T, url string) *sql.DB {
			db, err := sql.Open("pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return db
		},
		Begin:    postgres.Options{Schema: opts.Schema}.BeginSQL,
		Denied:   func(err error) bool { return code(err) == "42501" },
		Records:  table,
		Numbered: func(err error) bool { return code(err) == "23514" },
		Never: map[string][]string{
			"producer": append([]string{"INSERT INTO " + opts.Schema + ".fact VALUES ('declined', '/a=b')", "UPDATE " + table + " SET state = 2", "UPDATE " + table + " SET body = NULL", "DELETE FROM " + table, "TRUNCATE " + table}, facts...),
			"worker":   append([]string{insert, "TRUNCATE " + table}, facts...),
			"reader": {insert, "UPDATE " + table + " SET state = 2", "DELETE FROM " + table, "SELECT * FROM " + opts.Schema + ".fact",
				"SELECT nextval('" + opts.Schema + ".record_seq')"},
			"": {"INSERT INTO " + opts.Schema + ".version (version, oldest) VALUES (99, 99)", "DROP TABLE " + table, "CREATE TABLE " + opts.Schema + ".other (a int)",
				"ALTER TABLE " + table + " DISABLE TRIGGER record_sealed"},
		},
	})
}

// asRole makes a role with the rights of the statements, and no other, and returns the URL to connect as this role.
func asRole(t *testing.T, beside *sql.DB, opts postgres.Options, statements []string) string {
	t.Helper()
	name := sqltest.Name()
	run := func(s string) {
		t.Helper()
		if _, err := beside.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	run("CREATE ROLE " + name + " LOGIN")
	t.Cleanup(func() { run("DROP OWNED BY " + name); run("DROP ROLE " + name) })
	for _, s := range statements {
		run(strings.NewReplacer("oncehttp.", opts.Schema+".", "SCHEMA oncehttp", "SCHEMA "+opts.Schema).Replace(s) + " TO " + name)
	}
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(name)
	return u.String()
}

package mysql_test

import (
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// TestGrants: only a producer may change the records that stand, see docs/journals.md.
func TestGrants(t *testing.T) {
	t.Parallel()
	beside := pool(t, "")
	opts := migrated(t, beside)
	tables := opts.Database + ".oncehttp_"
	insert := "INSERT INTO " + tables + "record SELECT * FROM " + tables + "record"
	use := "INSERT INTO " + tables + "used SELECT * FROM " + tables + "used"
	facts := []string{"UPDATE " + tables + "fact SET value = 'plain'", "DELETE FROM " + tables + "fact"}
	sqltest.Granted(t, sqltest.Grants{
		Is:    func(statement string) bool { return strings.Contains(statement, " shop.oncehttp_") },
		Role:  func(t *testing.T, statements []string) string { return asUser(t, beside, opts, statements) },
		Owner: server(t),
		Open: func(t *testing.T, url string, readOnly bool) persist.Journal {
			opts := opts
			opts.ReadOnly = readOnly
			return open(t, url, opts)
		},
		DB:    asDB,
		Begin: journal.Options{Database: opts.Database}.Begin,
		Denied: func(err error) bool {
			var denied *mysql.MySQLError
			return errors.As(err, &denied) && (denied.Number == 1142 || denied.Number == 1143 || denied.Number == 1044)
		},
		Records: tables + "record",
		Numbered: func(err error) bool {
			var refused *mysql.MySQLError
			return errors.As(err, &refused) && refused.Number == 4025 && strings.Contains(refused.Message, "record_numbered")
		},
		Never: map[string][]string{
			"producer": append([]string{"INSERT INTO " + tables + "fact VALUES ('declined', '/a=b')", "DELETE FROM " + tables + "record", "TRUNCATE " + tables + "record", use, "DELETE FROM " + tables + "used"}, facts...),
			"worker":   append([]string{insert, "TRUNCATE " + tables + "record", "UPDATE " + tables + "used SET state = 4"}, facts...),
			"reader":   {insert, use, "UPDATE " + tables + "record SET state = 2", "DELETE FROM " + tables + "record", "SELECT * FROM " + tables + "fact", "SELECT NEXTVAL(" + tables + "seq)"},
			"": {"INSERT INTO " + tables + "version (version, oldest) VALUES (99, 99)", "DROP TABLE " + tables + "record", "CREATE TABLE " + tables + "other (a int)",
				"ALTER TABLE " + tables + "record DROP COLUMN body"},
		},
	})
}

// asUser makes a user with the rights of the statements, and no other, and returns the URL to connect as this user.
func asUser(t *testing.T, beside *sql.DB, opts journal.Options, statements []string) string {
	t.Helper()
	name := sqltest.Name()
	at := name + "@'127.0.0.1'"
	run := func(s string) {
		t.Helper()
		if _, err := beside.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	run("CREATE USER " + at + " IDENTIFIED BY 'hunter2'")
	t.Cleanup(func() { run("DROP USER " + at) })
	for _, s := range statements {
		run(strings.ReplaceAll(s, " shop.", " "+opts.Database+".") + " TO " + at)
	}
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, "hunter2")
	return u.String()
}

// asDB opens a DB by a URL.
func asDB(t *testing.T, at string) *sql.DB {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr = u.User.Username(), "tcp", u.Host
	c.Passwd, _ = u.User.Password()
	db, err := sql.Open("mysql", c.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

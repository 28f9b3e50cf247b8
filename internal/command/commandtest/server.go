package commandtest

import (
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/testport"
	"github.com/oncehttp/oncehttp/persist/memory"
	sqlmysql "github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// server is a database server for tests, and the means to make a journal of the test's own there.
type server struct {
	variable, standard string
	Database           func(t *testing.T, at *url.URL) string // the URL of an empty journal, removed with the test
}

// Servers returns the kinds of database servers on which journals are tested, by name: for each the environment variable with its address, the address without that
// variable, and the function that makes a place for a journal of one test.
func Servers() map[string]server {
	return map[string]server{
		"postgres": {"ONCEHTTP_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres", postgresSchema},
		"mysql":    {"ONCEHTTP_TEST_MYSQL", "mysql://root@127.0.0.1:3306/test", MySQLDatabase},
	}
}

// URL returns the address of the server: that of the environment variable for it, else the standard one. Where no server listens there, the test is skipped.
func (s server) URL(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(testport.Server(t, s.variable, s.standard))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// OnServers runs the test with a migrated journal of its own on each server.
func OnServers(t *testing.T, test func(t *testing.T, journal string)) {
	for name, s := range Servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := s.Database(t, s.URL(t))
			Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
			test(t, journal)
		})
	}
}

// OwnName returns a random name for a schema or a database of one test.
func OwnName() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return "oncehttp_test_" + hex.EncodeToString(b)
}

// SQLDB opens a pool of connections to the database at source. The end of the test closes it.
func SQLDB(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// postgresSchema returns the URL of at with a schema of the test's own in place of its parameters. The journal makes the schema, and the end of the test drops it.
func postgresSchema(t *testing.T, at *url.URL) string {
	t.Helper()
	db, name, own := SQLDB(t, "pgx", at.String()), OwnName(), *at
	t.Cleanup(func() { MustExec(t, db, "DROP SCHEMA IF EXISTS "+name+" CASCADE") })
	own.RawQuery = url.Values{"schema": {name}}.Encode()
	return own.String()
}

// MySQLDatabase makes a database of the test's own on the server at, and returns its URL. The end of the test drops it.
func MySQLDatabase(t *testing.T, at *url.URL) string {
	t.Helper()
	db, name, own := MySQLDB(t, at, ""), OwnName(), *at
	MustExec(t, db, "CREATE DATABASE "+name)
	t.Cleanup(func() { MustExec(t, db, "DROP DATABASE "+name) })
	own.Path = "/" + name
	return own.String()
}

// MySQLDB opens a database on the MySQL server at the URL at. An empty database selects none. The end of the test closes it.
func MySQLDB(t *testing.T, at *url.URL, database string) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.DBName = "tcp", at.Host, at.User.Username(), database
	c.Passwd, _ = at.User.Password()
	return SQLDB(t, "mysql", c.FormatDSN())
}

// MustExec runs a statement. A failure of it is one of the test.
func MustExec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Error(err)
	}
}

// Records returns a pool of connections to the database of a journal on a server, and the name of the table of its records there.
func Records(t *testing.T, journal string) (*sql.DB, string) {
	t.Helper()
	u, err := url.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	if u.Scheme == "mysql" {
		return MySQLDB(t, u, strings.TrimPrefix(u.Path, "/")), "oncehttp_record"
	}
	schema := u.Query().Get("schema")
	u.RawQuery = ""
	return SQLDB(t, "pgx", u.String()), schema + ".record"
}

// BeginOpen begins the operation of a POST in a transaction, as a program beside the command does, and leaves the transaction open: until its end, which the test
// makes, nobody else sees the record.
func BeginOpen(t *testing.T, journal, target, key string) *sql.Tx {
	t.Helper()
	db, table := Records(t, journal)
	client, err := oncehttp.New(oncehttp.Config{Journal: memory.New()}) // Prepare writes nothing
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, target, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := client.Prepare(req, oncehttp.Key(key))
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	begin := sqlmysql.Options{}.Begin
	if schema, _, found := strings.Cut(table, "."); found { // only the table of PostgreSQL is named with a schema
		begin = postgres.Options{Schema: schema}.BeginSQL
	}
	if _, created, err := begin(t.Context(), tx, rec); err != nil || !created {
		t.Fatalf("created %t, error %v", created, err)
	}
	return tx
}

// RoleWith returns the URL of a new role with these rights on the journal of MariaDB, and a function for taking rights away from it.
func RoleWith(t *testing.T, journal, rights string) (as string, revoke func(rights string)) {
	t.Helper()
	u, err := url.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	db, _ := Records(t, journal)
	role, on := OwnName(), " ON oncehttp_record " // those of a whole database last as long as a connection
	at := "'" + role + "'@'127.0.0.1'"
	MustExec(t, db, "CREATE USER "+at)
	t.Cleanup(func() { MustExec(t, db, "DROP USER "+at) })
	MustExec(t, db, "GRANT "+rights+on+"TO "+at)
	for _, table := range []string{"oncehttp_version", "oncehttp_gate", "oncehttp_seq", "oncehttp_fact", "oncehttp_used", "oncehttp_used_until"} {
		MustExec(t, db, "GRANT SELECT, INSERT, UPDATE ON "+table+" TO "+at)
	}
	u.User = url.User(role)
	return u.String(), func(rights string) { MustExec(t, db, "REVOKE "+rights+on+"FROM "+at) }
}

// OnMySQL returns the URL of a new, empty journal on MariaDB.
func OnMySQL(t *testing.T) string {
	t.Helper()
	s := Servers()["mysql"]
	journal := s.Database(t, s.URL(t))
	Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
	return journal
}

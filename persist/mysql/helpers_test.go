package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/internal/testport"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// server is the URL of the MariaDB that the tests use.
func server(t testing.TB) string {
	t.Helper()
	return testport.Server(t, "ONCEHTTP_TEST_MYSQL", "mysql://root@127.0.0.1:3306/test")
}

// config is how the driver connects to a database of the server.
func config(t testing.TB, database string) *mysql.Config {
	t.Helper()
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.DBName = "tcp", u.Host, u.User.Username(), database
	c.Passwd, _ = u.User.Password()
	return c
}

// pool connects to a database of the server, beside the journals.
func pool(t testing.TB, database string) *sql.DB {
	t.Helper()
	return connected(t, config(t, database))
}

// connected is a pool with this configuration.
func connected(t testing.TB, c *mysql.Config) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// database makes a database of the test's own, which is removed in the end.
func database(t testing.TB, db *sql.DB) journal.Options {
	t.Helper()
	opts := journal.Options{Database: sqltest.Name(), MaxConns: 4, CallTimeout: time.Minute}
	if _, err := db.Exec("CREATE DATABASE " + opts.Database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("DROP DATABASE " + opts.Database); err != nil {
			t.Error(err)
		}
	})
	return opts
}

// migrated is database with the tables of a journal.
func migrated(t testing.TB, db *sql.DB) journal.Options {
	t.Helper()
	opts := database(t, db)
	if err := journal.Migrate(t.Context(), server(t), opts); err != nil {
		t.Fatal(err)
	}
	return opts
}

// open opens a journal that is closed in the end.
func open(t testing.TB, url string, opts journal.Options) *journal.Journal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	j, err := journal.Open(ctx, url, opts)
	for ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) { // the short CallTimeout of a test, on a busy machine
		j, err = journal.Open(ctx, url, opts)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

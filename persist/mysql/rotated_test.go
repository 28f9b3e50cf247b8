package mysql_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// TestRotated rotates the password of the journal's user while a client works on a DB of the program's own, whose connector asks for the
// current password before each connection.
func TestRotated(t *testing.T) {
	t.Parallel()
	beside := pool(t, "")
	opts := migrated(t, beside)
	opts.MaxConns = 0
	user := sqltest.Name()
	run := func(format string, args ...any) {
		t.Helper()
		if _, err := beside.Exec(fmt.Sprintf(format, args...)); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
	}
	run("CREATE USER %s IDENTIFIED BY 'first'", user)
	t.Cleanup(func() { run("DROP USER %s", user) })
	run("GRANT SELECT, INSERT, UPDATE, DELETE ON %s.* TO %s", opts.Database, user)
	var password atomic.Value
	rotate := func(n int) {
		next := fmt.Sprint("password ", n)
		run("ALTER USER %s IDENTIFIED BY '%s'", user, next)
		password.Store(next)
		run("KILL USER %s", user)
	}
	rotate(-1)
	c := config(t, opts.Database)
	c.User, c.Passwd = user, "stale"
	if err := c.Apply(mysql.BeforeConnect(func(_ context.Context, c *mysql.Config) error {
		c.Passwd = password.Load().(string)
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	db := connected(t, c)
	db.SetMaxOpenConns(6)
	db.SetMaxIdleConns(6)
	sqltest.Rotated(t, openDB(t, db, opts), rotate)
}

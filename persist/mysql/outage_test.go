package mysql_test

import (
	"database/sql"
	"net/url"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// engine is a database of the test's own for what both engines are tested with, and a user
// with a password.
func engine(t *testing.T) sqltest.Engine {
	t.Helper()
	return engineOf(t)
}

// engineOf is engine, also for a benchmark.
func engineOf(t testing.TB) sqltest.Engine {
	t.Helper()
	root := pool(t, "")
	opts := migrated(t, root)
	user := sqltest.Name()
	for _, s := range []string{
		"CREATE USER " + user + "@'127.0.0.1' IDENTIFIED BY 'hunter2'",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON " + opts.Database + ".* TO " + user + "@'127.0.0.1'",
	} {
		if _, err := root.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := root.Exec("DROP USER " + user + "@'127.0.0.1'"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	return sqltest.Engine{
		Address: u.Host, DB: pool(t, opts.Database), Records: "oncehttp_record",
		Open: func(t testing.TB, address string, limit time.Duration) persist.Journal {
			through, o := *u, opts
			through.Host, through.User = address, url.UserPassword(user, "hunter2")
			o.CallTimeout, o.LockWait = limit, time.Second
			return open(t, through.String(), o)
		},
		Reader: func(t testing.TB) persist.Journal {
			o := opts
			o.ReadOnly = true
			return open(t, server(t), o)
		},
		Begin:         opts.Begin,
		MarkDelivered: opts.MarkDelivered,
	}
}

func TestOutages(t *testing.T) {
	t.Parallel()
	sqltest.Outages(t, engine)
}

func TestLostCommit(t *testing.T) {
	t.Parallel()
	e := engine(t)
	sqltest.LostCommit(t, e, func(t testing.TB, address string) *sql.DB {
		var name string
		if err := e.DB.QueryRowContext(t.Context(), "SELECT DATABASE()").Scan(&name); err != nil {
			t.Fatal(err)
		}
		c := config(t, name)
		c.Addr, c.ReadTimeout, c.WriteTimeout = address, time.Second, time.Second // its commit looks at no context
		return connected(t, c)
	})
}

func TestDown(t *testing.T) {
	t.Parallel()
	sqltest.Down(t, engine(t))
}

func TestDoDown(t *testing.T) {
	t.Parallel()
	sqltest.DoDown(t, engine(t))
}

func TestCloseLost(t *testing.T) {
	t.Parallel()
	sqltest.CloseLost(t, engine(t))
}

func TestLate(t *testing.T) {
	t.Parallel()
	sqltest.Late(t, engine(t))
}

func TestLateDown(t *testing.T) {
	t.Parallel()
	sqltest.LateDown(t, engine)
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	sqltest.Numbers(t, engine(t))
}

func TestGathered(t *testing.T) {
	t.Parallel()
	sqltest.Gathered(t, engine(t))
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	sqltest.Damaged(t, engine(t))
}

func TestGatheredOutages(t *testing.T) {
	t.Parallel()
	sqltest.GatheredOutages(t, engine)
}

func TestRenewLocked(t *testing.T) {
	t.Parallel()
	sqltest.Locked(t, engine(t))
}

func TestRenewLockedShortly(t *testing.T) {
	t.Parallel()
	sqltest.LockedShortly(t, engine(t))
}

func TestReader(t *testing.T) {
	t.Parallel()
	sqltest.Reader(t, engine(t))
}

func TestUnnumbered(t *testing.T) {
	t.Parallel()
	sqltest.Unnumbered(t, engine(t))
}

func TestOpenTransaction(t *testing.T) {
	t.Parallel()
	sqltest.OpenTransaction(t, engine(t))
}

func TestMisnumbered(t *testing.T) {
	t.Parallel()
	sqltest.Misnumbered(t, engine(t))
}

func TestRenumbered(t *testing.T) {
	t.Parallel()
	sqltest.Renumbered(t, engine(t))
}

func TestLockedRows(t *testing.T) {
	t.Parallel()
	sqltest.LockedRows(t, engine(t))
}

func TestOneClient(t *testing.T) {
	t.Parallel()
	sqltest.OneClient(t, engine(t))
}

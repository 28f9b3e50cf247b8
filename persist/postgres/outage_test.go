package postgres_test

import (
	"database/sql"
	"net/url"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// engine is a schema of the test's own for what both engines are tested with.
func engine(t *testing.T) sqltest.Engine {
	t.Helper()
	return engineOf(t)
}

// engineOf is engine, also for a benchmark.
func engineOf(t testing.TB) sqltest.Engine {
	t.Helper()
	db := admin(t)
	opts := migrated(t, db)
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	return sqltest.Engine{
		Address: u.Host, DB: db, Records: opts.Schema + ".record",
		Open: func(t testing.TB, address string, limit time.Duration) persist.Journal {
			through, o := *u, opts
			through.Host, through.User = address, url.UserPassword(u.User.Username(), "hunter2")
			o.CallTimeout, o.LockWait = limit, min(time.Second, limit/4)
			return open(t, through.String(), o)
		},
		Reader: func(t testing.TB) persist.Journal {
			o := opts
			o.ReadOnly = true
			return open(t, server(t), o)
		},
		Begin: opts.BeginSQL, MarkDelivered: opts.MarkDeliveredSQL,
	}
}

func TestOutages(t *testing.T) {
	t.Parallel()
	sqltest.Outages(t, engine)
}

func TestLostCommit(t *testing.T) {
	t.Parallel()
	sqltest.LostCommit(t, engine(t), func(t testing.TB, address string) *sql.DB {
		through, err := url.Parse(server(t))
		if err != nil {
			t.Fatal(err)
		}
		through.Host = address
		settings := through.Query()
		settings.Set("idle_in_transaction_session_timeout", "2000") // ms; or else what a cut connection has locked stays so for 15 s
		through.RawQuery = settings.Encode()
		db, err := sql.Open("pgx", through.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
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

func TestLateUncertain(t *testing.T) {
	t.Parallel()
	sqltest.LateUncertain(t, engine(t))
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

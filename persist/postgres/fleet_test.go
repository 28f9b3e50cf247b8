package postgres_test

import (
	"context"
	"database/sql"
	"flag"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

var fleetOrders = flag.Int("fleet", 0, "orders of the fleet test, on a server of its own, which crashes once; 0: some on the shared one")

// fleetWorker is the role of a process that runs the journal: see sqltest.Work.
func fleetWorker(ctx context.Context, args []string) error { return sqltest.Work(ctx, opener(args)) }

// caller is the role of a process that calls Do: see sqltest.Call.
func caller(ctx context.Context, args []string) error {
	return sqltest.Call(ctx, args[0], args[1], opener(args[2:]))
}

// opener opens the journal of a fleet: args are its Worker.
func opener(args []string) func(context.Context) (persist.Journal, error) {
	return func(ctx context.Context) (persist.Journal, error) {
		return postgres.Open(ctx, args[0], postgres.Options{Schema: args[1], MaxConns: 4})
	}
}

// fleet is a fleet on a schema of its own.
func fleet(t *testing.T) sqltest.Fleet {
	e := engine(t)
	return sqltest.Fleet{Engine: e, Journal: e.Open(t, e.Address, 9*time.Second), Worker: []string{server(t), strings.TrimSuffix(e.Records, ".record")}, Orders: testrun.N(100, 300), Rounds: 10, Seed: 1}
}

func TestFleet(t *testing.T) {
	if *fleetOrders == 0 {
		t.Parallel()
		fleet(t).Test(t)
		return
	}
	own := ownServer(t)
	t.Setenv("ONCEHTTP_TEST_POSTGRES", "postgres://postgres@"+own.Address+"/postgres")
	f := fleet(t)
	f.Orders, f.Rounds, f.Restart = *fleetOrders, max(10, *fleetOrders/50), own.Restart
	f.Test(t)
}

func TestFleetCalm(t *testing.T) {
	t.Parallel()
	f := fleet(t)
	f.Calm = true
	if *fleetOrders > 0 {
		f.Orders = *fleetOrders
	}
	f.Test(t)
}

func TestKilledCallers(t *testing.T) {
	t.Parallel()
	sqltest.KilledCallers(t, fleet(t))
}

func TestFrozen(t *testing.T) {
	t.Parallel()
	f := fleet(t)
	sqltest.Frozen(t, f.Engine, f.Worker)
}

// ownServer starts a PostgreSQL of the test's own.
func ownServer(t testing.TB) *sqltest.OwnServer {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	initdb, err := exec.LookPath("initdb")
	if len(found) > 0 {
		initdb, err = slices.Max(found), nil
	}
	if err != nil {
		sqltest.Missing(t, err)
	}
	return sqltest.StartOwn(t, func(dir, port string) sqltest.OwnCommands {
		db, err := sql.Open("pgx", "postgres://postgres@127.0.0.1:"+port+"/postgres")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return sqltest.OwnCommands{
			User: "postgres", Crash: syscall.SIGQUIT, Stop: syscall.SIGINT, Ready: db.PingContext,
			Install: []string{initdb, "-D", dir, "-A", "trust", "-U", "postgres", "--no-sync"},
			Serve: []string{
				filepath.Join(filepath.Dir(initdb), "postgres"), "-D", dir, "-p", port,
				"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + dir,
			},
		}
	})
}

package mysql_test

import (
	"context"
	"database/sql"
	"flag"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
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
		return journal.Open(ctx, args[0], journal.Options{Database: args[1], MaxConns: 4})
	}
}

// fleet is a fleet on a database of its own.
func fleet(t *testing.T) sqltest.Fleet {
	e := engine(t)
	var name string
	if err := e.DB.QueryRow("SELECT DATABASE()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	return sqltest.Fleet{Engine: e, Journal: e.Open(t, e.Address, 9*time.Second), Worker: []string{server(t), name}, Orders: testrun.N(100, 300), Rounds: 10, Seed: 1}
}

func TestFleet(t *testing.T) {
	if *fleetOrders == 0 {
		t.Parallel()
		fleet(t).Test(t)
		return
	}
	own := ownServer(t)
	t.Setenv("ONCEHTTP_TEST_MYSQL", "mysql://root@"+own.Address+"/test")
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

// ownServer starts a MariaDB of the test's own, with these options more.
func ownServer(t *testing.T, options ...string) *sqltest.OwnServer {
	install, err := exec.LookPath("mariadb-install-db")
	if err != nil {
		sqltest.Missing(t, err)
	}
	server, err := exec.LookPath("mariadbd")
	if err != nil {
		sqltest.Missing(t, err)
	}
	return sqltest.StartOwn(t, func(dir, port string) sqltest.OwnCommands {
		config := mysql.NewConfig()
		config.Net, config.Addr, config.User, config.DBName = "tcp", "127.0.0.1:"+port, "root", "test"
		connector, err := mysql.NewConnector(config)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		t.Cleanup(func() { _ = db.Close() })
		tmp := "--tmpdir=" + filepath.Dir(dir) // at its start a server removes the temporary tables of others there
		return sqltest.OwnCommands{
			User: "mysql", Crash: syscall.SIGKILL, Stop: syscall.SIGTERM, Ready: db.PingContext,
			Install: []string{install, "--no-defaults", "--datadir=" + dir, tmp, "--auth-root-authentication-method=normal"},
			Serve: append([]string{
				server, "--no-defaults", "--datadir=" + dir, tmp, "--bind-address=127.0.0.1", "--port=" + port,
				"--socket=" + dir + "/socket", "--pid-file=" + dir + "/pid",
			}, options...),
		}
	})
}

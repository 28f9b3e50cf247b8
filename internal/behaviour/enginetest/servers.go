package enginetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sqldriver "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/oncehttp/oncehttp/internal/testport"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// callTimeout bounds a call of a journal on a server. It is long, for machines under load.
const callTimeout = time.Minute

// onPostgres makes a journal in a schema of its own, and returns a function to open it. The schema ends with the test.
func onPostgres(t *testing.T) (open func() persist.Journal) {
	t.Helper()
	at := testport.Server(t, "ONCEHTTP_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")
	opts := postgres.Options{Schema: ownName(), MaxConns: 4, CallTimeout: callTimeout}
	db, err := sql.Open("pgx", at)
	if err == nil {
		endWith(t, db, "DROP SCHEMA IF EXISTS "+opts.Schema+" CASCADE")
		err = postgres.Migrate(t.Context(), at, opts)
	}
	if err != nil {
		t.Fatal(err)
	}
	return opener(t, func(ctx context.Context) (*postgres.Journal, error) { return postgres.Open(ctx, at, opts) })
}

// onMySQL makes a journal in a database of its own on MariaDB, and returns a function to open it. The database ends with the test.
func onMySQL(t *testing.T) (open func() persist.Journal) {
	t.Helper()
	at := testport.Server(t, "ONCEHTTP_TEST_MYSQL", "mysql://root@127.0.0.1:3306/test")
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	c := sqldriver.NewConfig()
	c.Net, c.Addr, c.User = "tcp", u.Host, u.User.Username()
	c.Passwd, _ = u.User.Password()
	opts := mysql.Options{Database: ownName(), MaxConns: 4, CallTimeout: callTimeout}
	db, err := sql.Open("mysql", c.FormatDSN())
	if err == nil {
		_, err = db.Exec("CREATE DATABASE " + opts.Database)
	}
	if err == nil {
		endWith(t, db, "DROP DATABASE "+opts.Database)
		err = mysql.Migrate(t.Context(), at, opts)
	}
	if err != nil {
		t.Fatal(err)
	}
	return opener(t, func(ctx context.Context) (*mysql.Journal, error) { return mysql.Open(ctx, at, opts) })
}

// onRedis makes a journal under a prefix of its own, and returns a function to open it: on the server of ONCEHTTP_TEST_REDIS, or, if that is empty, on
// a redis-server of this test alone.
func onRedis(t *testing.T) (open func() persist.Journal) {
	t.Helper()
	at, opts := os.Getenv("ONCEHTTP_TEST_REDIS"), redis.Options{Prefix: ownName(), MaxConns: 8, CallTimeout: callTimeout, KeepKey: redis.KeepForever}
	if at == "" {
		at = "redis://" + startRedis(t) + "/0"
	}
	return opener(t, func(ctx context.Context) (*redis.Journal, error) { return redis.Open(ctx, at, opts) })
}

// startRedis starts a redis-server, and returns its address once it answers. The server keeps all acknowledged writes, and ends with the test. Its
// folder is in memory if the system has that. If the program is not installed, the test is skipped; with ONCEHTTP_REQUIRE_SERVICES=1 it fails.
func startRedis(t *testing.T) (address string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil && os.Getenv("ONCEHTTP_REQUIRE_SERVICES") == "1" {
		t.Fatalf("%v, and ONCEHTTP_REQUIRE_SERVICES is 1", err)
	} else if err != nil {
		t.Skipf("nothing was tested: %v", err)
	}
	dir, port := testrun.Dir(t), testport.Take(t)
	cmd := exec.Command(path, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	address = net.JoinHostPort("127.0.0.1", port)
	for end := time.Now().Add(20 * time.Second); ; <-time.After(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		if time.Now().After(end) {
			t.Fatalf("redis-server does not answer: %v", err)
		}
	}
}

// opener returns a function to open a journal on a server once more, as another process would. Each opened journal is closed with the test.
func opener[J interface {
	persist.Journal
	Close() error
}](t *testing.T, open func(context.Context) (J, error)) func() persist.Journal {
	return func() persist.Journal {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		j, err := open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}
}

// endWith runs a statement with the end of the test, and closes the pool.
func endWith(t *testing.T, db *sql.DB, statement string) {
	t.Cleanup(func() {
		if _, err := db.Exec(statement); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	})
}

// ownName returns a name of this test alone.
func ownName() string { return "oncehttp_test_" + strings.ToLower(rand.Text()) }

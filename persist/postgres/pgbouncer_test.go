package postgres_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/persisttest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// bouncer is bouncerIn in transaction mode.
func bouncer(t *testing.T) string {
	t.Helper()
	return bouncerIn(t, "transaction")
}

// bouncerIn starts a PgBouncer of the test's own in a mode, whose five connections
// all clients share, and returns the URL of the journal through it.
func bouncerIn(t *testing.T, mode string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if os.Getenv("ONCEHTTP_REQUIRE_SERVICES") == "1" {
			t.Fatalf("ONCEHTTP_REQUIRE_SERVICES is 1, and there is no pgbouncer: %v", err)
		}
		t.Skip("nothing was tested: pgbouncer is not installed")
	}
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	secret := ""
	if password, _ := u.User.Password(); password != "" {
		secret = " password=" + password
	}
	config := fmt.Sprintf("[databases]\npostgres = host=%s port=%s dbname=%s user=%s%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nauth_type = any\npool_mode = %s\ndefault_pool_size = 5\nmax_client_conn = 300\nunix_socket_dir =\nlogfile = /dev/null\n",
		u.Hostname(), u.Port(), u.Path[1:], u.User.Username(), secret, port, mode)
	dir, err := os.MkdirTemp("", "pgbouncer") // t.TempDir is for its owner alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-q", file}
	if os.Getuid() == 0 { // which it refuses to run as
		args = append([]string{"-u", "nobody"}, args...)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	through := *u
	through.Host, through.Path = fmt.Sprintf("127.0.0.1:%d", port), "/postgres"
	for start := time.Now(); time.Since(start) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", through.Host); err == nil {
			_ = conn.Close()
			return through.String()
		}
	}
	t.Fatal("pgbouncer does not listen")
	return ""
}

// TestPgBouncer runs the whole suite through PgBouncer in transaction mode, the making of the
// tables included. Only the connection that listens goes to the server itself.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	url, db := bouncer(t), admin(t)
	persisttest.Run(t, persisttest.Harness{
		Durable: true,
		New: func(string) (func() (persist.Journal, error), error) {
			opts := schema(t, db)
			opts.ListenURL = server(t)
			if err := postgres.Migrate(context.Background(), url, opts); err != nil {
				return nil, err
			}
			return func() (persist.Journal, error) {
				j, err := postgres.Open(context.Background(), url, opts)
				if err != nil {
					return nil, err
				}
				return j, nil
			}, nil
		},
	})
}

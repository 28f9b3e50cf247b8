package redis_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/internal/testport"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// server is a redis-server of a test's own.
type server struct {
	address string
	cmd     *exec.Cmd
	args    []string
}

// program is the server's program. Without it a test is skipped and says so, or fails where
// ONCEHTTP_REQUIRE_SERVICES is 1.
func program(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil && os.Getenv("ONCEHTTP_REQUIRE_SERVICES") == "1" {
		t.Fatal("there is no redis-server, and ONCEHTTP_REQUIRE_SERVICES is 1")
	} else if err != nil {
		t.Skip("nothing was tested: there is no redis-server; install it, or set ONCEHTTP_TEST_REDIS")
	}
	return path
}

// durable are the settings that a journal wants.
func durable() []string {
	return []string{"--appendonly", "yes", "--appendfsync", "always"}
}

// start starts a server with a folder and a port of its own, which is stopped in the end. The
// password is hunter2.
func start(t testing.TB, settings ...string) *server {
	t.Helper()
	address, port := freePort(t)
	s := &server{address: address}
	s.args = append([]string{
		program(t), "--bind", "127.0.0.1", "--port", port, "--dir", folder(t), "--save", "", "--requirepass", "hunter2", "--loglevel", "warning",
	}, settings...)
	t.Cleanup(func() { s.kill(t) })
	s.run(t)
	return s
}

// folder is a folder for the test, in memory where the system has that: killing a process
// loses nothing there either, and a busy disk makes no test slow.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "oncehttp-redis-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// freePort finds a port of loopback that nobody listens on.
func freePort(t testing.TB) (address, port string) {
	t.Helper()
	port = testport.Take(t)
	return net.JoinHostPort("127.0.0.1", port), port
}

// run starts the server's process, and waits until it answers.
func (s *server) run(t testing.TB) {
	t.Helper()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 1000 {
		var conn net.Conn
		if conn, err = net.Dial("tcp", s.address); err == nil {
			_ = conn.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for range 1000 { // it reads its file
		if err = connect(t, s.url()).Ping(context.Background()).Err(); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("redis-server does not answer: %v", err)
}

// kill ends the process at once, as kill -9 does.
func (s *server) kill(t testing.TB) {
	if err := s.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = s.cmd.Wait() // it was killed
}

func (s *server) url() string { return "redis://:hunter2@" + s.address + "/0" }

// connect returns a client beside the journals, for what tests do to a server.
func connect(t testing.TB, url string) *goredis.Client {
	t.Helper()
	opts, err := goredis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	opts.DialerRetries = 1
	client := goredis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// durableURL is the URL of a server that keeps what it acknowledges: that of
// ONCEHTTP_TEST_REDIS, or of one of the test's own.
func durableURL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("ONCEHTTP_TEST_REDIS"); url != "" {
		return url
	}
	return start(t, durable()...).url()
}

// own returns options with a prefix of the test's own, whose keys are removed in the end.
func own(t testing.TB, url string) redis.Options {
	t.Helper()
	opts := redis.Options{Prefix: sqltest.Name(), MaxConns: 8, CallTimeout: time.Minute, KeepKey: redis.KeepForever}
	client := connect(t, url)
	t.Cleanup(func() { forgetKeys(t, client, opts.Prefix) })
	return opts
}

// forgetKeys removes the keys of a journal.
func forgetKeys(t testing.TB, client goredis.UniversalClient, prefix string) {
	t.Helper()
	ctx := context.Background()
	keys := client.Scan(ctx, 0, "{"+prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := client.Del(ctx, keys.Val()).Err(); err != nil {
			t.Error(err)
		}
	}
	if err := keys.Err(); err != nil {
		t.Error(err)
	}
}

// open opens a journal that is closed in the end.
func open(t testing.TB, url string, opts redis.Options) *redis.Journal {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	j, err := redis.Open(ctx, url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

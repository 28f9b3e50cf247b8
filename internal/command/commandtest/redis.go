package commandtest

import (
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/internal/testport"
)

// Journal returns the URL of the journal on the server.
func (s *RedisServer) Journal() string { return "redis://" + s.Address + "/0?keep_key=forever" }

// Client returns a client of the server, for tests that look at the data beside the journal. It waits until the server answers.
func (s *RedisServer) Client(t *testing.T) *goredis.Client {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: s.Address})
	t.Cleanup(func() { _ = client.Close() })
	for start := time.Now(); client.Ping(t.Context()).Err() != nil; time.Sleep(5 * time.Millisecond) { // it refuses while it loads its data
		if time.Since(start) > 20*time.Second {
			t.Fatal("redis-server does not answer")
		}
	}
	return client
}

// Fill replaces all files in the server's folder by these, given by name with their content, as a restore from a backup does. The server must not run.
func (s *RedisServer) Fill(t *testing.T, files map[string]string) {
	t.Helper()
	if err := os.RemoveAll(s.Dir); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		name = filepath.Join(s.Dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// RedisServer is a redis-server of a test's own.
type RedisServer struct {
	Address string
	Dir     string // of its data
	Command []string
	cmd     *osexec.Cmd
}

// Durable returns the settings for a redis-server to keep all acknowledged writes.
func Durable() []string {
	return []string{"--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"}
}

// OwnRedis starts a redis-server with these settings. It ends with the test.
func OwnRedis(t *testing.T, settings ...string) *RedisServer {
	t.Helper()
	path, err := osexec.LookPath("redis-server")
	if err != nil && os.Getenv("ONCEHTTP_REQUIRE_SERVICES") != "1" {
		t.Skip("nothing was tested: there is no redis-server")
	}
	port := testport.Take(t)
	s := &RedisServer{Address: net.JoinHostPort("127.0.0.1", port), Dir: t.TempDir()}
	s.Command = append([]string{path, "--port", port, "--bind", "127.0.0.1", "--dir", s.Dir, "--save", ""}, settings...)
	s.Start(t)
	t.Cleanup(s.Kill)
	return s
}

// Kill ends the server at once, without a chance to write its data.
func (s *RedisServer) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
}

// Start starts the server, and returns when it listens. A server that does not is a failure of the test after 20 s.
func (s *RedisServer) Start(t *testing.T) {
	t.Helper()
	s.cmd = osexec.Command(s.Command[0], s.Command[1:]...)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", s.Address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("redis-server does not answer: %v", err)
		}
	}
}

package main

import (
	"net"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

// ownRedis starts a redis-server with these settings, which ends with the test, and returns
// its address.
func ownRedis(t *testing.T, settings ...string) string {
	t.Helper()
	path, err := osexec.LookPath("redis-server")
	if err != nil && os.Getenv("ONCEHTTP_REQUIRE_SERVICES") != "1" {
		t.Skip("nothing was tested: there is no redis-server")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = l.Close()
	cmd := osexec.CommandContext(t.Context(), path, append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", ""}, settings...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("redis-server does not answer: %v", err)
		}
	}
}

// A journal on Redis works like one on a database, needs no migration, and has to be told
// for how long it remembers keys.
func TestRedisJournal(t *testing.T) {
	t.Parallel()
	address := ownRedis(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
	journal := "redis://" + address + "/0?keep_key=forever"
	if got := run(t, "journal", "list", "--journal", "redis://"+address+"/0").want(t, exitUsage); !strings.Contains(got.err, "?keep_key=8760h") {
		t.Errorf("without keep_key: %s", got.err)
	}
	if got := run(t, "journal", "list", "--journal", "redis://"+address+"/0?keep_key=-1h").want(t, exitUsage); !strings.Contains(got.err, "want a duration such as 8760h") {
		t.Errorf("with a wrong keep_key: %s", got.err)
	}
	if got := run(t, "journal", "migrate", journal).want(t, exitOK); !strings.Contains(got.out, "nothing to migrate") {
		t.Errorf("migrate: %s", got.out)
	}
	m := startMock(t, mockserver.Config{})
	m.Inject(mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropBefore})
	file := writeFile(t, "in.csv", "id\na\nb\nc\n")
	args := fast("batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}", "--workers", "1", "--journal", journal)
	run(t, append(args, "--max-attempts", "1")...).want(t, exitUnknown)
	if out := run(t, "journal", "list", "--state", "pending", "--journal", journal).want(t, exitOK).out; strings.Count(out, "\n") != 3 {
		t.Errorf("list\n%s", out)
	}
	if l := run(t, "journal", "resume", "idemp:o:b", "--journal", journal).want(t, exitOK).only(t); l.Key != "idemp:o:b" {
		t.Errorf("resumed %+v", l)
	}
	w := startWork(t, "--journal", journal)
	if l, more := w.next(t); !more || l.Key != "idemp:o:a" || l.Result != resultDone {
		t.Errorf("worked %+v", l)
	}
	if got := w.stop(t, syscall.SIGTERM); got != exitOK {
		t.Errorf("status %d", got)
	}
	run(t, args...).want(t, exitOK)
	for _, id := range []string{"a", "b", "c"} {
		if n := m.Ledger().Effects("idemp:o:" + id); n != 1 {
			t.Errorf("%s: %d effects, want 1", id, n)
		}
	}
	volatile := "redis://" + ownRedis(t) + "/0?keep_key=forever"
	if got := run(t, "journal", "list", "--journal", volatile).want(t, exitUsage); !strings.Contains(got.err, "appendonly") || strings.Count(got.err, "\n") != 1 {
		t.Errorf("a server that keeps nothing: %s", got.err)
	}
}

package main

import (
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testport"
	"github.com/oncehttp/oncehttp/mockserver"
)

// redisServer is a redis-server of a test's own.
type redisServer struct {
	address string
	dir     string // of its data
	command []string
	cmd     *osexec.Cmd
}

// durable are the settings with which a redis-server keeps what it acknowledged.
func durable() []string {
	return []string{"--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"}
}

// ownRedis starts a redis-server with these settings, which ends with the test.
func ownRedis(t *testing.T, settings ...string) *redisServer {
	t.Helper()
	path, err := osexec.LookPath("redis-server")
	if err != nil && os.Getenv("ONCEHTTP_REQUIRE_SERVICES") != "1" {
		t.Skip("nothing was tested: there is no redis-server")
	}
	port := testport.Take(t)
	s := &redisServer{address: net.JoinHostPort("127.0.0.1", port), dir: t.TempDir()}
	s.command = append([]string{path, "--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", ""}, settings...)
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

// kill ends the server at once.
func (s *redisServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
}

// start starts the server, and returns when it listens.
func (s *redisServer) start(t *testing.T) {
	t.Helper()
	s.cmd = osexec.Command(s.command[0], s.command[1:]...)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", s.address)
		if err == nil {
			_ = conn.Close()
			return
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
	address := ownRedis(t, durable()...).address
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
	volatile := "redis://" + ownRedis(t).address + "/0?keep_key=forever"
	if got := run(t, "journal", "resume", "--journal", volatile).want(t, exitUsage); !strings.Contains(got.err, "appendonly") || strings.Count(got.err, "\n") != 1 {
		t.Errorf("a server that keeps nothing: %s", got.err)
	}
}

// While its journal does not answer, work says so on /healthz and does not end; once the
// journal is back, so is work, also with what was on the wire.
func TestWorkWithoutJournal(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, durable()...)
	journal := "redis://" + server.address + "/0?keep_key=forever"
	arrived, answer := make(chan struct{}, 10), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusCreated)
	})
	release := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release)
	enqueue(t, journal, s.url, 2)
	w := startWork(t, "--journal", journal, "--workers", "1")
	<-arrived
	await := func(status int, says string) {
		t.Helper()
		for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			got, now := w.ask(t)
			if got == status && now.Status == says {
				return
			}
			if time.Since(start) > 20*time.Second {
				t.Fatalf("healthz answers %d: %+v, want %d and %q", got, now, status, says)
			}
		}
	}
	await(http.StatusOK, "ok")
	server.kill()
	await(http.StatusServiceUnavailable, "journal")
	server.start(t)
	await(http.StatusOK, "ok")
	release()
	for range 2 {
		if l, more := w.next(t); !more || l.Result != resultDone {
			t.Errorf("line %+v", l)
		}
	}
	if got := w.stop(t, syscall.SIGTERM); got != exitOK {
		t.Errorf("status %d: %s", got, w.errs.await(t, "(?s).*"))
	}
}

// A server that cannot be reached is one line, also where go-redis has a log of its own.
func TestRedisDown(t *testing.T) {
	t.Parallel()
	cmd, errs := child(t, "journal", "list", "--journal", "redis://127.0.0.1:1/0?keep_key=1h")
	err := cmd.Run()
	if text := errs.String(); cmd.ProcessState.ExitCode() != exitUnknown || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "oncehttp: journal ") {
		t.Errorf("error %v: %s", err, text)
	}
}

// How long a key is remembered is written with its record: the URL of a prune does not shorten it, and --keep-key asks first.
func TestRedisPruneAsks(t *testing.T) {
	t.Parallel()
	at := "redis://" + ownRedis(t, durable()...).address + "/0?keep_key="
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	run(t, "batch", writeFile(t, "in.csv", "id\na\nb\n"), "--url", s.url, "--key", "o:{id}", "--journal", at+"forever").want(t, exitOK)
	time.Sleep(20 * time.Millisecond) // of the server's clock
	left := func(want int) {
		t.Helper()
		if got := run(t, "journal", "list", "--json", "--journal", at+"forever").want(t, exitOK); strings.Count(got.out, "\n") != want {
			t.Errorf("left:\n%s", got.out)
		}
	}
	prune := []string{"journal", "prune", "--keep-answer", "-1s", "--journal", at + "10ms"}
	if got := run(t, prune...).want(t, exitUsage); !strings.Contains(got.err, "drop 2 answers") || strings.Contains(got.err, "forget") {
		t.Errorf("%s", got.err)
	}
	run(t, append(prune, "--yes")...).want(t, exitOK)
	left(2)
	prune = append(prune, "--keep-key", "10ms")
	if got := run(t, prune...).want(t, exitUsage); !strings.Contains(got.err, "forget the use of 2 keys") {
		t.Errorf("%s", got.err)
	}
	left(2)
	run(t, append(prune, "--yes")...).want(t, exitOK)
	left(0)
}

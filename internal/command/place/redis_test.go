package place_test

import (
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// A journal on Redis works like one on a database, needs no migration, and has to be told
// for how long it remembers keys.
func TestRedisJournal(t *testing.T) {
	t.Parallel()
	address := commandtest.OwnRedis(t, commandtest.Durable()...).Address
	journal := "redis://" + address + "/0?keep_key=forever"
	if got := commandtest.Run(t, "journal", "list", "--journal", "redis://"+address+"/0").Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "?keep_key=8760h") {
		t.Errorf("without keep_key: %s", got.Err)
	}
	if got := commandtest.Run(t, "journal", "list", "--journal", "redis://"+address+"/0?keep_key=-1h").Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "want a duration such as 8760h") {
		t.Errorf("with a wrong keep_key: %s", got.Err)
	}
	if got := commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "nothing to migrate") {
		t.Errorf("migrate: %s", got.Out)
	}
	m := commandtest.StartMock(t, mockserver.Config{})
	m.Inject(mockserver.Fault{Kind: mockserver.DropAfter}, mockserver.Fault{Kind: mockserver.DropBefore})
	file := commandtest.WriteFile(t, "in.csv", "id\na\nb\nc\n")
	args := commandtest.Fast("batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}", "--workers", "1", "--journal", journal)
	commandtest.Run(t, append(args, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	if out := commandtest.Run(t, "journal", "list", "--state", "pending", "--journal", journal).Want(t, terminal.ExitOK).Out; strings.Count(out, "\n") != 3 {
		t.Errorf("list\n%s", out)
	}
	if l := commandtest.Run(t, "journal", "resume", "idemp:o:b", "--journal", journal).Want(t, terminal.ExitOK).Only(t); l.Key != "idemp:o:b" {
		t.Errorf("resumed %+v", l)
	}
	w := commandtest.StartWork(t, "--journal", journal)
	if l, more := w.Next(t); !more || l.Key != "idemp:o:a" || l.Result != results.Done {
		t.Errorf("worked %+v", l)
	}
	if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
		t.Errorf("status %d", got)
	}
	commandtest.Run(t, args...).Want(t, terminal.ExitOK)
	for _, id := range []string{"a", "b", "c"} {
		if n := m.Ledger().Effects("idemp:o:" + id); n != 1 {
			t.Errorf("%s: %d effects, want 1", id, n)
		}
	}
	volatile := "redis://" + commandtest.OwnRedis(t).Address + "/0?keep_key=forever"
	if got := commandtest.Run(t, "journal", "resume", "--journal", volatile).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "appendonly") || strings.Count(got.Err, "\n") != 1 {
		t.Errorf("a server that keeps nothing: %s", got.Err)
	}
}

// While its journal does not answer, work says so on /healthz and does not end; once the
// journal is back, so is work, also with what was on the wire.
func TestWorkWithoutJournal(t *testing.T) {
	t.Parallel()
	server := commandtest.OwnRedis(t, commandtest.Durable()...)
	journal := "redis://" + server.Address + "/0?keep_key=forever"
	arrived, answer := make(chan struct{}, 10), make(chan struct{})
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusCreated)
	})
	release := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release)
	commandtest.Enqueue(t, journal, s.URL, 2)
	w := commandtest.StartWork(t, "--journal", journal, "--workers", "1")
	<-arrived
	await := func(status int, says string) {
		t.Helper()
		for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			got, now := w.Ask(t)
			if got == status && now.Status == says {
				return
			}
			if time.Since(start) > 20*time.Second {
				t.Fatalf("healthz answers %d: %+v, want %d and %q", got, now, status, says)
			}
		}
	}
	await(http.StatusOK, "ok")
	server.Kill()
	await(http.StatusServiceUnavailable, "journal")
	server.Start(t)
	await(http.StatusOK, "ok")
	release()
	for range 2 {
		if l, more := w.Next(t); !more || l.Result != results.Done {
			t.Errorf("line %+v", l)
		}
	}
	if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
		t.Errorf("status %d: %s", got, w.Errs.Await(t, "(?s).*"))
	}
}

// A server that cannot be reached is one line, also where go-redis has a log of its own.
func TestRedisDown(t *testing.T) {
	t.Parallel()
	cmd, errs := commandtest.Child(t, "journal", "list", "--journal", "redis://127.0.0.1:1/0?keep_key=1h")
	err := cmd.Run()
	if text := errs.String(); cmd.ProcessState.ExitCode() != terminal.ExitUnknown || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "oncehttp: journal ") {
		t.Errorf("error %v: %s", err, text)
	}
}

// How long a key is remembered is written with its record: the URL of a prune does not shorten it, and --keep-key asks first.
func TestRedisPruneAsks(t *testing.T) {
	t.Parallel()
	at := "redis://" + commandtest.OwnRedis(t, commandtest.Durable()...).Address + "/0?keep_key="
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	commandtest.Run(t, "batch", commandtest.WriteFile(t, "in.csv", "id\na\nb\n"), "--url", s.URL, "--key", "o:{id}", "--journal", at+"forever").Want(t, terminal.ExitOK)
	time.Sleep(20 * time.Millisecond) // of the server's clock
	left := func(want int) {
		t.Helper()
		if got := commandtest.Run(t, "journal", "list", "--json", "--journal", at+"forever").Want(t, terminal.ExitOK); strings.Count(got.Out, "\n") != want {
			t.Errorf("left:\n%s", got.Out)
		}
	}
	prune := []string{"journal", "prune", "--keep-answer", "-1s", "--journal", at + "10ms"}
	if got := commandtest.Run(t, prune...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "drop 2 answers") || strings.Contains(got.Err, "forget") {
		t.Errorf("%s", got.Err)
	}
	commandtest.Run(t, append(prune, "--yes")...).Want(t, terminal.ExitOK)
	left(2)
	prune = append(prune, "--keep-key", "10ms")
	if got := commandtest.Run(t, prune...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "forget the use of 2 keys") {
		t.Errorf("%s", got.Err)
	}
	left(2)
	commandtest.Run(t, append(prune, "--yes")...).Want(t, terminal.ExitOK)
	left(0)
}

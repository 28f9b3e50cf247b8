package journal_test

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
)

// TestRestoredBesideWorker: while a worker has leases, restored changes nothing, says until when they last, and ends with 3; the
// worker goes on. Once it has stopped, the same command holds what is left.
func TestRestoredBesideWorker(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, testRestoredBesideWorker)
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		testRestoredBesideWorker(t, commandtest.OwnRedis(t, commandtest.Durable()...).Journal())
	})
}

func testRestoredBesideWorker(t *testing.T, journal string) {
	const n = 12
	arrived, answer := make(chan struct{}, n), make(chan struct{})
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusCreated)
	})
	release := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release)
	commandtest.Enqueue(t, journal, s.URL, n)
	w := commandtest.StartWork(t, "--journal", journal, "--workers", "2")
	<-arrived
	before := commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitOK).Out
	restored := []string{"journal", "restored", "--journal", journal, "--taken", time.Now().UTC().Format(time.RFC3339Nano)}
	got := commandtest.Run(t, restored...).Want(t, terminal.ExitUnknown)
	if got.Out != "" || strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, "leased") || !strings.Contains(got.Err, "until 20") {
		t.Errorf("stdout %q, stderr %q; want a line that says until when leases last", got.Out, got.Err)
	}
	if now := commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitOK).Out; strings.Contains(now, "restored") || strings.Count(now, "\n") != strings.Count(before, "\n") {
		t.Errorf("it has changed\n%s\ninto\n%s", before, now)
	}
	release()
	for range n {
		if l, more := w.Next(t); !more || l.Result != results.Done {
			t.Fatalf("line %+v", l)
		}
	}
	if status := w.Stop(t, syscall.SIGTERM); status != terminal.ExitOK || s.Sends.Load() != n {
		t.Errorf("status %d after %d sends, want %d", status, s.Sends.Load(), n)
	}
	commandtest.EnqueueOne(t, journal, s.URL, "later", "{}")
	restored[len(restored)-1] = time.Now().UTC().Format(time.RFC3339Nano)
	if got := commandtest.Run(t, restored...).Want(t, terminal.ExitOK); got.Out != "held: 1 operation\n" {
		t.Errorf("once the worker has stopped: %q", got.Out)
	}
}

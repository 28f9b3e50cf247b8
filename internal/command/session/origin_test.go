package session_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestOriginOfDatabase: on a database, where others may write, work is told where it sends, and journal resume too where the pending
// operations lead to more than one server. What leads elsewhere stays pending.
func TestOriginOfDatabase(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		accept := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }
		ours, foreign := commandtest.Serve(t, accept), commandtest.Serve(t, accept)
		commandtest.EnqueueOne(t, journal, ours.URL, "ours", "{}")
		commandtest.EnqueueOne(t, journal, foreign.URL, "foreign", "{}")
		got := commandtest.Run(t, "work", "--journal", journal).Want(t, terminal.ExitUsage)
		if !strings.Contains(got.Err, "say where it sends, with --origin ORIGIN") || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("work: %q", got.Err)
		}
		got = commandtest.Run(t, "journal", "resume", "--journal", journal).Want(t, terminal.ExitUsage)
		if !strings.Contains(got.Err, ours.URL) || !strings.Contains(got.Err, foreign.URL) || !strings.Contains(got.Err, "say with --origin to which they go") {
			t.Errorf("resume: %q", got.Err)
		}
		if ours.Sends.Load()+foreign.Sends.Load() != 0 {
			t.Fatalf("%d and %d sends by calls that were not told where", ours.Sends.Load(), foreign.Sends.Load())
		}
		w := commandtest.StartWork(t, "--journal", journal, "--origin", ours.URL)
		if l, more := w.Next(t); !more || l.Key != "ours" {
			t.Errorf("line %+v", l)
		}
		w.Errs.Await(t, `does not send to .*; name it with --origin`)
		if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK || foreign.Sends.Load() != 0 {
			t.Errorf("work ends with %d after %d sends to the other server", got, foreign.Sends.Load())
		}
		commandtest.EnqueueOne(t, journal, ours.URL, "again", `{"n":2}`)
		commandtest.Run(t, "journal", "resume", "--journal", journal, "--origin", ours.URL).Want(t, terminal.ExitUnknown)
		if ours.Sends.Load() != 2 || foreign.Sends.Load() != 0 {
			t.Errorf("resume: %d sends, %d to the other server", ours.Sends.Load(), foreign.Sends.Load())
		}
		commandtest.EnqueueOne(t, journal, ours.URL, "third", `{"n":3}`)
		commandtest.Run(t, "journal", "resume", "--journal", journal, "--origin", ours.URL, "--origin", foreign.URL).Want(t, terminal.ExitOK)
		if ours.Sends.Load() != 3 || foreign.Sends.Load() != 1 {
			t.Errorf("resume with both: %d sends, %d to the other server", ours.Sends.Load(), foreign.Sends.Load())
		}
	})
}

// TestOriginWithoutHeaders: --origin without headers says where work sends, and makes it no client with credentials: another command
// sends there without any.
func TestOriginWithoutHeaders(t *testing.T) {
	t.Parallel()
	j := filepath.Join(t.TempDir(), "j.db")
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	commandtest.EnqueueOne(t, j, s.URL, "k", "{}")
	w := commandtest.StartWork(t, "--journal", j, "--origin", s.URL)
	if l, more := w.Next(t); !more || l.Key != "k" {
		t.Errorf("line %+v", l)
	}
	if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
		t.Errorf("work ends with %d", got)
	}
	commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", "bare", "--journal", j).Want(t, terminal.ExitOK)
	if s.Sends.Load() != 2 {
		t.Errorf("%d sends, want 2", s.Sends.Load())
	}
}

// TestResumeHeadersOfNothing: headers for a journal in which nothing is pending go nowhere, which is no error.
func TestResumeHeadersOfNothing(t *testing.T) {
	t.Parallel()
	j := filepath.Join(t.TempDir(), "j.db")
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "resume", "--journal", j, "-H", "Authorization: Bearer live").Want(t, terminal.ExitOK)
	if s.Sends.Load() != 1 {
		t.Errorf("%d sends, want 1", s.Sends.Load())
	}
}

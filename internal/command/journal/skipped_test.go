package journal_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestSkippedIsTold: a key under which nothing was begun, below a generation that was sent, is called skipped, and neither settled by somebody
// nor damaged.
func TestSkippedIsTold(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	at := commandtest.JournalIn(t)
	commandtest.Run(t, "send", s.URL, "--key", "o:1:gen=2", "--data", "{}", "--journal", at).Want(t, terminal.ExitOK)
	for _, command := range [][]string{{"list"}, {"show", "o:1"}} {
		got := commandtest.Run(t, append(append([]string{"journal"}, command...), "--journal", at)...).Want(t, terminal.ExitOK)
		if !strings.Contains(got.Out, "skipped (o:1:gen=2 was sent)") || strings.Contains(got.Out, "settled (") {
			t.Errorf("%v: %q", command, got.Out)
		}
	}
	commandtest.Run(t, "journal", "verify", "--journal", at).Want(t, terminal.ExitOK)
	commandtest.Run(t, "send", s.URL, "--key", "o:1", "--data", "{}", "--journal", at).Want(t, terminal.ExitRefused)
	if n := s.Sends.Load(); n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}

// TestStatsOfSkipped: such a key is no operation, and is not among the results.
func TestStatsOfSkipped(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	at := commandtest.JournalIn(t)
	commandtest.Run(t, "send", s.URL, "--key", "o:1:gen=3", "--data", "{}", "--journal", at).Want(t, terminal.ExitOK)
	got := commandtest.Run(t, "journal", "stats", "--json", "--journal", at).Want(t, terminal.ExitOK)
	for _, part := range []string{`"operations":1,`, `"states":{"confirmed":1}`, `"results":{"done":1}`, `"skipped":2`} {
		if !strings.Contains(got.Out, part) {
			t.Errorf("without %s: %s", part, got.Out)
		}
	}
	if got := commandtest.Run(t, "journal", "stats", "--journal", at).Want(t, terminal.ExitOK); !strings.Contains(got.Out, "skipped       2 keys") || strings.Contains(got.Out, "rejected") {
		t.Error(got.Out)
	}
}

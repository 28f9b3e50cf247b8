package batch_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// failing starts an API that answers each request with 500, or the status that is stored since, and the body.
func failing(t *testing.T, body string) (*commandtest.Counted, *atomic.Int64) {
	t.Helper()
	status := &atomic.Int64{}
	status.Store(http.StatusInternalServerError)
	return commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, body)
	}), status
}

// TestRekeyedAndDeclined: a row whose operation a person has begun anew under another key, which was declined, has no next generation: neither the summary nor a
// dry run promises one.
func TestRekeyedAndDeclined(t *testing.T) {
	t.Parallel()
	s, status := failing(t, `{"error":"no"}`)
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n")
	at := file + journalEnd
	batch := func(more ...string) commandtest.Ran {
		return commandtest.Run(t, commandtest.Fast(append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1"}, more...)...)...)
	}
	batch()
	seen := commandtest.SeenAs(t, at, "idemp:o:1")
	commandtest.Run(t, "journal", "settle", seen, "--absent", "--yes", "--journal", at).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "rekey", seen, "idemp:o:1:b", "--reason", "r", "--journal", at).Want(t, terminal.ExitOK)
	status.Store(http.StatusPaymentRequired)
	commandtest.Run(t, "journal", "resume", "--journal", at)
	sends := s.Sends.Load()
	for _, more := range [][]string{nil, {"--generation", "2"}} {
		got := batch(more...)
		if !strings.Contains(got.Err, "other operations were begun in their place") || strings.Contains(got.Err, "--generation") || !strings.Contains(got.Out, `began \"idemp:o:1:b\" to replace`) {
			t.Errorf("%v: %q, %q", more, got.Err, got.Out)
		}
	}
	if got := batch("--generation", "2", "--dry-run"); !strings.Contains(got.Err, "1 mismatch; 0 would be sent") || !strings.Contains(got.Err, `"idemp:o:1:b"`) {
		t.Errorf("dry run: %q", got.Err)
	}
	if n := s.Sends.Load(); n != sends {
		t.Errorf("%d sends, want %d", n, sends)
	}
}

// TestRekeyedAndPaid: rows whose operations a person has begun anew under other keys, which took effect, are done in each generation, and no command is advised for
// them.
func TestRekeyedAndPaid(t *testing.T) {
	t.Parallel()
	s, status := failing(t, `{"id":"p1"}`)
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id,amount\n1,5.00\n2,6.00\n3,7.00\n")
	at := file + journalEnd
	batch := func(more ...string) commandtest.Ran {
		return commandtest.Run(t, commandtest.Fast(append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1", "--sum", "amount"}, more...)...)...)
	}
	batch()
	for id, key := range map[string]string{"1": "o:1:gen=2", "2": "other-2", "3": "other-3:gen=2"} {
		seen := commandtest.SeenAs(t, at, "idemp:o:"+id)
		commandtest.Run(t, "journal", "settle", seen, "--absent", "--yes", "--journal", at).Want(t, terminal.ExitOK)
		commandtest.Run(t, "journal", "rekey", seen, key, "--reason", "r", "--journal", at).Want(t, terminal.ExitOK)
	}
	status.Store(http.StatusCreated)
	commandtest.Run(t, "journal", "resume", "--journal", at).Want(t, terminal.ExitOK)
	sends := s.Sends.Load()
	for _, more := range [][]string{nil, {"--generation", "2"}, {"--generation", "3"}, {"--generation", "4"}} {
		got := batch(more...)
		if got.Status != terminal.ExitOK || !strings.Contains(got.Err, "3 rows: 3 done") || strings.Contains(got.Err, "rejected") || strings.Contains(got.Err, "unknown") || strings.Contains(got.Err, "run the command with") {
			t.Errorf("%v: status %d, %q", more, got.Status, got.Err)
		}
		if strings.Contains(got.Out, "pending") || strings.Contains(got.Out, `"outcome":"unknown"`) {
			t.Errorf("%v: %q", more, got.Out)
		}
	}
	if n := s.Sends.Load(); n != sends {
		t.Errorf("%d sends, want %d", n, sends)
	}
}

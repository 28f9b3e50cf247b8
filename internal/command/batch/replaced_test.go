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

// TestDryRunOfReplaced: a dry run has the classes of the run for rows in whose place a person has begun another operation, pending or ended. If that one succeeded, the row is done.
func TestDryRunOfReplaced(t *testing.T) {
	t.Parallel()
	for name, resumes := range map[string]bool{"pending": false, "resumed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var status atomic.Int64
			status.Store(http.StatusNotFound)
			s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				code := int(status.Load())
				if b, _ := io.ReadAll(r.Body); code == http.StatusNotFound && strings.Contains(string(b), `"2"`) {
					code = http.StatusInternalServerError
				}
				w.WriteHeader(code)
				_, _ = io.WriteString(w, `{"error":"no"}`)
			})
			file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n2\n")
			at := file + journalEnd
			batch := func(more ...string) commandtest.Ran {
				return commandtest.Run(t, commandtest.Fast(append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1", "--max-errors", "0", "--sum", "id"}, more...)...)...)
			}
			batch()
			commandtest.Run(t, "journal", "redrive", "idemp:o:1", "--told", "--reason", "r", "--journal", at).Want(t, terminal.ExitOK)
			seen := commandtest.SeenAs(t, at, "idemp:o:2")
			commandtest.Run(t, "journal", "settle", seen, "--absent", "--yes", "--journal", at).Want(t, terminal.ExitOK)
			commandtest.Run(t, "journal", "rekey", seen, "idemp:o:2:again", "--reason", "r", "--journal", at).Want(t, terminal.ExitOK)
			if resumes {
				status.Store(http.StatusCreated)
				commandtest.Run(t, "journal", "resume", "--journal", at).Want(t, terminal.ExitOK)
			}
			for _, more := range [][]string{nil, {"--generation", "2"}} {
				if !resumes && more != nil {
					continue // the run goes on with row 1, which changes its class
				}
				dry, run := batch(append(more, "--dry-run")...), batch(more...)
				_, want, _ := strings.Cut(run.Err, "total id: 3 in 2 rows = ")
				want, _, _ = strings.Cut(want, "\n")
				if !strings.Contains(dry.Err, " = "+want+"\n") || strings.Contains(want, "pending") == resumes || resumes && want != "3 in 2 done" {
					t.Errorf("%v: the dry run says %q, and the run %q", more, dry.Err, run.Err)
				}
				if !resumes && (!strings.Contains(run.Err, "other operations were begun in their place") || !strings.Contains(run.Out, `began \"idemp:o:2:again\" to replace it`)) {
					t.Errorf("the run says %q and %q, and not what stands in the rows' place", run.Err, run.Out)
				}
			}
		})
	}
}

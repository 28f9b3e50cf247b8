package batch_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestLeftTheFile: an operation whose row has left the file, or has another value in its key now, is named, and so is the danger of a second payment where rows
// are new. A journal that was named is compared with nothing.
func TestLeftTheFile(t *testing.T) {
	t.Parallel()
	const gone, pays = `1 operation of its journal, such as "idemp:o:2", is not in the file any more`, "1 row is new: one with the same other columns may be the same payment under another key, and is paid twice then"
	for name, c := range map[string]struct {
		then   string // the file of the second run
		flags  []string
		status int // of the second run
		want   []string
		not    []string
		sends  int64 // of the second run
	}{
		"unchanged":         {"id,a\n1,5\n2,6\n", nil, terminal.ExitOK, nil, []string{"any more"}, 0},
		"grown":             {"id,a\n1,5\n2,6\n3,7\n", nil, terminal.ExitOK, nil, []string{"any more"}, 1},
		"shortened":         {"id,a\n1,5\n", nil, terminal.ExitOK, []string{gone + "\n"}, []string{"warning", "new"}, 0},
		"another key":       {"id,a\n1,5\n2b,6\n", nil, terminal.ExitOK, []string{"warning: FILE: " + gone + "; " + pays, gone + "; 1 row was new: one with", "and was paid twice then (oncehttp journal list --journal FILE.oncehttp.db)"}, nil, 1},
		"in a dry run":      {"id,a\n1,5\n2b,6\n", []string{"--dry-run"}, terminal.ExitOK, []string{gone + "; " + pays}, []string{"warning"}, 0},
		"strict":            {"id,a\n1,5\n2b,6\n", []string{"--strict"}, terminal.ExitUsage, []string{gone + "; " + pays, "nothing was sent, because of --strict"}, nil, 0},
		"strict, shortened": {"id,a\n1,5\n", []string{"--strict"}, terminal.ExitOK, []string{gone}, nil, 0},
		"a named journal":   {"id,a\n1,5\n2b,6\n", []string{"--journal", "FILE.oncehttp.db"}, terminal.ExitOK, nil, []string{"any more"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
			file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id,a\n1,5\n2,6\n")
			batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
			commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
			commandtest.WriteFile(t, file, c.then)
			for _, flag := range c.flags {
				batch = append(batch, strings.ReplaceAll(flag, "FILE", file))
			}
			got := commandtest.Run(t, batch...).Want(t, c.status)
			for _, text := range c.want {
				if text = strings.ReplaceAll(text, "FILE", file); !strings.Contains(got.Err, text) {
					t.Errorf("it says %q, want %q", got.Err, text)
				}
			}
			for _, text := range c.not {
				if strings.Contains(got.Err, text) {
					t.Errorf("it says %q, and must not say %q", got.Err, text)
				}
			}
			if n := s.Sends.Load() - 2; n != c.sends {
				t.Errorf("%d more sends, want %d", n, c.sends)
			}
		})
	}
}

// TestLeftTheFileUnended: operations that have left the file, and are pending or held, are named so. A later try of a row has not left.
func TestLeftTheFileUnended(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch key := r.Header.Get("Idempotency-Key"); {
		case key == `idemp:o:1`:
			w.WriteHeader(http.StatusPaymentRequired)
			_, _ = w.Write([]byte("{}"))
		case key == `idemp:o:2`:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n2\n")
	batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}")
	commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, append(batch, "--generation", "2")...).Want(t, terminal.ExitUnknown)
	commandtest.WriteFile(t, file, "id\n1\n")
	got := commandtest.Run(t, batch...)
	want := `1 operation of its journal, such as "idemp:o:2", is not in the file any more; 1 of them is pending or held, and this command does not go on with them (oncehttp journal stuck --journal ` + file + ".oncehttp.db)\n"
	if !strings.Contains(got.Err, want) {
		t.Errorf("it says %q, want %q", got.Err, want)
	}
}

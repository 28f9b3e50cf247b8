package batch_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestCorrectedRowNeedsGeneration: a row that was refused for certain, and then corrected, has another request than its key. The summary names the flag that
// sends it.
func TestCorrectedRowNeedsGeneration(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"-1"`) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"error":"amount must be positive"}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	at := filepath.Join(t.TempDir(), "in.csv")
	batch := func(more ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"batch", at, "--url", s.URL, "--key", "o:{id}"}, more...)...)
	}
	commandtest.WriteFile(t, at, "id,amount\n1,-1\n")
	batch().Want(t, terminal.ExitRefused)
	commandtest.WriteFile(t, at, "id,amount\n1,1\n")
	const want = "1 mismatch (key reused): the key stands for another request, which was refused for certain; --generation 2 tries anew"
	if got := batch().Want(t, terminal.ExitRefused); !strings.Contains(got.Err, want) || s.Sends.Load() != 1 {
		t.Errorf("%d sends, %q", s.Sends.Load(), got.Err)
	}
	if batch("--generation", "2").Want(t, terminal.ExitOK); s.Sends.Load() != 2 {
		t.Errorf("%d sends, want 2", s.Sends.Load())
	}
}

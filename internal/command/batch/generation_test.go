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

// TestBatchNamesNextGeneration: where generation 2 has done a row, the run of generation 1 says so, and does not advise generation 2 anew.
func TestBatchNamesNextGeneration(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/right" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":"no such route"}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n2\n")
	batch := func(path string, more ...string) []string {
		return append([]string{"batch", file, "--url", s.URL + path, "--key", "o:{id}"}, more...)
	}
	first := commandtest.Run(t, batch("/wrong")...).Want(t, terminal.ExitRefused)
	if !strings.Contains(first.Err, "2 invalid (404): check --url; then, with the right one or corrected rows, --generation 2 tries anew") {
		t.Errorf("the first run says %q", first.Err)
	}
	commandtest.Run(t, batch("/right", "--generation", "2")...).Want(t, terminal.ExitOK)
	for _, path := range []string{"/wrong", "/right"} {
		again := commandtest.Run(t, batch(path)...).Want(t, terminal.ExitRefused)
		if !strings.Contains(again.Err, "generation 2 of them is done: go on with --generation 2") || strings.Contains(again.Err, "tries anew") {
			t.Errorf("%s: it says %q", path, again.Err)
		}
		for _, l := range again.Lines(t) {
			if !strings.Contains(l.Why(), "; generation 2 of it is done") {
				t.Errorf("%s: line %+v", path, l)
			}
		}
	}
	if s.Sends.Load() != 4 {
		t.Errorf("%d sends, want 4", s.Sends.Load())
	}
}

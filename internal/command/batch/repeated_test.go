package batch_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestBatchRepeatedRows: a row that repeats one that was not done has the result of that one, and its own attempts.
func TestBatchRepeatedRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   results.Result
		status int
	}{
		"done":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) }, results.Duplicate, terminal.ExitOK},
		"refused": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, results.Rejected, terminal.ExitUnknown},
		"declined": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(402)
			_, _ = io.WriteString(w, `{"error":"card_declined"}`)
		}, results.Declined, terminal.ExitRefused},
		"page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<!DOCTYPE html><html><body>sign in</body></html>")
		}, results.Held, terminal.ExitUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, c.answer)
			file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\n1\n1\n")
			got := commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--workers", "1").Want(t, c.status)
			l := got.Lines(t)
			if len(l) != 2 || l[1].Result != c.want || l[1].OfRow != 1 {
				t.Errorf("lines %+v, want the second %s", l, c.want)
			}
			attempts := "1 request sent"
			if s.Sends.Load() == 2 {
				attempts = "2 requests sent"
			}
			if !strings.Contains(got.Err, "; "+attempts+"\n") {
				t.Errorf("%d sends, and it says %q", s.Sends.Load(), got.Err)
			}
		})
	}
}

package journal_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestStuckNamesTheCauseOfAHold: an operation held after an answer without an error has its cause in LAST ERROR, and in show.
func TestStuckNamesTheCauseOfAHold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		args   []string
		want   string
	}{
		{http.StatusAccepted, []string{"--done", "/status=ok"}, "answered 202: not what --done names as a success"},
		{http.StatusBadGateway, []string{"--profile", "none"}, "answered 502: and no key protects another send"},
	} {
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, `{"status":"processing"}`)
		})
		j := filepath.Join(t.TempDir(), "j.db")
		args := append([]string{"send", "POST", s.URL, "-d", "{}", "--key", "a", "--journal", j, "--max-attempts", "1"}, c.args...)
		commandtest.Run(t, commandtest.Fast(args...)...).Want(t, terminal.ExitUnknown)
		for _, command := range []string{"stuck", "show"} {
			args := []string{"journal", command, "a", "--journal", j}
			if got := commandtest.Run(t, args...).Want(t, terminal.ExitOK); !strings.Contains(got.Out, c.want) {
				t.Errorf("%s: %q, want %q", command, got.Out, c.want)
			}
		}
	}
}

package journal_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestPruneKeepTextOfAFile: in a file nothing would be saved. A dry run without it counts there, too.
func TestPruneKeepTextOfAFile(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	for _, key := range []string{"a", "b"} {
		commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--key", key, "--journal", journal).Want(t, terminal.ExitOK)
	}
	for _, at := range []string{journal, "redis://127.0.0.1:1/0"} {
		commandtest.Run(t, "journal", "prune", "--journal", at, "--keep-text", "1h").
			Usage(t, "oncehttp: --keep-text saves nothing in a file or on Redis, where a used key without its text is as large; it is for PostgreSQL and MariaDB")
	}
	for args, want := range map[string]string{
		"--keep-answer 240h":               "would drop 0 answers of ended operations, forget 0 used keys",
		"--keep-answer -1s":                "would drop 2 answers of ended operations, forget 0 used keys",
		"--keep-answer -1s --keep-key -1s": "would drop 0 answers of ended operations, forget 2 used keys",
	} {
		got := commandtest.Run(t, append([]string{"journal", "prune", "--journal", journal, "--dry-run"}, strings.Fields(args)...)...).Want(t, terminal.ExitOK)
		if !strings.HasPrefix(got.Out, want) {
			t.Errorf("%s: %q, want %q", args, got.Out, want)
		}
	}
}

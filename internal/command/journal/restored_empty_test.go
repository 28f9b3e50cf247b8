package journal_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestRestoredEmpty: a backup without an operation is noted as restored, too. A batch for an API without keys then pays nothing a second time unless it is told to.
func TestRestoredEmpty(t *testing.T) {
	t.Parallel()
	var well atomic.Bool
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if w.WriteHeader(map[bool]int{true: http.StatusCreated, false: http.StatusUnauthorized}[well.Load()]); well.Load() {
			_, _ = io.WriteString(w, `{}`)
		}
	})
	dir := t.TempDir()
	journal := filepath.Join(dir, "j.db")
	file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\na\nb\n")
	batch := func(args ...string) commandtest.Ran {
		return commandtest.Run(t, commandtest.Fast(append([]string{"batch", file, "--url", s.URL + "/pay", "--key", "o:{id}", "--journal", journal, "--profile", "none"}, args...)...)...)
	}
	batch().Want(t, terminal.ExitUnknown)
	taken := time.Now().UTC().Format(time.RFC3339)
	restore, restoreLog := copied(t, journal), copied(t, journal+".forgotten")
	well.Store(true)
	batch().Want(t, terminal.ExitOK)
	restore()
	restoreLog()
	got := commandtest.Run(t, "journal", "restored", journal, "--taken", taken).Want(t, terminal.ExitOK)
	if got.Out != "held: 0 operations\n" || !strings.Contains(got.Err, "it has no operation; if the backup had any, it was not loaded there") {
		t.Errorf("restored: %q, %q", got.Out, got.Err)
	}
	sent := s.Sends.Load()
	if got := batch().Want(t, terminal.ExitUsage); !strings.HasPrefix(got.Err, "the journal was restored at ") || !strings.Contains(got.Err, "say --yes; nothing was sent") {
		t.Errorf("batch: %s", got.Err)
	}
	if now := s.Sends.Load(); now != sent {
		t.Errorf("the batch sent %d requests, want none", now-sent)
	}
}

package batch_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestJournalMovedAway: a batch whose journal is moved away stops, and advises no run before it is back: at an API without keys a new journal would pay once more.
// The next run asks before it makes one.
func TestJournalMovedAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\n1\n2\n3\n4\n5\n6\n")
	at, away := file+journalEnd, filepath.Join(dir, "away")
	var answered atomic.Int64
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if answered.Add(1) == 2 {
			if err := os.Rename(at, away); err != nil {
				t.Error(err)
			}
			time.Sleep(1100 * time.Millisecond) // the journal looks at its place once a second at most
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"p1"}`)
	})
	batch := func(more ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--profile", "none", "--workers", "1"}, more...)...)
	}
	got := batch().Want(t, terminal.ExitUnknown)
	if strings.Contains(got.Err, "run the same command again") || !strings.Contains(got.Err, "put it back there before anything is run again") {
		t.Errorf("%q", got.Err)
	}
	sent := s.Sends.Load()
	asked := batch().Want(t, terminal.ExitUsage)
	asked.WantErr(t, "was moved or deleted while a batch had it open")
	asked.WantErr(t, "--new-journal")
	if dry := batch("--dry-run"); !strings.Contains(dry.Err, "was moved or deleted while a batch had it open") || !strings.Contains(dry.Err, "none without") {
		t.Errorf("dry run: %q", dry.Err)
	}
	if n := s.Sends.Load(); n != sent || sent > 3 {
		t.Errorf("%d sends, then %d; want 3 at most, and no more", sent, n)
	}
	if err := os.Rename(away, at); err != nil {
		t.Fatal(err)
	}
	batch().Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 6 {
		t.Errorf("%d sends for 6 rows", n)
	}
	if _, err := os.Lstat(at + ".lost"); err == nil {
		t.Error("the mark is left, with the journal back")
	}
}

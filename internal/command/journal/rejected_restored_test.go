package journal_test

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

// TestRejectedBeforeRestore: what was rejected before the backup, and done after it, is nowhere said to be still to do. The log was backed up with the journal.
func TestRejectedBeforeRestore(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{"beside others": "done\n", "alone": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRejectedBeforeRestore(t, first)
		})
	}
}

func testRejectedBeforeRestore(t *testing.T, first string) {
	var well atomic.Bool
	well.Store(true)
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !well.Load() {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = io.WriteString(w, `{}`)
	})
	dir := t.TempDir()
	journal := filepath.Join(dir, "j.db")
	batch := func(rows string, status int) {
		t.Helper()
		file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\n"+rows)
		commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL+"/pay", "--key", "o:{id}", "--journal", journal)...).Want(t, status)
	}
	if first != "" {
		batch(first, terminal.ExitOK)
	}
	well.Store(false)
	batch("a\n", terminal.ExitUnknown)
	taken := time.Now().UTC().Format(time.RFC3339)
	restore, restoreLog := copied(t, journal), copied(t, journal+".forgotten")
	well.Store(true)
	batch("a\n", terminal.ExitOK)
	restore()
	restoreLog()
	said := commandtest.Run(t, "journal", "restored", journal, "--taken", taken).Want(t, terminal.ExitOK)
	if !strings.Contains(said.Err, "What was rejected before may have been done since, too: ") {
		t.Errorf("restored: %s", said.Err)
	}
	well.Store(false)
	batch("b\n", terminal.ExitUnknown)

	clause := "1 from before the backup of " + taken
	run := func(args ...string) commandtest.Ran {
		t.Helper()
		return commandtest.Run(t, append(append([]string{"journal"}, args...), "--journal", journal)...)
	}
	for _, command := range []string{"stuck", "list"} {
		got := run(command, "--rejected")
		if strings.Count(got.Out, ": maybe done since ") != 1 || !strings.Contains(got.Out, "backup of "+taken) || !strings.Contains(got.Err, clause) || !strings.Contains(got.Err, " was restored: may have been done since; audit before") {
			t.Errorf("%s --rejected:\n%s%s", command, got.Out, got.Err)
		}
		if got := run(command, "--rejected", "--json"); strings.Count(got.Out, `"backup":"`+taken) != 1 {
			t.Errorf("%s --rejected --json:\n%s", command, got.Out)
		}
		if got := run(command); !strings.Contains(got.Err, "not done since, "+clause) {
			t.Errorf("%s: %s", command, got.Err)
		}
	}
	for key, want := range map[string]bool{"o:a": true, "o:b": false} {
		if got := run("show", key); strings.Contains(got.Out, "  restored  since then, from the backup of "+taken) != want {
			t.Errorf("show %s:\n%s", key, got.Out)
		}
	}
	if got := run("stats"); !strings.Contains(got.Out, "not done since, "+clause) {
		t.Errorf("stats:\n%s", got.Out)
	}
	if got := run("stats", "--json"); !strings.Contains(got.Out, `"rejected_forgotten":2,"rejected_before_restore":1`) {
		t.Errorf("stats --json:\n%s", got.Out)
	}
	if got := run("stats", "--quiet", "--fail-rejected", "0").Want(t, terminal.ExitFindings); !strings.Contains(got.Err, "--fail-rejected is 0, "+clause) {
		t.Errorf("stats --fail-rejected: %s", got.Err)
	}
	page := filepath.Join(dir, "page.html")
	run("report", "--out", page).Want(t, terminal.ExitOK)
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), clause) {
		t.Errorf("%v: the page does not tell", err)
	}
}

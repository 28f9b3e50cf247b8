package batch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestForgottenJournal: a file that was run with a --journal on a server, or in another folder, sends nothing without it before somebody says that it is meant, and neither
// does a renamed copy. Other rows, and the same journal again, are sent.
func TestForgottenJournal(t *testing.T) {
	t.Parallel()
	runs := func(t *testing.T, journal string) {
		s := receiving(t)
		dir := t.TempDir()
		args := func(file string, more ...string) []string {
			return append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}"}, more...)
		}
		const rows = "id,amount\na,1\nb,2\n"
		file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), rows)
		commandtest.Run(t, args(file, "--journal", journal)...).Want(t, terminal.ExitOK)
		for _, again := range []string{file, commandtest.WriteFile(t, filepath.Join(dir, "renamed.csv"), rows)} {
			got := commandtest.Run(t, args(again)...).Want(t, terminal.ExitUsage)
			if !strings.Contains(got.Err, again+": 2 of its 2 rows were run already with another journal, row 1 first (--journal ") || !strings.HasSuffix(got.Err, "; to go ahead all the same: --new-journal\n") {
				t.Errorf("%s: %q", again, got.Err)
			}
			commandtest.Run(t, args(again, "--dry-run")...).Want(t, terminal.ExitUsage)
			commandtest.Run(t, args(again, "--journal", filepath.Join(dir, "other.db"))...).Want(t, terminal.ExitUsage)
		}
		commandtest.Run(t, args(file, "--journal", journal)...).Want(t, terminal.ExitOK)
		if n := s.Sends.Load(); n != 2 {
			t.Errorf("%d sends, want 2", n)
		}
		other := commandtest.WriteFile(t, filepath.Join(dir, "rest.csv"), "id,amount\nc,3\n")
		commandtest.Run(t, args(other)...).Want(t, terminal.ExitOK)
		if commandtest.Run(t, args(file, "--new-journal")...).Want(t, terminal.ExitOK); s.Sends.Load() != 5 {
			t.Errorf("%d sends, want 5", s.Sends.Load())
		}
	}
	commandtest.OnServers(t, runs)
	t.Run("another folder", func(t *testing.T) {
		t.Parallel()
		runs(t, filepath.Join(t.TempDir(), "elsewhere.db"))
	})
}

// TestNotedJournalUnread: a noted journal that does not answer asks, and one whose file is gone does not.
func TestNotedJournalUnread(t *testing.T) {
	t.Parallel()
	s := receiving(t)
	dir := t.TempDir()
	file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\na\n")
	notes := filepath.Join(dir, ".oncehttp-journals")
	commandtest.WriteFile(t, notes, filepath.Join(dir, "gone", "j.db")+"\nredis://127.0.0.1:1/0\n")
	args := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
	got := commandtest.Run(t, args...).Want(t, terminal.ExitUsage)
	for _, want := range []string{file + ": files of its folder were run with --journal redis://127.0.0.1:1/0 (" + notes + " says so), which cannot be read: rows of the file may have been sent there: ", "--new-journal"} {
		if !strings.Contains(got.Err, want) {
			t.Errorf("%q, want %q in it", got.Err, want)
		}
	}
	if s.Sends.Load() != 0 {
		t.Errorf("%d sends", s.Sends.Load())
	}
	commandtest.WriteFile(t, notes, filepath.Join(dir, "gone", "j.db")+"\n")
	commandtest.Run(t, args...).Want(t, terminal.ExitOK)
	if text, err := os.ReadFile(notes); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("the default journal is noted: %q, %v", text, err)
	}
}

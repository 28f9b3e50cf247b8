package batch_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestAnotherAccountAsks: rows that were run for one account are not sent for another one, or for none, before somebody has said that this is meant; neither in the
// same journal, nor from a copy of the file.
func TestAnotherAccountAsks(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	dir := t.TempDir()
	batch := func(file string, more ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--profile", "none"}, more...)...)
	}
	paid := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\n1\n2\n3\n")
	batch(paid, "--account", "shop").Want(t, terminal.ExitOK)
	copied := commandtest.WriteFile(t, filepath.Join(dir, "copy.csv"), "id\n1\n2\n3\n")
	for _, file := range []string{paid, copied} {
		for _, account := range [][]string{nil, {"--account", "Shop"}} {
			for _, more := range [][]string{nil, {"--strict"}, {"--dry-run"}} {
				got := batch(file, append(account, more...)...).Want(t, terminal.ExitUsage)
				if !strings.Contains(got.Err, "--account shop goes on there") && more == nil {
					t.Errorf("%s %v %v: %s", file, account, more, got.Err)
				}
			}
		}
	}
	grown := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\n1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	batch(grown).Want(t, terminal.ExitUsage) // fewer than half of its rows
	commandtest.WriteFile(t, paid, "id\n1\n2\n3\n")
	batch(paid, "--account", "shop").Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 3 {
		t.Errorf("%d sends, want 3", n)
	}
	batch(paid, "--account", "Shop", "--new-journal").Want(t, terminal.ExitOK)
	batch(paid, "--account", "Shop").Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 6 {
		t.Errorf("%d sends, want 6: they were meant", n)
	}
}

// TestAnotherJournalAsks: a file that was run with its own journal is not sent with another one, which has operations of other files, before somebody has said that
// this is meant.
func TestAnotherJournalAsks(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	dir, all := t.TempDir(), filepath.Join(t.TempDir(), "all.db")
	batch := func(file string, more ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--profile", "none"}, more...)...)
	}
	other := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "other.csv"), "id\n7\n8\n")
	batch(other, "--journal", all).Want(t, terminal.ExitOK)
	paid := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\n1\n2\n3\n")
	batch(paid).Want(t, terminal.ExitOK)
	got := batch(paid, "--journal", all).Want(t, terminal.ExitUsage)
	if !strings.Contains(got.Err, paid+journalEnd) || !strings.Contains(got.Err, "goes on there, and sends nothing twice") {
		t.Errorf("stderr %q", got.Err)
	}
	batch(other, "--journal", all).Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 5 {
		t.Errorf("%d sends, want 5", n)
	}
	batch(paid, "--journal", all, "--new-journal").Want(t, terminal.ExitOK)
	batch(paid, "--journal", all).Want(t, terminal.ExitOK) // it stands there now
	if n := s.Sends.Load(); n != 8 {
		t.Errorf("%d sends, want 8", n)
	}
}

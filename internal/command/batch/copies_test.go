package batch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// A copy of a file that was run, under another name, sends nothing before somebody says that it is meant.
func TestBatchCopyAsks(t *testing.T) {
	t.Parallel()
	s := receiving(t)
	dir := t.TempDir()
	rows := "id,amount\na,1\nb,2\n"
	file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), rows)
	args := func(file string, more ...string) []string {
		return append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}"}, more...)
	}
	commandtest.Run(t, args(file)...).Want(t, terminal.ExitOK)
	renamed := filepath.Join(dir, "in (1).csv")
	if err := os.Rename(file, renamed); err != nil {
		t.Fatal(err)
	}
	journal := file + ".oncehttp.db"
	told := renamed + ": row 1 was run already under another name of the file" +
		" (--journal " + journal + " goes on there, and sends nothing twice)"
	commandtest.Run(t, args(renamed)...).Usage(t, "oncehttp: "+told+"; to go ahead all the same: --new-journal")
	if _, err := os.Stat(renamed + ".oncehttp.db"); err == nil {
		t.Error("a journal was made before anybody was asked")
	}
	if got := commandtest.Run(t, args(renamed, "--dry-run")...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, told+"\n") {
		t.Errorf("--dry-run: stderr %q", got.Err)
	}
	commandtest.Run(t, args(renamed, "--journal", journal)...).Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 2 {
		t.Errorf("%d sends, want 2", n)
	}

	// Other content, another key and another account are no copy, and one that is meant is sent.
	other := commandtest.WriteFile(t, filepath.Join(dir, "other.csv"), "id,amount\na,3\nb,4\n")
	commandtest.Run(t, args(other)...).Want(t, terminal.ExitOK)
	commandtest.Run(t, args(renamed, "--new-journal")...).Want(t, terminal.ExitOK)
	again := commandtest.WriteFile(t, filepath.Join(dir, "again.csv"), rows)
	commandtest.Run(t, args(again, "--account", "x")...).Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 8 {
		t.Errorf("%d sends, want 8", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "z.oncehttp.db"), []byte("no journal"), 0o600); err != nil {
		t.Fatal(err)
	}
	third := commandtest.WriteFile(t, filepath.Join(dir, "third.csv"), rows)
	commandtest.Run(t, args(third)...).Want(t, terminal.ExitUsage)
}

// A file whose requests were begun under other keys is warned about, in the same journal and in one beside it; --strict refuses it, and a run under the same keys
// says nothing.
func TestBatchOtherKeysAreTold(t *testing.T) {
	t.Parallel()
	s := receiving(t)
	dir := t.TempDir()
	rows := "id,amount\na,1\nb,2\n"
	file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), rows)
	args := func(file, prefix string, more ...string) []string {
		return append([]string{"batch", file, "--url", s.URL, "--key", prefix + ":{id}"}, more...)
	}
	commandtest.Run(t, args(file, "o")...).Want(t, terminal.ExitOK)
	for _, file := range []string{file, commandtest.WriteFile(t, filepath.Join(dir, "copy.csv"), rows)} {
		told := file + `: the requests of 2 rows were begun before under other keys, such as "idemp:o:`
		if got := commandtest.Run(t, args(file, "x", "--dry-run")...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, told) {
			t.Errorf("--dry-run: %q, want %q", got.Err, told)
		}
		before := s.Sends.Load()
		got := commandtest.Run(t, args(file, "x", "--strict")...).Want(t, terminal.ExitUsage)
		if !strings.Contains(got.Err, told) || !strings.Contains(got.Err, "--strict") || s.Sends.Load() != before {
			t.Errorf("--strict: %q after %d sends", got.Err, s.Sends.Load()-before)
		}
	}
	for _, quiet := range [][]string{args(file, "o"), args(file, "o", "--strict"), args(file, "x", "--new-journal", "--dry-run")} {
		if got := commandtest.Run(t, quiet...).Want(t, terminal.ExitOK); strings.Contains(got.Err, "other keys") {
			t.Errorf("%q: %q", quiet, got.Err)
		}
	}
	if got := commandtest.Run(t, args(file, "x")...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, "under other keys") || s.Sends.Load() != 4 {
		t.Errorf("%q after %d sends, want a warning and four", got.Err, s.Sends.Load())
	}
}

package command_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// No output is written over a journal, nor over the rows of a batch: one line names the flag and the file, and both are as they were.
func TestOutputsSpareWhatStands(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	dir := t.TempDir()
	rows := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\na\n")
	commandtest.Run(t, "batch", rows, "--url", s.URL, "--key", "o:{id}").Want(t, terminal.ExitOK)
	journal, other, fresh := rows+".oncehttp.db", filepath.Join(dir, "other.db"), filepath.Join(dir, "new.db")
	send := []string{"send", "POST", s.URL, "-d", "{}", "--key", "k"}
	commandtest.Run(t, append(send, "--journal", other)...).Want(t, terminal.ExitOK)
	before := commandtest.Tree(t, dir)
	for _, args := range [][]string{
		{"journal", "stats", "--journal", journal, "--prometheus", journal},
		{"journal", "stats", "--journal", journal, "--prometheus", rows},
		{"journal", "report", "--journal", journal, "--out", other},
		{"journal", "report", "--journal", journal, "--out", rows},
		{"journal", "export", "--journal", journal, "--out", other},
		{"journal", "export", "--journal", journal, "--out", rows},
		append(send, "--journal", journal, "-o", other),
		append(send, "--journal", fresh, "-o", fresh),
		{"batch", rows, "--url", s.URL, "--key", "o:{id}", "--out", other, "--overwrite"},
	} {
		got := commandtest.Run(t, args...).Want(t, terminal.ExitUsage)
		if name := args[len(args)-1]; !strings.Contains(got.Err, filepath.Base(name)) && name != "--overwrite" || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%q: %q, want a line that names the file", args, got.Err)
		}
	}
	if after := commandtest.Tree(t, dir); !slices.Equal(after, before) {
		t.Errorf("changed:\n%s\nbefore:\n%s", after, before)
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Error("a file was made")
	}
}

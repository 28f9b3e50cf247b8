package batch_test

import (
	"fmt"
	"net/http"
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
	told := renamed + ": 2 of its 2 rows were run already under another name of the file, or with --journal, row 1 first" +
		" (--journal " + journal + " goes on there, and sends nothing twice)"
	commandtest.Run(t, args(renamed)...).Usage(t, "oncehttp: "+told+"; to go ahead all the same: --new-journal")
	if _, err := os.Stat(renamed + ".oncehttp.db"); err == nil {
		t.Error("a journal was made before anybody was asked")
	}
	if got := commandtest.Run(t, args(renamed, "--dry-run")...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, told+"\n") {
		t.Errorf("--dry-run: stderr %q", got.Err)
	}
	keys := commandtest.WriteFile(t, filepath.Join(dir, "keys"), "k1:"+strings.Repeat("A", 43)+"=\n")
	commandtest.Run(t, args(renamed, "--seal-key", "@"+keys)...).Usage(t, "oncehttp: "+told+"; to go ahead all the same: --new-journal")
	commandtest.Run(t, args(renamed, "--journal", journal)...).Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 2 {
		t.Errorf("%d sends, want 2", n)
	}

	// Other keys and another account are no copy, and one that is meant is sent.
	other := commandtest.WriteFile(t, filepath.Join(dir, "other.csv"), "id,amount\nc,3\nd,4\n")
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

// A file whose requests were begun under other keys is refused where nobody can be asked, in the same journal and in one beside it; a run under the same keys
// says nothing, and --new-journal takes it as meant.
func TestBatchOtherKeysAreRefused(t *testing.T) {
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
		got := commandtest.Run(t, args(file, "x", "--dry-run")...).Want(t, terminal.ExitUsage)
		if !strings.Contains(got.Err, told) || !strings.Contains(got.Err, "2 would be sent with --new-journal, and none without") {
			t.Errorf("--dry-run: %q, want %q", got.Err, told)
		}
		before := s.Sends.Load()
		for _, more := range []string{"--strict", "--quiet"} {
			refused := commandtest.Run(t, args(file, "x", more)...).Want(t, terminal.ExitUsage)
			if !strings.Contains(refused.Err, told) || !strings.Contains(refused.Err, map[string]string{"--strict": "--strict", "--quiet": "; to go ahead all the same: --new-journal"}[more]) {
				t.Errorf("%s: %q", more, refused.Err)
			}
		}
		if s.Sends.Load() != before {
			t.Errorf("%d sends, want none", s.Sends.Load()-before)
		}
	}
	for _, quiet := range [][]string{args(file, "o"), args(file, "o", "--strict"), args(file, "x", "--new-journal", "--dry-run")} {
		if got := commandtest.Run(t, quiet...).Want(t, terminal.ExitOK); strings.Contains(got.Err, "other keys") {
			t.Errorf("%q: %q", quiet, got.Err)
		}
	}
	if commandtest.Run(t, args(file, "x", "--new-journal")...).Want(t, terminal.ExitOK); s.Sends.Load() != 4 {
		t.Errorf("%d sends, want four", s.Sends.Load())
	}
}

// A file with a column more, whose keys stand in a journal beside it, sends nothing before somebody says that it is meant. Another API has other keys.
func TestBatchKnownKeysAsk(t *testing.T) {
	t.Parallel()
	for name, journal := range map[string]string{"default": "p1.csv.oncehttp.db", "of another name": "none1.db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, other := receiving(t), receiving(t)
			dir := t.TempDir()
			journal := filepath.Join(dir, journal)
			args := func(url, file string, more ...string) []string {
				return append([]string{"batch", file, "--url", url, "--key", "o:{id}"}, more...)
			}
			first := commandtest.WriteFile(t, filepath.Join(dir, "p1.csv"), "id,amount\na,1\nb,2\n")
			commandtest.Run(t, args(s.URL, first, "--journal", journal)...).Want(t, terminal.ExitOK)
			file := commandtest.WriteFile(t, filepath.Join(dir, "p3.csv"), "id,amount,memo\na,1,x\nb,2,y\nc,4,z\n")
			told := file + ": the keys of 2 of 3 rows stand in " + journal + ", begun with other content (what differs: memo)" +
				" (--journal " + journal + " goes on there, and sends nothing twice)"
			commandtest.Run(t, args(s.URL, file)...).Usage(t, "oncehttp: "+told+"; to go ahead all the same: --new-journal")
			if got := commandtest.Run(t, args(s.URL, file, "--dry-run")...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, told+"\n") {
				t.Errorf("--dry-run: stderr %q", got.Err)
			}
			if n := s.Sends.Load(); n != 2 {
				t.Errorf("%d sends, want 2", n)
			}
			commandtest.Run(t, args(other.URL, file)...).Want(t, terminal.ExitOK)
		})
	}
}

// A copy is found behind any number of newer journals, and by any of its rows: the copied ones stand below new ones. A journal that cannot be read is told, and
// --strict refuses then. So is a part of the rows that was not looked for.
func TestBatchCopyBehindOthers(t *testing.T) {
	t.Parallel()
	s := receiving(t)
	dir := t.TempDir()
	args := func(file string, more ...string) []string {
		return append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--profile", "none"}, more...)
	}
	first := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id,amount\na,1\nb,2\n")
	commandtest.Run(t, args(first)...).Want(t, terminal.ExitOK)
	for i := range 22 {
		later := commandtest.WriteFile(t, filepath.Join(dir, fmt.Sprintf("later%d.csv", i)), fmt.Sprintf("id,amount\nx%d,1\n", i))
		commandtest.Run(t, args(later)...).Want(t, terminal.ExitOK)
	}
	rows := func(n int) string {
		var b strings.Builder
		b.WriteString("id,amount\n")
		for i := range n {
			fmt.Fprintf(&b, "new%d,3\n", i)
		}
		return b.String()
	}
	file := commandtest.WriteFile(t, filepath.Join(dir, "copy.csv"), rows(5000)+"a,1\nb,2\n")
	told := file + ": 2 of its 5002 rows were run already under another name of the file, or with --journal, row 5001 first (--journal " + first + journalEnd
	for _, more := range [][]string{{}, {"--strict"}, {"--dry-run"}} {
		if got := commandtest.Run(t, args(file, more...)...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, told) {
			t.Errorf("%q: stderr %q, want %q", more, got.Err, told)
		}
	}
	if n := s.Sends.Load(); n != 24 {
		t.Errorf("%d sends, want 24", n)
	}

	commandtest.WriteFile(t, filepath.Join(dir, "z.csv"+journalEnd), "no journal")
	other := commandtest.WriteFile(t, filepath.Join(dir, "other.csv"), rows(9))
	told = other + ": 1 journal beside it cannot be read"
	if got := commandtest.Run(t, args(other, "--strict")...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, told) {
		t.Errorf("--strict: %q, want %q", got.Err, told)
	}
	if got := commandtest.Run(t, args(other)...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, "warning: "+told) {
		t.Errorf("%q, want %q", got.Err, told)
	}

	large := commandtest.WriteFile(t, filepath.Join(dir, "large.csv"), strings.ReplaceAll(rows(70_000), "new", "more"))
	told = large + ": 35000 of its 70000 rows, evenly spread, were looked for in the journals beside it"
	if got := commandtest.Run(t, args(large, "--dry-run")...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, told) {
		t.Errorf("%q, want %q", got.Err, told)
	}
}

// A folder with more journals than are looked at is told, and refused where nobody can be asked.
func TestBatchTooManyJournalsAsk(t *testing.T) {
	t.Parallel()
	s := receiving(t)
	dir := t.TempDir()
	for i := range 1001 {
		commandtest.WriteFile(t, filepath.Join(dir, fmt.Sprintf("%d.db", i)), "")
	}
	file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "id\na\n")
	args := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
	got := commandtest.Run(t, args...).Want(t, terminal.ExitUsage) // on a busy machine there is no time for some others, either
	for _, text := range []string{"oncehttp: " + file + ": ", " of the files that may be journals beside it w", " not looked at: rows of the file may have been sent there; to go ahead all the same: --new-journal\n"} {
		if !strings.Contains(got.Err, text) {
			t.Errorf("stderr %q, want %q", got.Err, text)
		}
	}
	commandtest.Run(t, append(args, "--new-journal")...).Want(t, terminal.ExitOK)
}

const journalEnd = ".oncehttp.db"

// TestOwnJournalThatCannotBeRead: a file whose own journal cannot be read, as without its --seal-key, asks before its rows are run with another one.
func TestOwnJournalThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	keys := commandtest.WriteFile(t, "seal.keys", "a:"+strings.Repeat("QUFB", 10)+"QUE=\n")
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n2\n")
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
	commandtest.Run(t, append(batch, "--seal-key", "@"+keys)...).Want(t, terminal.ExitOK)
	batch[1] = filepath.Dir(file) + "/../" + filepath.Base(filepath.Dir(file)) + "/in.csv" // the same by another name
	got := commandtest.Run(t, append(batch, "--journal", filepath.Join(t.TempDir(), "new.db"))...).Want(t, terminal.ExitUsage)
	if !strings.Contains(got.Err, "in.csv: its own journal cannot be read: rows of the file may have been sent there: ") || !strings.Contains(got.Err, "give --seal-key @FILE") || s.Sends.Load() != 2 {
		t.Errorf("%d sends: %s", s.Sends.Load(), got.Err)
	}
}

// TestAnotherServerAsks: a file whose own journal knows another server alone asks before it is sent to this one.
func TestAnotherServerAsks(t *testing.T) {
	t.Parallel()
	answer := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }
	right, wrong := commandtest.Serve(t, answer), commandtest.Serve(t, answer)
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	batch := func(url string, more ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"batch", file, "--url", url, "--key", "o:{id}"}, more...)...)
	}
	batch(right.URL).Want(t, terminal.ExitOK)
	commandtest.WriteFile(t, file, "id\n1\n2\n")
	for _, more := range [][]string{nil, {"--dry-run"}} {
		got := batch(wrong.URL, more...).Want(t, terminal.ExitUsage)
		if !strings.Contains(got.Err, "its rows were sent to "+right.URL+" before, and none to "+wrong.URL+": if --url is mistyped, new rows go to a wrong server") || wrong.Sends.Load() != 0 {
			t.Errorf("%v: %d sends: %s", more, wrong.Sends.Load(), got.Err)
		}
	}
	batch(right.URL).Want(t, terminal.ExitOK)
	commandtest.WriteFile(t, file, "id\n1\n2\n3\n")
	if batch(wrong.URL, "--other-server").Want(t, terminal.ExitRefused); wrong.Sends.Load() != 1 || right.Sends.Load() != 2 {
		t.Errorf("%d and %d sends", wrong.Sends.Load(), right.Sends.Load())
	}
}

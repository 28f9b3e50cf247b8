package bolt_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

// TestFailedAttemptStaysGone: the first commit of a process reaches the disk but for its meta page. The first commit of the next
// process has the same number, and the same pages. Wherever the power fails then, and if of what is under way only the meta
// page arrives, it must not lead to the commit that failed.
func TestFailedAttemptStaysGone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testrun.Dir(t), journalName)
	j := open(t, path)
	begin(t, j, sized("before", 100))
	before, err := compact(j)
	if err != nil {
		t.Fatal(err)
	}
	closeIt(t, j)
	closed := readFile(t, path)

	// A process begins a record, and all of it is on the disk but the meta page.
	calls := runScriptOn(t, path, closed, "open\nbegin failed 100", powercut.Fault{})
	attempt, metaPages := slices.Clone(closed), 0
	for i := range calls {
		if c := &calls[i]; c.Name == "pwrite64" && c.At >= 2*pageSize {
			attempt = written(attempt, c)
		} else if c.Name == "pwrite64" && len(c.Data) == pageSize {
			metaPages++
		}
	}
	if metaPages != 1 || len(bolt.NewPages(attempt)) == 0 {
		t.Fatalf("%d meta pages were written, want 1", metaPages)
	}

	calls = runScriptOn(t, path, attempt, "open\nbegin second 100\nclose", powercut.Fault{})
	after := ""
	for i := range calls {
		if sign, state, ok := saidLine(&calls[i]); ok && sign == "=" {
			after = state
		}
	}
	durable, memory, images := slices.Clone(attempt), slices.Clone(attempt), 0
	for i := range calls {
		switch c := &calls[i]; {
		case c.Name == "fdatasync":
			durable = slices.Clone(memory)
		case c.Name == "pwrite64":
			memory = written(memory, c)
			if c.At < 2*pageSize {
				images++
				got := shownAfter(t, path, written(durable, c))
				if got != before && got != after {
					t.Errorf("with the write at %d alone there is\n%s\nwant\n%s\nor\n%s", c.At, got, before, after)
				}
			}
		}
	}
	if images < 2 || after == before {
		t.Errorf("%d writes to meta pages, want that of a commit and its mark", images)
	}
}

// written is a file after a call that writes to it.
func written(file []byte, c *powercut.Call) []byte {
	file = append(slices.Clone(file), make([]byte, max(0, int(c.At)+len(c.Data)-len(file)))...)
	copy(file[c.At:], c.Data)
	return file
}

// shownAfter is what a journal shows whose file is this one.
func shownAfter(t *testing.T, path string, file []byte) string {
	t.Helper()
	path += ".copy"
	writeFile(t, path, file)
	j := open(t, path)
	defer closeIt(t, j)
	got, err := compact(j)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

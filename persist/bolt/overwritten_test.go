package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// overwrites are ways of writing other content over a file, whose inode stays.
var overwrites = map[string]func(t testing.TB, path string, content []byte){
	"cp": writeFile, // cuts the file to nothing first
	"dd conv=notrunc": func(t testing.TB, path string, content []byte) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(content, 0)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	},
}

// skipOverwriting skips a test on systems that do not let anybody write over a file that is open and mapped.
func skipOverwriting(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be cut on Windows")
	}
}

// TestOverwritten copies a backup over the open file. The next call that would acknowledge something, or read from the file, is
// ErrGone; the journal does nothing more, and leaves the file as it was put there. The next Open reads all of it.
func TestOverwritten(t *testing.T) {
	t.Parallel()
	skipOverwriting(t)
	for how := range overwrites {
		for _, between := range []int{1, 3, 40} {
			for first := range firstCalls {
				t.Run(fmt.Sprintf("%s/%d commits/%s", how, between, first), func(t *testing.T) {
					t.Parallel()
					overwrite(t, overwrites[how], between, firstCalls[first])
				})
			}
		}
	}
}

// firstCalls are the calls after the file was overwritten. open is an open record.
var firstCalls = map[string]func(j *bolt.Journal, open persist.Record) error{
	"Begin": func(j *bolt.Journal, _ persist.Record) error {
		_, created, err := j.Begin(context.Background(), record("after"))
		if created {
			return errors.New("it was created")
		}
		return err
	},
	"Update": func(j *bolt.Journal, open persist.Record) error {
		_, err := j.Update(context.Background(), open)
		return err
	},
	"Finish and Flush": func(j *bolt.Journal, open persist.Record) error {
		if err := j.Finish(context.Background(), confirmed(open)); err != nil {
			return err
		}
		return j.Flush(context.Background())
	},
	"Get of a changed record": func(j *bolt.Journal, open persist.Record) error {
		got, err := j.Get(context.Background(), open.ID)
		if err == nil {
			return fmt.Errorf("it is read at revision %d, and is at %d", got.Revision, open.Revision)
		}
		return err
	},
	"List": func(j *bolt.Journal, _ persist.Record) error {
		_, err := contents(j)
		return err
	},
	"Flush": func(j *bolt.Journal, _ persist.Record) error { return j.Flush(context.Background()) },
	"Close": func(j *bolt.Journal, _ persist.Record) error { return j.Close() },
}

func overwrite(t *testing.T, write func(testing.TB, string, []byte), between int, first func(*bolt.Journal, persist.Record) error) {
	path := newPath(t)
	j := open(t, path)
	held := begin(t, j, record("held"))
	for i := range 5 {
		begin(t, j, record(fmt.Sprint("before-", i)))
	}
	want, backup := mustContents(t, j), readFile(t, path)
	for i := range between - 1 {
		begin(t, j, record(fmt.Sprint("between-", i)))
	}
	held.Attempts++
	held, err := j.Update(context.Background(), held)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, backup)
	put := readFile(t, path)
	wantErr(t, first(j, held), persist.ErrGone, path)
	_, created, err := j.Begin(context.Background(), record("later"))
	if created || err == nil {
		t.Errorf("a later Begin: created %t, error %v", created, err)
	}
	for name, call := range firstCalls {
		if name == "Close" {
			continue
		}
		if err := call(j, held); !errors.Is(err, persist.ErrUncertain) && !errors.Is(err, persist.ErrClosed) {
			t.Errorf("%s afterwards: %v, want the first error", name, err)
		}
	}
	_ = j.Close()
	if !slices.Equal(readFile(t, path), put) {
		t.Error("the file put there was written to")
	}
	j = openWith(t, path, bolt.Options{LockWait: -1})
	if got := mustContents(t, j); !slices.Equal(got, want) {
		t.Errorf("the backup holds %q, want %q", got, want)
	}
}

// TestOverwrittenByAnother copies other contents over the open file: a later state of it, another history that has as many
// commits, another journal, and no journal at all.
func TestOverwrittenByAnother(t *testing.T) {
	t.Parallel()
	skipOverwriting(t)
	path := newPath(t)
	j := open(t, path)
	begin(t, j, record("a"))
	closeIt(t, j)
	same := readFile(t, path)
	// after returns a file with more commits.
	after := func(t *testing.T, file []byte, n int) []byte {
		path := newPath(t)
		writeFile(t, path, file)
		j := open(t, path)
		for i := range n {
			begin(t, j, record(fmt.Sprint("other-", i)))
		}
		closeIt(t, j)
		return readFile(t, path)
	}
	contents := map[string]func(t *testing.T, now []byte) []byte{
		"another history": func(t *testing.T, _ []byte) []byte { return after(t, same, 1) },
		"one commit more": func(t *testing.T, now []byte) []byte { return after(t, now, 1) },
		"later":           func(t *testing.T, now []byte) []byte { return after(t, now, 4) },
		"nothing":         func(*testing.T, []byte) []byte { return nil },
		"a short text":    func(*testing.T, []byte) []byte { return []byte("x") },
		"zeros":           func(*testing.T, []byte) []byte { return make([]byte, 1<<16) },
		"another journal": func(t *testing.T, _ []byte) []byte {
			path := newPath(t)
			closeIt(t, open(t, path))
			return after(t, readFile(t, path), 2)
		},
	}
	for how, contentOf := range contents {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			writeFile(t, path, same)
			j := open(t, path)
			begin(t, j, record("b"))
			content := contentOf(t, readFile(t, path))
			writeFile(t, path, content)
			_, created, err := j.Begin(context.Background(), record("c"))
			if wantErr(t, err, persist.ErrGone, path); created {
				t.Error("it was created")
			}
			wantErr(t, j.Close(), persist.ErrGone, path)
			if !slices.Equal(readFile(t, path), content) {
				t.Error("the file put there was written to")
			}
		})
	}
}

// TestOverwrittenDuringCommit copies a backup over the file while a commit is being written: it is not acknowledged.
func TestOverwrittenDuringCommit(t *testing.T) {
	t.Parallel()
	skipOverwriting(t)
	for how, write := range overwrites {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			var backup []byte
			j := openWith(t, path, bolt.Options{Sync: func(*os.File) error {
				if backup != nil {
					write(t, path, backup)
				}
				return nil
			}})
			begin(t, j, record("a"))
			old := readFile(t, path)
			begin(t, j, record("b"))
			backup = old
			_, created, err := j.Begin(context.Background(), record("c"))
			if wantErr(t, err, persist.ErrGone, path); created {
				t.Error("it was created")
			}
			wantErr(t, j.Close(), persist.ErrGone, path)
		})
	}
}

// TestEmptiedUnderneath reads while a copy has only cut the file to nothing yet: no later call hangs.
func TestEmptiedUnderneath(t *testing.T) {
	t.Parallel()
	skipOverwriting(t)
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		j := open(t, path)
		r := begin(t, j, record("a"))
		whole := readFile(t, path)
		writeFile(t, path, nil)
		_, err := j.Get(context.Background(), r.ID)
		wantErr(t, err, persist.ErrGone, path)
		writeFile(t, path, whole)
		_, _, err = j.Begin(context.Background(), record("b"))
		wantErr(t, err, persist.ErrGone, path)
		time.Sleep(time.Minute)
		wantErr(t, j.Close(), persist.ErrGone, path)
		closeIt(t, openWith(t, path, bolt.Options{LockWait: -1}))
	})
}

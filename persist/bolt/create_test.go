package bolt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestEmptyFile: a journal is never empty, so that an empty file was cut off, and
// what it held is not forgotten in silence. The same goes for any shorter file.
func TestEmptyFile(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	closeIt(t, open(t, path))
	whole := readFile(t, path)
	for size := 0; size < len(whole); size += sectorSize {
		writeFile(t, path, whole[:size])
		_, err := tryOpen(path, bolt.Options{})
		wantErr(t, err, persist.ErrCorrupt, path)
		if got := readFile(t, path); !slices.Equal(got, whole[:size]) {
			t.Errorf("a file of %d bytes was written to", size)
		}
	}
}

// TestCreate: a new journal has its permissions and its name, and leaves nothing
// beside it, also through a symbolic link.
func TestCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("journal.db", link); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("symbolic links need a privilege on Windows:", err)
		}
		t.Fatal(err)
	}
	closeIt(t, open(t, link))
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("creation left %v, %v", entries, err)
	}
	info, err := os.Lstat(filepath.Join(dir, "journal.db"))
	if err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	ids := map[string]bool{}
	for i := range 3 {
		path := filepath.Join(dir, fmt.Sprint(i))
		closeIt(t, open(t, path))
		ids[string(readFile(t, path))] = true
	}
	if len(ids) != 3 {
		t.Error("two journals have one id")
	}
}

// TestPermissions: others may not read a journal, its group may if it could.
func TestPermissions(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // no such permissions
	}
	for before, want := range map[os.FileMode]os.FileMode{0o600: 0o600, 0o644: 0o640, 0o666: 0o660, 0o660: 0o660, 0o607: 0o600} {
		path := newPath(t)
		closeIt(t, open(t, path))
		if err := os.Chmod(path, before); err != nil {
			t.Fatal(err)
		}
		closeIt(t, open(t, path))
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("mode %v became %v, %v; want %v", before, info.Mode(), err, want)
		}
	}
}

// TestLockBeforeRepair: a file that somebody else holds is not repaired.
func TestLockBeforeRepair(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	begin(t, j, record("k"))
	file := readFile(t, path)
	cut := slices.Clone(file) // a commit that was cut off
	pages := bolt.NewPages(cut)
	older := 1 - bolt.NewestMeta(cut)
	clear(cut[older*pageSize+sectorSize:][:sectorSize])
	clear(cut[int(pages[len(pages)-1])*pageSize:][:pageSize])
	writeFile(t, path, cut)
	_, err := tryOpen(path, bolt.Options{LockWait: -1})
	wantErr(t, err, persist.ErrLocked, path)
	if !slices.Equal(readFile(t, path), cut) {
		t.Error("a file that another holds was written to")
	}
	writeFile(t, path, file)
	closeIt(t, j)
	if s := fmt.Sprint(err); strings.Count(s, path) != 1 {
		t.Errorf("error %q does not name the file once", s)
	}
}

package bolt_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestProtectedFile: a file that may not be written to, as on a medium for reading alone, opens for reading, unless a crash has left a commit in it that opening must end.
func TestProtectedFile(t *testing.T) {
	t.Parallel()
	protected := func(name string, flag int, perm os.FileMode) (*os.File, error) {
		if flag&(os.O_RDWR|os.O_WRONLY) != 0 {
			return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EROFS}
		}
		return os.OpenFile(name, flag, perm)
	}
	path := newPath(t)
	ids := filled(t, path, 40)
	before := readFile(t, path)
	want := readThrough(t, openWith(t, path, bolt.Options{}), ids)
	if got := readThrough(t, openWith(t, path, bolt.Options{ReadOnly: true, OpenFile: protected}), ids); !slices.Equal(got, want) {
		t.Errorf("it reads\n%q\nwant\n%q", got, want)
	}
	if _, err := bolt.Open(path, bolt.Options{OpenFile: protected}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("for writing: %v", err)
	}
	clear(before[(1-bolt.NewestMeta(before))*pageSize+sectorSize:][:sectorSize]) // the newest commit has no mark
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Open(path, bolt.Options{ReadOnly: true, OpenFile: protected}); err == nil || !strings.Contains(err.Error(), "open a copy of it") {
		t.Errorf("with a commit to be ended: %v", err)
	}
	if !slices.Equal(readFile(t, path), before) {
		t.Error("the file was changed")
	}
}

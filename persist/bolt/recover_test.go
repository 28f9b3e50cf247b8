package bolt_test

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// failingReader fails one read, the n-th.
type failingReader struct {
	io.ReaderAt
	n *int
}

func (f failingReader) ReadAt(b []byte, at int64) (int, error) {
	if *f.n--; *f.n == -1 {
		return 0, syscall.EIO
	}
	return f.ReaderAt.ReadAt(b, at)
}

// TestReadFails: where the disk fails to read a page, nothing is known about the
// commit, and nothing is forgotten.
func TestReadFails(t *testing.T) {
	t.Parallel()
	moments := story(t)
	last := moments[len(moments)-8]
	path := newPath(t)
	// The newest commit is whole and has no mark.
	unmarked := slices.Clone(last.file)
	older := 1 - bolt.NewestMeta(unmarked)
	clear(unmarked[older*pageSize+sectorSize:][:sectorSize])
	failed := 0
	for n := range 1000 {
		writeFile(t, path, unmarked)
		left := n
		opts := bolt.WithRead(bolt.Options{}, func(f io.ReaderAt) io.ReaderAt { return failingReader{f, &left} })
		j, err := tryOpen(path, opts)
		if left >= 0 { // there are fewer reads
			closeIt(t, j)
			break
		}
		if failed++; err == nil {
			closeIt(t, j)
		}
		if !errors.Is(err, syscall.EIO) || errors.Is(err, persist.ErrCorrupt) {
			t.Errorf("read %d fails: %v, want the error of the disk", n, err)
		}
		j, err = tryOpen(path, bolt.Options{})
		if err != nil {
			t.Errorf("after read %d had failed: %v", n, err)
			continue
		}
		if got := mustContents(t, j); !slices.Equal(got, last.want) {
			t.Errorf("after read %d had failed there is\n%q\nwant\n%q", n, got, last.want)
		}
		closeIt(t, j)
	}
	if failed < 10 || failed == 1000 {
		t.Errorf("Open failed %d times", failed)
	}
}

package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// diskWith is a disk with a journal on it that holds some records.
func diskWith(t *testing.T, seed uint64, records int) (*disk, *bolt.Journal) {
	t.Helper()
	path := newPath(t)
	closeIt(t, open(t, path))
	d := newDisk(t, path, rand.New(rand.NewPCG(seed, 0)), readFile(t, path))
	j := openWith(t, path, d.options())
	for i := range records {
		begin(t, j, record(fmt.Sprintf("before-%d", i)))
	}
	return d, j
}

// TestReopenAfterFailedSync: opening the journal again is what ErrUncertain tells
// people to do. What Open then gives must be on the disk, although the kernel takes
// the pages that it could not write for clean.
func TestReopenAfterFailedSync(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		d, j := diskWith(t, seed, 3)
		d.fail = true
		_, _, err := j.Begin(context.Background(), sized("uncertain", 30_000))
		wantErr(t, err, persist.ErrUncertain, d.path)
		wantErr(t, j.Close(), persist.ErrUncertain, d.path)

		j = openWith(t, d.path, d.options())
		want := mustContents(t, j)
		if seed%2 == 0 {
			begin(t, j, record("later"))
			want = mustContents(t, j)
		}
		// The power fails: only what was synced is left.
		writeFile(t, d.path+".copy", d.afterPowerLoss(0))
		after, err := tryOpen(d.path+".copy", bolt.Options{})
		if err != nil {
			t.Errorf("seed %d: after a failed sync, reopening and a power failure: %v", seed, err)
			continue
		}
		if got := mustContents(t, after); !slices.Equal(got, want) {
			t.Errorf("seed %d: after a failed sync, reopening and a power failure there is\n%q\nwant\n%q", seed, got, want)
		}
		closeIt(t, after)
		closeIt(t, j)
	}
}

// TestCloseSyncsTheMark: after Close the last commit is known to be whole, even
// after a power failure. With a page of it damaged the file is refused, and the
// commit is not taken for one that was cut off.
func TestCloseSyncsTheMark(t *testing.T) {
	t.Parallel()
	d, j := diskWith(t, 1, 5)
	closeIt(t, j)
	file, tried := d.afterPowerLoss(0), 0
	for _, p := range bolt.NewPages(file) {
		if p < 2 {
			continue
		}
		tried++
		damaged := slices.Clone(file)
		damaged[int(p)*pageSize+40] ^= 1
		writeFile(t, d.path, damaged)
		damagedJournal, err := tryOpen(d.path, bolt.Options{})
		wantErr(t, err, persist.ErrCorrupt, d.path)
		if err == nil {
			closeIt(t, damagedJournal)
		}
		if !bytes.Equal(readFile(t, d.path), damaged) {
			t.Errorf("a file with page %d damaged was written to", p)
		}
	}
	if tried == 0 {
		t.Error("no page was damaged")
	}
}

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

// TestForgottenCommitStaysForgotten: a commit that was cut off, and that an Open
// has forgotten, does not come back after a power failure, not even if that Open
// could not sync.
func TestForgottenCommitStaysForgotten(t *testing.T) {
	t.Parallel()
	moments := story(t)
	before, after := moments[4], moments[5]
	for _, fails := range []bool{false, true} {
		path := newPath(t)
		// All of the commit is on the disk; the kernel has lost a page of it.
		d := newDisk(t, path, rand.New(rand.NewPCG(1, 1)), after.file)
		pages := bolt.NewPages(after.file)
		cut := slices.Clone(after.file)
		older := 1 - bolt.NewestMeta(cut)
		clear(cut[older*pageSize+sectorSize:][:sectorSize])
		d.durable = slices.Clone(cut)
		clear(cut[int(pages[len(pages)-1])*pageSize:][:pageSize])
		writeFile(t, path, cut)
		d.seen = cut
		if d.fail = fails; fails {
			d.r = rand.New(never{})
			if _, err := tryOpen(path, d.options()); !errors.Is(err, syscall.EIO) {
				t.Errorf("Open that cannot sync: %v", err)
			}
		}
		j := openWith(t, path, d.options())
		if got := mustContents(t, j); !slices.Equal(got, before.want) {
			t.Errorf("a commit that was cut off: got\n%q\nwant\n%q", got, before.want)
		}
		writeFile(t, path+".copy", d.afterPowerLoss(0))
		k := open(t, path+".copy")
		if got := mustContents(t, k); !slices.Equal(got, before.want) {
			t.Errorf("sync failed %t: a forgotten commit came back: got\n%q\nwant\n%q", fails, got, before.want)
		}
		closeIt(t, k)
		closeIt(t, j)
	}
}

// never is a source whose every draw of two is the second.
type never struct{}

func (never) Uint64() uint64 { return ^uint64(0) }

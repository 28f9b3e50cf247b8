package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// sample is a journal with records of all kinds, as a file that was closed, and
// as one whose process was killed.
func sample(t testing.TB) (closed, killed []byte, want []string) {
	t.Helper()
	path := newPath(t)
	j := open(t, path)
	for i := range 60 {
		r := begin(t, j, record(fmt.Sprintf("order-%d", i)))
		if i%2 == 0 {
			finish(t, j, r)
		}
	}
	begin(t, j, sized("large", 40_000))
	flush(t, j)
	want = mustContents(t, j)
	killed = readFile(t, path)
	closeIt(t, j)
	return readFile(t, path), killed, want
}

// examine opens a damaged file, see damaged.
func examine(t testing.TB, dir, how string, file []byte, want []string) (refused bool) {
	t.Helper()
	refused, err := damaged(filepath.Join(dir, "damaged.db"), file, want)
	if err != nil {
		t.Errorf("%s: %v", how, err)
	}
	return refused
}

// damaged opens a damaged file. It must be refused and left as it is, or give
// every record as it was, or say of a record that it is damaged: nothing that
// was acknowledged may be missing in silence. refused also reports the last of these.
func damaged(path string, file []byte, want []string) (refused bool, err error) {
	for _, readOnly := range []bool{true, false} {
		its, err := damagedWith(path, file, want, bolt.Options{ReadOnly: readOnly})
		if err != nil {
			return false, fmt.Errorf("read only %t: %w", readOnly, err)
		}
		refused = refused || its
	}
	return refused, nil
}

func damagedWith(path string, file []byte, want []string, opts bolt.Options) (refused bool, err error) {
	if err := errors.Join(os.WriteFile(path, file, 0o600), os.Chmod(path, openMode)); err != nil {
		return false, err
	}
	j, err := tryOpen(path, opts)
	if err != nil {
		return true, checkRefused(path, file, err)
	}
	defer j.Close()
	var got []string
	damaged := 0
	for r, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
		switch {
		case errors.Is(err, persist.ErrCorrupt):
			damaged++
		case err != nil:
			return false, fmt.Errorf("List: %w", err)
		default:
			got = append(got, line(&r))
		}
	}
	if len(got)+damaged != len(want) {
		return false, fmt.Errorf("%d records and %d damaged ones of %d", len(got), damaged, len(want))
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			return false, fmt.Errorf("it gave %q, which never was", l)
		}
	}
	return damaged > 0, nil
}

// openMode lets everybody read a file. Open takes that from a journal, and not from a file that it refuses.
const openMode = 0o644

// checkRefused checks the error of an Open, and that the file, of openMode, is as it was.
func checkRefused(path string, file []byte, refusal error) error {
	known := errors.Is(refusal, persist.ErrCorrupt) || errors.Is(refusal, bolt.ErrFormat) // a damaged version looks like another one
	if s := refusal.Error(); !known || !strings.Contains(s, path) || strings.Contains(s, "\n") {
		return fmt.Errorf("got error %q, want ErrCorrupt or ErrFormat in one line that names the file", s)
	}
	now, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(now, file) {
		err = errors.New("the file was refused and written to")
	}
	if info, statErr := os.Stat(path); err == nil && runtime.GOOS != "windows" && (statErr != nil || info.Mode() != openMode) {
		err = fmt.Errorf("the file was refused, and its mode is %v", info.Mode())
	}
	return err
}

func TestDamagedByte(t *testing.T) {
	t.Parallel()
	closed, killed, want := sample(t)
	for name, file := range map[string][]byte{"closed": closed, "killed": killed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, refused := testrun.Dir(t), 0
			for at := 0; at < len(file); at++ {
				// All of the meta pages and marks, and some of the rest.
				within := at % pageSize
				if described := at < 2*pageSize && (within < 80 || within >= 512 && within < 536); !described && at%389 != 0 {
					continue
				}
				b := slices.Clone(file)
				b[at] ^= 1 << (at % 8)
				if examine(t, dir, fmt.Sprintf("bit %d of byte %d", at%8, at), b, want) {
					refused++
				}
			}
			if refused < 100 {
				t.Errorf("only %d flipped bits were noticed", refused)
			}
		})
	}
}

func TestDamagedPage(t *testing.T) {
	t.Parallel()
	closed, killed, want := sample(t)
	for name, file := range map[string][]byte{"closed": closed, "killed": killed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, pages, refused := testrun.Dir(t), len(file)/pageSize, 0
			for p := range pages {
				for how, fill := range map[string]func([]byte){
					"zeros":        func(b []byte) { clear(b) },
					"ones":         func(b []byte) { copy(b, bytes.Repeat([]byte{0xff}, pageSize)) },
					"next page":    func(b []byte) { copy(b, file[(p+1)%pages*pageSize:][:pageSize]) },
					"half zeros":   func(b []byte) { clear(b[pageSize/2:]) },
					"a meta page":  func(b []byte) { copy(b, file[:pageSize]) },
					"another page": func(b []byte) { copy(b[16:], file[(p*7+3)%pages*pageSize:][:pageSize-16]) },
				} {
					b := slices.Clone(file)
					fill(b[p*pageSize:][:pageSize])
					if examine(t, dir, fmt.Sprintf("page %d is %s", p, how), b, want) {
						refused++
					}
				}
			}
			if refused < pages {
				t.Errorf("only %d damages of %d pages were noticed", refused, pages)
			}
		})
	}
}

func TestTruncated(t *testing.T) {
	t.Parallel()
	closed, killed, want := sample(t)
	dir := testrun.Dir(t)
	for name, file := range map[string][]byte{"closed": closed, "killed": killed} {
		refused, sizes := 0, 0
		for size := 64; size < len(file); size += 1021 {
			sizes++
			if examine(t, dir, fmt.Sprintf("%s, %d of %d bytes", name, size, len(file)), file[:size], want) {
				refused++
			}
		}
		// bbolt makes its files larger than it needs.
		if refused < sizes/2 {
			t.Errorf("%s: %d of %d lengths were noticed", name, refused, sizes)
		}
		examine(t, dir, name+" with bytes behind it", append(slices.Clone(file), "behind it"...), want)
	}
}

// TestDamagedUnmarked damages each page of a journal after a power failure that has
// cost it the mark of its newest commit. This is the one case in which an
// acknowledged commit may go unnoticed: without the mark, a damaged newest commit
// looks like one that was cut off. All that was there before it must be there, or
// the file is refused.
func TestDamagedUnmarked(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	for i := range 40 {
		begin(t, j, record(fmt.Sprintf("order-%d", i)))
	}
	older := mustContents(t, j)
	begin(t, j, record("newest"))
	newest := mustContents(t, j)
	file := readFile(t, path) // before the mark is on the disk
	closeIt(t, j)
	clear(file[(1-bolt.NewestMeta(file))*pageSize+sectorSize:][:sectorSize])
	dir, refused, lost := testrun.Dir(t), 0, 0
	for at := 100; at < len(file); at += sectorSize / 2 {
		b := slices.Clone(file)
		b[at+at%37] ^= 1 << (at % 8)
		path := filepath.Join(dir, "damaged.db")
		writeFile(t, path, b)
		j, err := tryOpen(path, bolt.Options{})
		if err != nil {
			refused++
			wantErr(t, err, persist.ErrCorrupt, path)
			if !bytes.Equal(readFile(t, path), b) {
				t.Errorf("byte %d: the file was refused and written to", at)
			}
			continue
		}
		switch got := mustContents(t, j); {
		case slices.Equal(got, newest):
		case slices.Equal(got, older):
			lost++
		default:
			t.Errorf("byte %d: it holds %q", at, got)
		}
		closeIt(t, j)
	}
	if refused == 0 || lost == 0 {
		t.Errorf("%d damages were refused, %d took the newest commit for cut off", refused, lost)
	}
}

// FuzzOpen writes over a part of a journal's file.
func FuzzOpen(f *testing.F) {
	file, _, want := sample(f)
	f.Add(uint32(16), []byte("\xed\xda\x0c\xed"))
	f.Add(uint32(pageSize+512), make([]byte, 24))
	f.Add(uint32(3*pageSize+8), []byte{1, 0, 255, 255})
	f.Fuzz(func(t *testing.T, at uint32, patch []byte) {
		b := slices.Clone(file)
		copy(b[int(at)%len(b):], patch)
		examine(t, testrun.Dir(t), fmt.Sprintf("%d bytes at %d", len(patch), int(at)%len(b)), b, want)
	})
}

// TestLoop makes a branch of the tree lead back to itself, which bbolt would
// follow until its stack overflows.
func TestLoop(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	for i := range 300 {
		begin(t, j, record(fmt.Sprintf("order-%d", i)))
	}
	want := mustContents(t, j)
	closeIt(t, j)
	file := readFile(t, path)
	loops := 0
	for p := 2; p < len(file)/pageSize; p++ {
		page := file[p*pageSize:][:pageSize]
		if page[8] != 1 { // a branch page
			continue
		}
		b := slices.Clone(file)
		child := b[p*pageSize+16+8:][:8]
		clear(child)
		child[0], child[1] = byte(p), byte(p>>8)
		if examine(t, testrun.Dir(t), fmt.Sprintf("page %d leads to itself", p), b, want) {
			loops++
		}
	}
	if loops == 0 {
		t.Error("no branch of the tree was made a loop")
	}
}

// TestForeignFile: what is no journal is refused and left as it is.
func TestForeignFile(t *testing.T) {
	t.Parallel()
	dir := testrun.Dir(t)
	other := filepath.Join(dir, "other.db")
	db, err := bbolt.Open(other, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("somebody's"))
		if err != nil {
			return err
		}
		return b.Put([]byte("key"), []byte("value"))
	})
	if err != nil || db.Close() != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{
		"text":           []byte("user,order\nu1,o1\n"),
		"long text":      []byte(strings.Repeat("user,order\nu1,o1\n", 5000)),
		"one byte":       {'x'},
		"another's bolt": readFile(t, other),
	} {
		path := filepath.Join(dir, name)
		if refused, err := damaged(path, file, nil); err != nil || !refused {
			t.Errorf("%s: refused %t, %v", name, refused, err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "no such directory", "journal.db")} {
		_, err := tryOpen(path, bolt.Options{})
		if err == nil || errors.Is(err, persist.ErrCorrupt) || !strings.Contains(err.Error(), path) {
			t.Errorf("Open of %s: %v", path, err)
		}
	}
}

// TestCutUnderneath truncates the file of an open journal: reading what is gone
// is an error, not the end of the process. Put back, the file opens at once.
func TestCutUnderneath(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	for i := range 200 {
		begin(t, j, record(fmt.Sprintf("order-%d", i)))
	}
	whole, want := readFile(t, path), mustContents(t, j)
	if err := os.Truncate(path, 2*pageSize); err != nil {
		t.Fatal(err)
	}
	_, err := j.Get(context.Background(), persist.ID{Account: "acct", Key: "order-7"})
	wantErr(t, err, persist.ErrCorrupt, path)
	if _, err := contents(j); !errors.Is(err, persist.ErrCorrupt) {
		t.Errorf("List: %v, want ErrCorrupt", err)
	}
	_, _, err = j.Begin(context.Background(), record("another"))
	wantErr(t, err, persist.ErrUncertain, path)
	wantErr(t, j.Close(), persist.ErrUncertain, path)
	writeFile(t, path, whole)
	j = openWith(t, path, bolt.Options{LockWait: -1})
	if got := mustContents(t, j); !slices.Equal(got, want) {
		t.Errorf("put back it holds %q", got)
	}
}

// panics is a logger that panics once bbolt has locked and mapped the file, where a page that was damaged since it was checked
// would make bbolt panic. Such a page is no use here: bbolt reads it in a goroutine of its own, and races with its own panic.
type panics struct{ bbolt.Logger }

func (panics) Infof(format string, _ ...any) {
	if strings.Contains(format, "successfully") {
		panic(format)
	}
}

// TestLockAfterPanic: where bbolt panics, the file is refused, and its lock is free, so that it opens at once afterwards.
func TestLockAfterPanic(t *testing.T) {
	t.Parallel()
	file, _, _ := sample(t)
	path := newPath(t)
	writeFile(t, path, file)
	_, err := tryOpen(path, bolt.WithLogger(bolt.Options{}, panics{}))
	wantErr(t, err, persist.ErrCorrupt, "successfully")
	closeIt(t, openWith(t, path, bolt.Options{LockWait: -1}))
}

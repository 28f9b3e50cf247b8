package bolt_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// withKept is r with kept fields.
func withKept(r persist.Record) persist.Record {
	r.KeptFields = []persist.KeptField{{Pointer: "/amount", Value: "100"}, {Pointer: "/note", Omitted: true}}
	return r
}

// setFormat writes the version of the format into the file of a closed journal.
func setFormat(t *testing.T, path, format string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("oncehttp")).Put([]byte("format"), []byte(format))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestOtherFormats: a file that another version wrote is refused with one line, which names the file and says what to do,
// and stays as it is.
func TestOtherFormats(t *testing.T) {
	t.Parallel()
	for format, advice := range map[string]string{
		"1": "finish its operations with that program", "2": "finish its operations with that program",
		"v1": "finish its operations with that program", "v2": "finish its operations with that program", "v4": "use a newer program", "v12": "use a newer program",
	} {
		path := newPath(t)
		j := open(t, path)
		begin(t, j, record("order-1"))
		closeIt(t, j)
		setFormat(t, path, format)
		before := readFile(t, path)
		_, err := tryOpen(path, bolt.Options{})
		wantErr(t, err, bolt.ErrFormat, path)
		if text := err.Error(); errors.Is(err, persist.ErrCorrupt) || !strings.Contains(text, advice) || strings.Contains(text, "\n") {
			t.Errorf("format %q: %v; want one line with %q, and no damage", format, err, advice)
		}
		if !bytes.Equal(readFile(t, path), before) {
			t.Errorf("format %q: the file was changed", format)
		}
	}
}

// TestFilesOfBefore: files that a program from before the first release wrote, of either format that it had, are refused the same way,
// also where it was killed before a mark said that its last commit is whole.
func TestFilesOfBefore(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/before/*.gz")
	if err != nil || len(names) != 4 {
		t.Fatalf("the files are %q, %v", names, err)
	}
	for _, name := range names {
		f, err := gzip.NewReader(bytes.NewReader(readFile(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		before, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		path := newPath(t)
		writeFile(t, path, before)
		_, err = tryOpen(path, bolt.Options{})
		wantErr(t, err, bolt.ErrFormat, path)
		if !strings.Contains(fmt.Sprint(err), "finish its operations with that program") || errors.Is(err, persist.ErrCorrupt) {
			t.Errorf("%s: %v; want what to do, and no damage", name, err)
		}
		if !bytes.Equal(readFile(t, path), before) {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// TestTokenReopened: a server's token is there when the file is opened again.
func TestTokenReopened(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	r := record("order-1")
	r.ServerToken, r.WireKey = true, ""
	r = begin(t, j, r)
	closeIt(t, j)
	j = open(t, path)
	r.Token, r.MaybeSent, r.FirstSent = "tok_1", true, time.Now().UTC()
	if _, err := j.Update(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	closeIt(t, j)
	got, err := open(t, path).Get(context.Background(), r.ID)
	if err != nil || got.KeyOnWire() != "tok_1" || !got.MaybeSent || !got.FirstSent.Equal(r.FirstSent) {
		t.Errorf("after the file was opened again: %+v, %v", got, err)
	}
}

// TestSweepKeeps: the tombstone of a record whose body lies outside its entry has the
// kept fields, also after the file was opened again.
func TestSweepKeeps(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	finish(t, j, begin(t, j, withKept(sized("order-1", 100<<10))))
	if n, err := j.Sweep(context.Background(), persist.Limits{Prune: true, KeepAnswer: -1, Now: time.Now()}); n != 1 || err != nil {
		t.Fatalf("Sweep: %d, %v", n, err)
	}
	closeIt(t, j)
	got, err := open(t, path).Get(context.Background(), persist.ID{Account: "acct", Key: "order-1"})
	if err != nil || !got.Swept || got.Body != nil || !slices.Equal(got.KeptFields, withKept(record("")).KeptFields) {
		t.Errorf("the tombstone is %+v, %v", got, err)
	}
}

// TestAboutIsInTheDigest: what the file says about itself, its format, id and secret, is a part of what a whole commit must
// have. Junk over it in the newest commit, which has lost its mark, gives the commit before; in a marked one it is damage.
func TestAboutIsInTheDigest(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	begin(t, j, record("older"))
	older := mustContents(t, j)
	begin(t, j, record("newest"))
	closeIt(t, j)
	marked := readFile(t, path)
	unmarked := slices.Clone(marked)
	clear(unmarked[(1-bolt.NewestMeta(marked))*pageSize+sectorSize:][:sectorSize])
	pages := bolt.NewPages(marked)
	root := int(pages[len(pages)-1]) * pageSize
	for name, value := range about(t, path) {
		at := bytes.Index(marked[root:][:pageSize], value)
		if at < 0 {
			t.Fatalf("the %s is not in the root page", name)
		}
		for _, file := range [][]byte{marked, unmarked} {
			b := slices.Clone(file)
			b[root+at] ^= 1
			writeFile(t, path, b)
			j, err := tryOpen(path, bolt.Options{})
			if &file[0] == &marked[0] {
				wantErr(t, err, persist.ErrCorrupt, path)
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := mustContents(t, j); !slices.Equal(got, older) {
				t.Errorf("%s: it holds %q, want %q", name, got, older)
			}
			closeIt(t, j)
		}
	}
}

// about is what a file says about itself.
func about(t *testing.T, path string) map[string][]byte {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("oncehttp")).ForEach(func(k, v []byte) error {
			all[string(k)] = bytes.Clone(v)
			return nil
		})
	})
	if err := errors.Join(err, db.Close()); err != nil || len(all) != 3 {
		t.Fatalf("it says %d things about itself, %v; want its format, id and secret", len(all), err)
	}
	return all
}

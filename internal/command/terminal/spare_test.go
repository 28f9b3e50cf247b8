package terminal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

func TestAnOutputIsNeverWrittenOverAJournal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "payments.db")
	db, err := bbolt.Open(name, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if CheckFolder(name) == nil {
		t.Error("--out may be a journal")
	}
	if SpareJournal("--prometheus", name) == nil {
		t.Error("--prometheus may be a journal")
	}
	if err := CheckFolder(name + ".new"); err != nil {
		t.Error(err)
	}
}

// What an output always begins with is written over; anything else is not.
func TestAnOutputIsNeverWrittenOverOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, spared := range map[string]bool{"": false, "<!DOCTYPE html><p>": false, "id,amount\n1,2\n": true, "<": true} {
		name := filepath.Join(dir, "out")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := SpareOthers("--out", name, "<!doctype html>"); (err != nil) != spared {
			t.Errorf("%q: %v, want it spared: %t", text, err, spared)
		}
		if err := SpareJournal("--out", name); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A write that fails leaves the file as it was, and nothing beside it; a link still leads to the file, and its mode stays.
func TestWriteWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, link := filepath.Join(dir, "page"), filepath.Join(dir, "link")
	if err := os.WriteFile(name, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left")
	var exit *ExitError
	err := WriteWhole("--out", link, 0o600, func(w io.Writer) error { _, _ = io.WriteString(w, "new"); return full })
	if !errors.Is(err, full) || !errors.As(err, &exit) || exit.Status != ExitUnknown || !strings.HasPrefix(err.Error(), "--out "+link+": ") {
		t.Errorf("%v, want the error with status %d", err, ExitUnknown)
	}
	for _, want := range []string{"old", "new"} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%q, %v, want %q", text, err, want)
		}
		if want == "new" {
			break
		}
		if err := WriteWhole("--out", link, 0o600, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil {
			t.Error(err)
		}
	}
	info, err := os.Stat(name)
	left, _ := os.ReadDir(dir)
	if kind, lerr := os.Lstat(link); err != nil || lerr != nil || info.Mode().Perm() != 0o640 || kind.Mode()&os.ModeSymlink == 0 || len(left) != 2 {
		t.Errorf("%v, %v, %d files, want mode 640, a link and two", info, kind, len(left))
	}
}

package bolt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

// syncedBefore are the directories that were synced before the first line with a sign.
func syncedBefore(calls []powercut.Call, sign string) []string {
	open, synced := map[int]string{}, []string{}
	for i := range calls {
		c := &calls[i]
		switch s, _, ok := said(c); {
		case ok && s == sign:
			return synced
		case c.Name == "openat" && c.Failed == "":
			open[c.FD] = c.Path
		case c.Name == "fsync" && c.Failed == "":
			synced = append(synced, open[c.FD])
		}
	}
	return nil
}

// TestNamesSynced: whoever made, moved or linked the file, its directory and that of each link is synced before anything
// is acknowledged.
func TestNamesSynced(t *testing.T) {
	t.Parallel()
	for how, prepare := range map[string]func(a, b string) error{
		"created":                  func(a, b string) error { return os.Symlink(b+"/real.db", a+"/journal.db") },
		"created, a relative link": func(a, b string) error { return os.Symlink("../b/real.db", a+"/journal.db") },
		"moved": func(a, b string) error {
			return errors.Join(made(a+"/other.db"), os.Rename(a+"/other.db", b+"/real.db"), os.Symlink(b+"/real.db", a+"/journal.db"))
		},
		"a link to a link": func(a, b string) error {
			return errors.Join(os.Symlink(b+"/real.db", a+"/2.db"), os.Symlink("2.db", a+"/journal.db"))
		},
		"a link through a link": func(a, b string) error {
			return errors.Join(os.Symlink(b, a+"/dir"), os.Symlink("dir/real.db", a+"/journal.db"))
		},
		"above a linked directory": func(a, b string) error {
			return errors.Join(os.MkdirAll(b+"/deep", 0o700), os.Symlink(b+"/deep", a+"/dir"), os.Symlink("dir/../real.db", a+"/journal.db"))
		},
		"there already, and closed": func(a, b string) error {
			return errors.Join(made(b+"/real.db"), os.Symlink(b+"/real.db", a+"/journal.db"))
		},
	} {
		root := t.TempDir()
		a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
		if err := errors.Join(os.Mkdir(a, 0o700), os.Mkdir(b, 0o700), prepare(a, b)); err != nil {
			t.Fatal(err)
		}
		calls := recorded(t, filepath.Join(a, "journal.db"), "open\nbegin k 1\nclose", powercut.Fault{})
		synced := syncedBefore(calls, "=")
		var resolved []string
		for _, dir := range synced {
			if real, err := filepath.EvalSymlinks(dir); err == nil {
				resolved = append(resolved, real)
			}
		}
		if !slices.Contains(resolved, a) || !slices.Contains(resolved, b) {
			t.Errorf("%s: before Open returned there were synced: %q", how, synced)
		}
		if _, err := os.Stat(b + "/real.db"); err != nil {
			t.Errorf("%s: the file is not where the link leads: %v", how, err)
		}
	}
}

// made makes a journal with one record.
func made(path string) error {
	j, err := tryOpen(path, bolt.Options{})
	if err != nil {
		return err
	}
	return j.Close()
}

// TestNamesNotSynced: an Open whose directory cannot be synced because of the disk fails. Where the system cannot sync
// directories, or does not let the process open this one, Stats says so.
func TestNamesNotSynced(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	closeIt(t, open(t, path))
	base := recorded(t, path, "open\nclose", powercut.Fault{})
	opens, syncs := nthOf(base, "openat", filepath.Dir(path)), nthOf(base, "fsync", "")
	for fault, opened := range map[powercut.Fault]bool{
		{Call: "fsync", Nth: syncs, What: "error=EIO"}:        false,
		{Call: "fsync", Nth: syncs, What: "error=ENOSPC"}:     false,
		{Call: "fsync", Nth: syncs, What: "error=EDQUOT"}:     false,
		{Call: "fsync", Nth: syncs, What: "error=EINVAL"}:     true,
		{Call: "fsync", Nth: syncs, What: "error=EOPNOTSUPP"}: true,
		{Call: "fsync", Nth: syncs, What: "error=EINTR"}:      true, // and tried again
		{Call: "openat", Nth: opens, What: "error=EACCES"}:    true,
		{Call: "openat", Nth: opens, What: "error=EIO"}:       false,
	} {
		calls := recorded(t, path, "open\nstats\nclose", fault)
		if !slices.ContainsFunc(calls, func(c powercut.Call) bool {
			return c.Name == fault.Call && c.Failed != "" && strings.HasSuffix(fault.What, c.Failed)
		}) {
			t.Errorf("%v: nothing failed", fault)
		}
		var got []string
		for i := range calls {
			if sign, rest, ok := said(&calls[i]); ok && sign != ">" && sign != "." {
				got = append(got, sign+" "+rest)
			}
		}
		wantFirst := map[bool]string{true: "= ", false: "? "}[opened]
		if len(got) == 0 || !strings.HasPrefix(got[0], wantFirst) || !opened && !strings.Contains(got[0], path) {
			t.Errorf("%v: it said %q", fault, got)
		}
		if opened && !slices.Contains(got, fmt.Sprintf("+ %t", strings.Contains(fault.What, "EINTR"))) {
			t.Errorf("%v: Stats do not say it: %q", fault, got)
		}
	}
	j := open(t, path)
	if !j.Stats().NamesSynced {
		t.Error("Stats say that the names are not synced")
	}
}

// nthOf is which of the calls of its name and its thread is the first that opens a path, or the last of all if path is "".
func nthOf(calls []powercut.Call, name, path string) int {
	n, thread := 0, 0
	for i := range calls {
		if c := &calls[i]; c.Name == name && (path == "" || c.Path == path || c.Path == path+"/") {
			n, thread = i, c.Thread
			if path != "" {
				break
			}
		}
	}
	nth := 0
	for i := range calls[:n+1] {
		if calls[i].Name == name && calls[i].Thread == thread {
			nth++
		}
	}
	return nth
}

// TestSecondName: the temporary name that a creation has left, which is the file itself, goes at the next Open. Any other
// temporary file stays.
func TestSecondName(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	closeIt(t, open(t, path))
	litter := []string{path + ".1.tmp", path + ".tmp", path + ".2.tmp.kept"}
	for _, l := range litter {
		if err := os.WriteFile(l, readFile(t, path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(path, path+".123.tmp"); err != nil {
		t.Fatal(err)
	}
	closeIt(t, open(t, path))
	if _, err := os.Stat(path + ".123.tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the second name is there: %v", err)
	}
	for _, l := range append(litter, path) {
		if info, err := os.Stat(l); err != nil || info.Sys().(*syscall.Stat_t).Nlink != 1 {
			t.Errorf("%s: %v", l, err)
		}
	}
}

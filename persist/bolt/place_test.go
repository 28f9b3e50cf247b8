package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// verdict is the result of the first Begin, a second after something happened to the file.
type verdict int

const (
	begun    verdict = iota
	refused          // ErrGone, and nothing was written
	doubtful         // ErrGone and ErrUncertain: it was written to the open file, and not to the one at the path
)

// displacement is what becomes of the file of an open journal.
type displacement struct {
	do   func() error
	then verdict
}

// displacements are all of them. backup is an older copy of the file.
func displacements(t *testing.T, path, backup string) map[string]displacement {
	other, copied := path+".other", path+".copied"
	closeIt(t, open(t, other))
	writeFile(t, copied, readFile(t, path))
	aside := func(there string) func() error {
		return func() error { return errors.Join(os.Rename(path, path+".away"), os.Rename(there, path)) }
	}
	return map[string]displacement{
		"nothing":                     {func() error { return nil }, begun},
		"deleted":                     {func() error { return os.Remove(path) }, refused},
		"renamed":                     {func() error { return os.Rename(path, path+".away") }, refused},
		"replaced by another journal": {func() error { return os.Rename(other, path) }, refused},
		"replaced by a copy":          {func() error { return os.Rename(copied, path) }, refused},
		"replaced by something else": {func() error {
			return errors.Join(os.Rename(path, path+".away"), os.WriteFile(path, []byte("x"), 0o600))
		}, refused},
		"another name as well":                        {func() error { return os.Link(path, path+".second") }, begun},
		"another journal in its place, kept aside":    {aside(other), refused},
		"a backup in its place, kept aside":           {aside(backup), refused},
		"a copy in its place, kept aside":             {aside(copied), doubtful},
		"a copy in its place, with a link to the old": {func() error { return errors.Join(os.Link(path, path+".away"), os.Rename(copied, path)) }, doubtful},
	}
}

// TestDisplaced: once the file of an open journal is not at its path any more, nothing is begun, while what is under way ends.
func TestDisplaced(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"nothing", "deleted", "renamed", "replaced by another journal", "replaced by a copy",
		"replaced by something else", "another name as well", "another journal in its place, kept aside", "a backup in its place, kept aside",
		"a copy in its place, kept aside", "a copy in its place, with a link to the old"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			synctest.Test(t, func(t *testing.T) { displace(t, path, how) })
		})
	}
}

func displace(t *testing.T, path, how string) {
	ctx := context.Background()
	j := open(t, path)
	underWay := begin(t, j, record("under way"))
	backup := path + ".backup"
	writeFile(t, backup, readFile(t, path))
	other := begin(t, j, record("under way, too"))
	d := displacements(t, path, backup)[how]
	if err := d.do(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		time.Sleep(time.Second)
		r := record(fmt.Sprint("new-", i))
		_, created, err := j.Begin(ctx, r)
		if d.then == begun {
			if err != nil || !created {
				t.Errorf("Begin: %t, %v", created, err)
			}
			continue
		}
		wantErr(t, err, persist.ErrGone, path)
		inDoubt := i == 0 && d.then == doubtful
		if errors.Is(err, persist.ErrUncertain) != inDoubt {
			t.Errorf("Begin: %v, want ErrUncertain %t", err, inDoubt)
		}
		if _, err := j.Get(ctx, r.ID); errors.Is(err, persist.ErrNotFound) == inDoubt || created {
			t.Errorf("what was refused was begun: %t, %v", created, err)
		}
	}
	underWay.Attempts++
	underWay, err := j.Update(ctx, underWay)
	if err != nil {
		t.Errorf("Update: %v", err)
	}
	if err := j.Forget(ctx, other); err != nil {
		t.Errorf("Forget: %v", err)
	}
	finish(t, j, underWay)
	flush(t, j)
	if how == "renamed" || how == "a backup in its place, kept aside" { // and back
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		begin(t, j, record("new"))
	}
	closeIt(t, j)
}

// TestOneFileAsTwo: a system shows the open file and the file at its path as two files. The commits in both show that they are
// one, and every Begin goes on.
func TestOneFileAsTwo(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		j := openWith(t, path, bolt.WithTwoNumbers(bolt.Options{}))
		for i := range 5 {
			var all sync.WaitGroup
			for w := range 8 {
				all.Go(func() {
					if _, created, err := j.Begin(context.Background(), record(fmt.Sprint(i, "-", w))); err != nil || !created {
						t.Errorf("Begin: created %t, error %v", created, err)
					}
				})
			}
			all.Wait()
			time.Sleep(time.Second)
		}
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, readFile(t, path+".away"))
		_, created, err := j.Begin(context.Background(), record("to a copy"))
		if wantErr(t, err, persist.ErrGone, path); created {
			t.Error("it was created")
		}
		closeIt(t, j)
	})
}

// TestDoubtOfTwoCallers: two callers begin one ID while the file may be a copy. Neither is told that it stands there.
func TestDoubtOfTwoCallers(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	begin(t, j, record("a"))
	writeFile(t, path+".copied", readFile(t, path))
	if err := errors.Join(os.Rename(path, path+".away"), os.Rename(path+".copied", path)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			_, _, err := j.Begin(context.Background(), record("b"))
			wantErr(t, err, persist.ErrGone, path)
		})
	}
	all.Wait()
	closeIt(t, j)
}

// TestDoubtOutlastsAFailedCommit: the commit that would show the difference between the open file and its copy is not written.
func TestDoubtOutlastsAFailedCommit(t *testing.T) {
	t.Parallel()
	path, full := newPath(t), errors.New("disk full")
	synctest.Test(t, func(t *testing.T) {
		var fails error
		j := openWith(t, path, bolt.WithCommit(bolt.Options{}, func() error { return fails }))
		begin(t, j, record("a"))
		writeFile(t, path+".copied", readFile(t, path))
		if err := errors.Join(os.Rename(path, path+".away"), os.Rename(path+".copied", path)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		fails = full
		for range 3 {
			_, _, err := j.Begin(context.Background(), record("b"))
			wantErr(t, err, full, path)
		}
		fails = nil
		_, _, err := j.Begin(context.Background(), record("b"))
		wantErr(t, err, persist.ErrGone, path)
		closeIt(t, j)
	})
}

// TestAtPlaceDuringCommits compares the open file with itself while commits come in between.
func TestAtPlaceDuringCommits(t *testing.T) {
	t.Parallel()
	j := openWith(t, newPath(t), bolt.Options{Sync: func(*os.File) error { return nil }})
	var writer sync.WaitGroup
	stop := make(chan bool)
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				begin(t, j, record(fmt.Sprint(i)))
			}
		}
	})
	for range 2000 {
		if !j.AtPlace() {
			t.Error("the open file is taken for another one")
			break
		}
	}
	close(stop)
	writer.Wait()
	closeIt(t, j)
}

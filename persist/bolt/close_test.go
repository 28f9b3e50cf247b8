package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// fullDisk is a journal on a disk on which some commits find no space. The first commit after openFull waits for a signal,
// and so does the second.
type fullDisk struct {
	*bolt.Journal
	path    string
	entered chan struct{}
	results chan error
	left    []error // of the commits that do not wait
}

func openFull(t *testing.T, path string) *fullDisk {
	t.Helper()
	d := &fullDisk{path: path, entered: make(chan struct{}), results: make(chan error)}
	waiting := 0
	d.Journal = openWith(t, path, bolt.WithCommit(bolt.Options{Sync: func(*os.File) error { return nil }}, func() error {
		if waiting > 0 {
			waiting--
			d.entered <- struct{}{}
			return <-d.results
		}
		if len(d.left) == 0 {
			return nil
		}
		err := d.left[0]
		d.left = d.left[1:]
		return err
	}))
	for i := range 4 {
		r := record(fmt.Sprintf("finish-%d", i))
		r.Generated = true
		begin(t, d.Journal, r)
	}
	for _, key := range []string{"mark-0", "mark-1"} {
		r := record(key)
		r.Generated = true
		r = confirmed(begin(t, d.Journal, r))
		r.Unreported = true
		if err := d.Finish(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	flush(t, d.Journal)
	waiting = 2
	return d
}

// act changes a record. It adds what must be there once it has returned, and waits for the commit only if it begins.
func (d *fullDisk) act(t *testing.T, what, key string, returned chan<- string) {
	ctx := context.Background()
	switch what {
	case "begin":
		go func() {
			if _, _, err := d.Begin(ctx, record(key)); err == nil {
				returned <- key
			}
		}()
	case "finish":
		r, err := d.Get(ctx, persist.ID{Account: "acct", Key: key})
		if err != nil {
			t.Error(err)
		}
		finish(t, d.Journal, r)
		returned <- key + " confirmed"
	case "mark":
		if err := d.MarkReported(ctx, persist.ID{Account: "acct", Key: key}); err != nil {
			t.Error(err)
		}
		returned <- key + " reported"
	}
}

// TestCloseAndFlushSayWhatIsDurable: the disk is full for some commits, and of some changes no caller has waited for the
// commit. Close, and Flush, is nil exactly if all that had returned is in the file, even if the commit under way is the
// one that fails while they wait.
func TestCloseAndFlushSayWhatIsDurable(t *testing.T) {
	t.Parallel()
	dir := testrun.Dir(t)
	kinds := []string{"", "begin", "finish", "mark", "begin finish", "begin finish mark"}
	for _, act := range []string{"Close", "Flush", "Flush, and then Close"} {
		for _, under := range kinds[1:] {
			for _, queued := range kinds {
				for _, full := range testrun.Some([]int{0, 1, 2, 3, 4, 5, 6, 7}, 3) {
					name := fmt.Sprintf("%s while %q is under way and %q waits, full %03b", act, under, queued, full)
					path := filepath.Join(dir, fmt.Sprintf("%s-%s-%s-%d.db", act, under, queued, full))
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { onFullDisk(t, path, act, under, queued, full) })
					})
				}
			}
		}
	}
}

// onFullDisk lets under be committed, and queued wait for the next commit, while Close or Flush is called. Of the next
// commits those fail whose bit is set in full.
func onFullDisk(t *testing.T, path, act, under, queued string, full int) {
	d := openFull(t, path)
	result := func(i int) error {
		if full>>i&1 == 1 {
			return &fsError{syscall.ENOSPC}
		}
		return nil
	}
	returned := make(chan string, 100)
	d.act(t, "begin", "first", returned)
	<-d.entered
	all := func(kinds string, n int) {
		for _, what := range strings.Fields(kinds) {
			d.act(t, what, fmt.Sprint(what, "-", n), returned)
		}
		synctest.Wait()
		time.Sleep(5 * time.Millisecond) // the next commit takes the changes that no caller waits for
	}
	all(under, 0)
	d.results <- nil
	<-d.entered
	all(queued, 1)
	d.left = []error{result(1), result(2)}
	flushed, closed := make(chan error, 1), make(chan error, 1)
	if strings.HasPrefix(act, "Flush") {
		go func() { flushed <- d.Flush(context.Background()) }()
		synctest.Wait()
	}
	if strings.HasSuffix(act, "Close") {
		go func() { closed <- d.Close() }()
		synctest.Wait()
	}
	d.results <- result(0)
	var err error
	if act == "Flush" {
		err = <-flushed
	} else {
		err = <-closed
	}
	file := readFile(t, path)
	synctest.Wait()
	close(returned)
	writeFile(t, path+".copy", file)
	missing := missingIn(t, path+".copy", returned)
	switch {
	case err == nil && len(missing) > 0:
		t.Errorf("it is nil, and %q is lost", missing)
	case err != nil && len(missing) == 0:
		t.Errorf("%v, and everything is there", err)
	case err != nil && (!errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path)):
		t.Errorf("%v, want the last commit's error", err)
	}
	if act == "Flush, and then Close" {
		if flushErr := <-flushed; flushErr == nil && len(missing) > 0 || flushErr != nil && !errors.Is(flushErr, syscall.ENOSPC) {
			t.Errorf("Flush: %v, and %q is lost", flushErr, missing)
		}
	}
	if err := d.Close(); err != nil && strings.HasSuffix(act, "Close") {
		t.Errorf("the second Close: %v", err)
	}
}

// fsError is an error of a disk that is full.
type fsError struct{ error }

func (e *fsError) Unwrap() error { return e.error }

// missingIn is which of what was said is not in a file.
func missingIn(t *testing.T, path string, said <-chan string) (missing []string) {
	j := open(t, path)
	there := map[string]bool{}
	for r, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Error(err)
		}
		there[r.Key] = true
		if r.State == persist.StateConfirmed {
			there[r.Key+" confirmed"] = true
		}
		if !r.Unreported {
			there[r.Key+" reported"] = true
		}
	}
	for s := range said {
		if !there[s] {
			missing = append(missing, s)
		}
	}
	closeIt(t, j)
	return missing
}

// TestFinishGoesWithNoOtherChange: a Finish and a MarkReported return before their commit. Where a change of the same record
// by another caller is under way, and fails, they are not undone with it.
func TestFinishGoesWithNoOtherChange(t *testing.T) {
	t.Parallel()
	dir, ctx := testrun.Dir(t), context.Background()
	for what, acts := range map[string][2]func(d *fullDisk) error{
		"Finish beside an Update": {func(d *fullDisk) error {
			r, _ := d.Get(ctx, persist.ID{Account: "acct", Key: "finish-0"})
			r.Attempts++
			_, err := d.Update(ctx, r)
			return err
		}, func(d *fullDisk) error {
			r, _ := d.Get(ctx, persist.ID{Account: "acct", Key: "finish-0"})
			return d.Finish(ctx, confirmed(r))
		}},
		"MarkReported beside a Sweep": {func(d *fullDisk) error {
			_, err := d.Sweep(ctx, persist.Limits{Prune: true, KeepAnswer: -1, Now: record("").Created.Add(2 * time.Minute)})
			return err
		}, func(d *fullDisk) error {
			return d.MarkReported(ctx, persist.ID{Account: "acct", Key: "mark-0"})
		}},
	} {
		for _, fails := range []bool{false, true} {
			path := filepath.Join(dir, fmt.Sprint(what, fails))
			t.Run(fmt.Sprintf("%s that fails %t", what, fails), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { besideAnother(t, path, acts, fails) })
			})
		}
	}
}

// besideAnother lets the second act come while the first is under way, which ends in one way or the other.
func besideAnother(t *testing.T, path string, acts [2]func(*fullDisk) error, fails bool) {
	d := openFull(t, path)
	d.act(t, "begin", "first", make(chan string, 1))
	<-d.entered
	d.results <- nil
	synctest.Wait()
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- acts[0](d) }()
	<-d.entered
	go func() { second <- acts[1](d) }()
	synctest.Wait()
	var result error
	if fails {
		result = &fsError{syscall.ENOSPC}
	}
	d.results <- result
	if err := <-first; (err != nil) != fails {
		t.Errorf("the first: %v", err)
	}
	err := <-second
	closeIt(t, d.Journal)
	said := make(chan string, 2)
	switch {
	case err == nil && strings.HasPrefix(filepath.Base(path), "Finish"):
		said <- "finish-0 confirmed"
	case err == nil:
		said <- "mark-0 reported"
	case !fails || !errors.Is(err, persist.ErrStale):
		t.Errorf("the second: %v", err)
	}
	close(said)
	if missing := missingIn(t, path, said); len(missing) > 0 {
		t.Errorf("it returned nil, and Close did, and %q is lost", missing)
	}
}

// TestManyFinishesOnAFullDisk: a Finish that waits since many are queued is queued again where their commit is not written,
// so that it is done.
func TestManyFinishesOnAFullDisk(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	path := filepath.Join(testrun.Dir(t), "journal.db")
	j := openWith(t, path, bolt.WithCommit(bolt.Options{Sync: func(*os.File) error { return nil }}, func() error {
		if full.Load() {
			return &fsError{syscall.ENOSPC}
		}
		return nil
	}))
	begun := make([]persist.Record, 4200)
	var wg sync.WaitGroup
	for i := range begun {
		wg.Go(func() { begun[i] = begin(t, j, record(fmt.Sprint("order-", i))) })
	}
	wg.Wait()
	full.Store(true)
	for _, r := range begun {
		finish(t, j, r)
	}
	if err := j.Flush(context.Background()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Flush on a full disk: %v", err)
	}
	full.Store(false)
	closeIt(t, j)
	said := make(chan string, len(begun))
	for _, r := range begun {
		said <- r.Key + " confirmed"
	}
	close(said)
	if missing := missingIn(t, path, said); len(missing) > 0 {
		t.Errorf("%d Finishes are lost", len(missing))
	}
}

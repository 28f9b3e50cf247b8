package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestSyncFails: when a sync fails nothing is known, for those who wait, and for
// everybody after them.
func TestSyncFails(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var fails atomic.Bool
	j := openWith(t, path, bolt.Options{Sync: func(f *os.File) error {
		if fails.Load() {
			return syscall.EIO
		}
		return f.Sync()
	}})
	ctx := context.Background()
	first := begin(t, j, record("first"))
	second := begin(t, j, record("second"))
	fails.Store(true)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, created, err := j.Begin(ctx, record(fmt.Sprintf("order-%d", i)))
			if created {
				t.Error("Begin created a record that may be lost")
			}
			wantErr(t, err, persist.ErrUncertain, path)
		})
	}
	wg.Wait()
	fails.Store(false)
	_, err := j.Update(ctx, first)
	wantErr(t, err, persist.ErrUncertain, path)
	wantErr(t, j.Finish(ctx, confirmed(first)), persist.ErrUncertain, path)
	wantErr(t, j.Forget(ctx, second), persist.ErrUncertain, path)
	_, err = j.Get(ctx, first.ID)
	wantErr(t, err, persist.ErrUncertain, path)
	_, err = contents(j)
	wantErr(t, err, persist.ErrUncertain, path)
	_, err = j.Sweep(ctx, persist.Limits{})
	wantErr(t, err, persist.ErrUncertain, path)
	wantErr(t, j.Flush(ctx), persist.ErrUncertain, path)
	wantErr(t, j.Close(), persist.ErrUncertain, path)

	j = open(t, path)
	if got := mustContents(t, j); len(got) < 2 {
		t.Errorf("after reopening there is %q", got)
	}
	finish(t, j, first)
}

// TestWriteFails: when not even the meta page could be written, nothing was, and
// the journal says so. It goes on as soon as it can write again.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	ctx := context.Background()
	kept := begin(t, j, record("kept"))
	closeIt(t, j)
	// A file that can be read and locked only.
	j = openWith(t, path, bolt.Options{OpenFile: func(name string, _ int, perm os.FileMode) (*os.File, error) {
		return os.OpenFile(name, os.O_RDONLY, perm)
	}})
	want := mustContents(t, j)
	counts := func() string {
		c, err := j.Count(ctx)
		return fmt.Sprint(c.Pending, c.Held, c.Oldest.Equal(kept.Created), c.NextDue, err)
	}
	counted := counts()
	for range 2 {
		_, created, err := j.Begin(ctx, record("order"))
		if created || err == nil || errors.Is(err, persist.ErrUncertain) || !strings.Contains(err.Error(), path) {
			t.Errorf("Begin: created %t, error %v; want one that says that it was not written", created, err)
		}
		if _, err := j.Get(ctx, record("order").ID); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("Get of what was not written: %v", err)
		}
		changed := kept
		changed.Attempts = 9
		if _, err := j.Update(ctx, changed); err == nil || errors.Is(err, persist.ErrUncertain) || errors.Is(err, persist.ErrStale) {
			t.Errorf("Update: %v", err)
		}
		if err := j.Forget(ctx, kept); err == nil || errors.Is(err, persist.ErrUncertain) || errors.Is(err, persist.ErrNotFound) {
			t.Errorf("Forget: %v", err)
		}
		if _, err := j.Assign(ctx, kept, "bob"); err == nil || errors.Is(err, persist.ErrUncertain) || errors.Is(err, persist.ErrNotFound) {
			t.Errorf("Assign: %v", err)
		}
		if _, err := j.Get(ctx, persist.ID{Account: "bob", Key: kept.Key}); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("Get of what could not be assigned: %v", err)
		}
		if got := mustContents(t, j); !slices.Equal(got, want) {
			t.Errorf("after changes that were not written it holds\n%q\nwant\n%q", got, want)
		}
		held := kept
		held.State, held.HoldReason = persist.StateHeld, persist.HoldNoKey
		if _, err := j.Update(ctx, held); err == nil {
			t.Error("Update of what cannot be written succeeded")
		}
		if got := counts(); got != counted {
			t.Errorf("after changes that were not written it counts %s, want %s", got, counted)
		}
	}
	finish(t, j, kept)
	if err := j.Flush(ctx); err == nil {
		t.Error("Flush of what cannot be written succeeded")
	}
	if got, err := j.Get(ctx, kept.ID); err != nil || got.State != persist.StateConfirmed {
		t.Errorf("a Finish that was not written yet is not visible any more: %v, %v", got.State, err)
	}
	if err := j.Close(); err == nil {
		t.Error("Close said that every Finish is durable")
	}
	j = open(t, path)
	if got := mustContents(t, j); !slices.Equal(got, want) {
		t.Errorf("after reopening it holds\n%q\nwant\n%q", got, want)
	}
}

// TestCancelled: a context that ends while its record is queued changes nothing.
func TestCancelled(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	var block atomic.Bool
	j := openWith(t, newPath(t), bolt.Options{Sync: func(f *os.File) error {
		if block.CompareAndSwap(true, false) {
			close(entered)
			<-release
		}
		return f.Sync()
	}})
	block.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			_, created, err := j.Begin(ctx, record(fmt.Sprint(i)))
			if !created && !errors.Is(err, context.Canceled) || created && err != nil {
				t.Errorf("Begin: created %t, error %v", created, err)
			}
			if _, err := j.Get(context.Background(), record(fmt.Sprint(i)).ID); created != (err == nil) {
				t.Errorf("Begin created %t, and then Get says %v", created, err)
			}
		})
	}
	<-entered
	cancel()
	close(release)
	wg.Wait()
}

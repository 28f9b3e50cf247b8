package bolt_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestSweepOfTextsFails: a sweep that could not be written leaves each key with its text, under the ID that it had. The next one takes it out.
func TestSweepOfTextsFails(t *testing.T) {
	t.Parallel()
	path, ctx := newPath(t), context.Background()
	j := open(t, path)
	ids := []persist.ID{}
	for _, key := range []string{"one", "two", "three"} {
		rec := record(key)
		rec.KeepAnswer, rec.KeepText = -1, -1
		rec = begin(t, j, rec)
		finish(t, j, rec)
		ids = append(ids, rec.ID)
	}
	closeIt(t, j)
	l := persist.Limits{Now: time.Now().Add(1e4 * time.Hour)}
	j = openWith(t, path, bolt.Options{OpenFile: func(name string, _ int, perm os.FileMode) (*os.File, error) { // to be read and locked only
		return os.OpenFile(name, os.O_RDONLY, perm)
	}})
	want := mustContents(t, j)
	for range 2 {
		if n, err := j.Sweep(ctx, l); n != 0 || err == nil || errors.Is(err, persist.ErrUncertain) {
			t.Errorf("Sweep of what cannot be written: %d, error %v", n, err)
		}
		if got := mustContents(t, j); !slices.Equal(got, want) {
			t.Errorf("after a sweep that was not written it holds\n%q\nwant\n%q", got, want)
		}
		for _, id := range ids {
			if rec, created, err := j.Begin(ctx, record(id.Key)); created || err != nil || rec.Erased || rec.Swept {
				t.Errorf("Begin of %q: created %t, erased %t, error %v", id.Key, created, rec.Erased, err)
			}
		}
	}
	closeIt(t, j)
	for try := range 2 {
		j = open(t, path)
		if n, err := j.Sweep(ctx, l); n != len(ids)*(1-try) || err != nil {
			t.Errorf("Sweep %d: %d, error %v", try, n, err)
		}
		for _, id := range ids {
			rec, created, err := j.Begin(ctx, record(id.Key))
			if created || err != nil || !rec.Erased || rec.Key == id.Key {
				t.Errorf("Begin of %q: created %t, erased %t, error %v", id.Key, created, rec.Erased, err)
			}
		}
		closeIt(t, j)
	}
}

package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestGetEach: what GetEach gives of records in every state, queued or in the file, is
// what Get gives, in the order of their Seqs; nothing comes for what is not there.
func TestGetEach(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, opts := range map[string]bolt.Options{"plain": {}, "colliding hashes": bolt.WithHashMask(bolt.Options{}, 3<<40)} {
		path := newPath(t)
		j := openWith(t, path, opts)
		var ids []persist.ID
		for i := range 60 {
			r := begin(t, j, sized(fmt.Sprintf("key-%d-", i), 100+i*1000)) // some bodies are kept outside
			switch i % 4 {
			case 0:
				finish(t, j, r)
			case 1:
				if err := j.Forget(ctx, r); err != nil {
					t.Fatal(err)
				}
			}
			ids = append(ids, r.ID, persist.ID{Account: "acct", Key: fmt.Sprint("none", i)}, persist.ID{Account: "other", Key: r.Key})
		}
		last := begin(t, j, record("last"))
		finish(t, j, last)
		ids = append(ids, last.ID)
		slices.Reverse(ids)
		for range 2 { // the last Finish is queued, and in the file the second time
			got := map[persist.ID]persist.Record{}
			last := uint64(0)
			if err := j.GetEach(ctx, ids, func(i int, rec persist.Record) bool {
				if rec.ID != ids[i] || rec.Seq <= last {
					t.Errorf("%s: %v with Seq %d for %v, after %d", name, rec.ID, rec.Seq, ids[i], last)
				}
				last, got[rec.ID] = rec.Seq, rec
				return true
			}); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				want, err := j.Get(ctx, id)
				rec, found := got[id]
				if found && (err != nil || !reflect.DeepEqual(rec, want)) {
					t.Errorf("%s: %v\n%+v\nGet: %+v, %v", name, id, rec, want, err)
				}
				if !found && err == nil {
					t.Errorf("%s: %v was left out", name, id)
				}
			}
			flush(t, j)
		}
		calls := 0
		if err := j.GetEach(ctx, ids, func(int, persist.Record) bool { calls++; return false }); err != nil || calls != 1 {
			t.Errorf("%s: called %d times, %v", name, calls, err)
		}
		closeIt(t, j)
		if err := j.GetEach(ctx, ids, func(int, persist.Record) bool { return true }); !errors.Is(err, persist.ErrClosed) {
			t.Errorf("%s: closed: %v", name, err)
		}
	}
}

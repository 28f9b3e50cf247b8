package bolt_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// TestAssignUnderWay: while the commit of an Assign is under way, a Begin of the old ID and one of the new ID wait for it.
func TestAssignUnderWay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j.db")
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		var gate chan error
		j, err := tryOpen(path, bolt.Options{Sync: func(f *os.File) error {
			if gate != nil {
				<-gate
			}
			return f.Sync()
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		r := begin(t, j, record("k"))
		gate = make(chan error)
		assigned := make(chan error, 1)
		go func() {
			_, err := j.Assign(ctx, r, "bob")
			assigned <- err
		}()
		synctest.Wait()
		type begun struct {
			rec     persist.Record
			created bool
		}
		results := map[string]chan begun{"": make(chan begun, 1), "bob": make(chan begun, 1)}
		for account, result := range results {
			go func() {
				mine := record("k")
				mine.Account = account
				rec, created, err := j.Begin(ctx, mine)
				if err != nil {
					t.Error(err)
				}
				result <- begun{rec, created}
			}()
		}
		synctest.Wait()
		for account, result := range results {
			if len(result) > 0 {
				t.Errorf("a Begin of account %q did not wait", account)
			}
		}
		close(gate)
		if err := <-assigned; err != nil {
			t.Error(err)
		}
		if old := <-results[""]; !old.created || old.rec.Seq == r.Seq {
			t.Errorf("the old ID: %+v, want it begun anew", old)
		}
		if moved := <-results["bob"]; moved.created || moved.rec.Seq != r.Seq {
			t.Errorf("the new ID: %+v, want what was assigned", moved)
		}
	})
}

// TestSecretOfACopy: a copy of a journal can have its secret; one of another length is refused.
func TestSecretOfACopy(t *testing.T) {
	t.Parallel()
	want, err := open(t, newPath(t)).Secret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := newPath(t)
	closeIt(t, openWith(t, path, bolt.Options{Secret: want}))
	if got, err := open(t, path).Secret(t.Context()); err != nil || string(got) != string(want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
	if _, err := tryOpen(newPath(t), bolt.Options{Secret: want[1:]}); err == nil || errors.Is(err, persist.ErrCorrupt) {
		t.Errorf("a short secret: %v", err)
	}
}

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

// TestForgetIsNotReadEarly: while the commit of a Forget is under way nobody is
// told that the record is gone. Where the commit fails, it may stand after a crash.
func TestForgetIsNotReadEarly(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]error{"durable": nil, "failed": errors.New("no space left on device")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "j.db")
			synctest.Test(t, func(t *testing.T) { forgetAndRead(t, path, broken) })
		})
	}
}

// forgetAndRead reads a record in every way while Forget waits for its sync, which
// then ends with broken.
func forgetAndRead(t *testing.T, path string, broken error) {
	ctx := context.Background()
	var gate chan error // what the sync waits for and ends with
	j, err := tryOpen(path, bolt.Options{Sync: func(f *os.File) error {
		if gate != nil {
			return <-gate
		}
		return f.Sync()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	r := record("k")
	r.Generated = true
	r, _, err = j.Begin(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	gate = make(chan error)
	forgot := make(chan error, 1)
	go func() { forgot <- j.Forget(ctx, r) }()
	synctest.Wait()

	read := make(chan error, 4)
	go func() {
		_, err := j.Get(ctx, r.ID)
		read <- err
	}()
	for _, q := range []persist.Query{{}, {Unresolved: r.Fingerprint}, {AnyUnresolved: true}} {
		go func() {
			n := 0
			for _, err := range j.List(ctx, q) {
				if err != nil {
					read <- err
					return
				}
				n++
			}
			if n != 0 {
				t.Errorf("List gave %d records after Forget", n)
			}
			read <- persist.ErrNotFound
		}()
	}
	synctest.Wait()
	if len(read) != 0 {
		t.Errorf("a reader was told %v before it was known whether the record is gone", <-read)
	}
	gate <- broken
	close(gate) // for the sync of Close
	want, toldForget := persist.ErrNotFound, error(nil)
	if broken != nil {
		want, toldForget = persist.ErrUncertain, persist.ErrUncertain
	}
	if err := <-forgot; !errors.Is(err, toldForget) {
		t.Errorf("Forget: %v, want %v", err, toldForget)
	}
	for range cap(read) {
		if err := <-read; !errors.Is(err, want) {
			t.Errorf("a reader was told %v, want %v", err, want)
		}
	}
}

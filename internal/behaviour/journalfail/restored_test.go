package journalfail_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// backedUp is a client on a file in which key "old" is paid, a backup taken then, and key "lost", paid after it.
func backedUp(t *testing.T, wire *wiretest.Wire) (c *oncehttp.Client, j *bolt.Journal, path string, backup []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "payments.db")
	c, j = onFile(t, wire, path)
	clienttest.Do(t, c, clienttest.Post(t, `{"amount":1}`), "old")
	clienttest.Must(t, c.Flush(t.Context()))
	backup, err := os.ReadFile(path)
	clienttest.Must(t, err)
	clienttest.Do(t, c, clienttest.Post(t, `{"amount":1}`), "lost")
	clienttest.Must(t, c.Flush(t.Context()))
	return c, j, path, backup
}

// onFile is a client on the file at path.
func onFile(t *testing.T, wire *wiretest.Wire, path string) (*oncehttp.Client, *bolt.Journal) {
	t.Helper()
	j, err := bolt.Open(path, bolt.Options{})
	clienttest.Must(t, err)
	t.Cleanup(func() { _ = j.Close() })
	c, _ := clienttest.New(t, wire, clienttest.On(j, clienttest.OneAttempt))
	return c, j
}

// TestBackupCopiedOverTheOpenFile: nothing is sent or acknowledged from then on, and the program that is started on the backup
// reads all of it.
func TestBackupCopiedOverTheOpenFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be cut on Windows")
	}
	wire := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: `{"id":1}`}}}
	c, j, path, backup := backedUp(t, wire)
	clienttest.Must(t, os.WriteFile(path, backup, 0o600))
	sent := wire.Count()
	for i := range 3 {
		key := oncehttp.Key(fmt.Sprint("new-", i))
		if _, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), key); !errors.Is(err, persist.ErrGone) {
			t.Errorf("Do: %v, want ErrGone", err)
		}
		if err := c.Enqueue(clienttest.Post(t, `{"amount":1}`), key+"-later"); !errors.Is(err, persist.ErrGone) {
			t.Errorf("Enqueue: %v, want ErrGone", err)
		}
	}
	if err := c.Flush(t.Context()); !errors.Is(err, persist.ErrGone) {
		t.Errorf("Flush: %v, want ErrGone", err)
	}
	if err := errors.Join(c.Close(), j.Close()); !errors.Is(err, persist.ErrGone) {
		t.Errorf("Close: %v, want ErrGone", err)
	}
	if n := wire.Count(); n != sent {
		t.Errorf("%d sends after that, want none", n-sent)
	}
	if now, err := os.ReadFile(path); err != nil || !slices.Equal(now, backup) {
		t.Errorf("the backup was written to, or: %v", err)
	}
	c, _ = onFile(t, wire, path)
	if rec := clienttest.Lookup(t, c, "old"); rec.State != persist.StateConfirmed {
		t.Errorf("in the backup it is %v", rec.State)
	}
}

// TestBackupInPlaceOfTheOpenFile moves the journal aside and puts a backup, or a copy of the moment, in its place. The program that
// has the old file open begins nothing more; so no key is sent both by it and by one that is started on the new file.
func TestBackupInPlaceOfTheOpenFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be renamed on Windows")
	}
	for _, newest := range []bool{false, true} {
		t.Run(fmt.Sprint("newest ", newest), func(t *testing.T) {
			t.Parallel()
			wire := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: `{"id":1}`}}}
			c, _, path, there := backedUp(t, wire)
			if newest {
				now, err := os.ReadFile(path)
				clienttest.Must(t, err)
				there = now
			}
			clienttest.Must(t, os.Rename(path, path+".bad"))
			clienttest.Must(t, os.WriteFile(path, there, 0o600))
			time.Sleep(1100 * time.Millisecond)
			if _, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "new"); !errors.Is(err, persist.ErrGone) {
				t.Errorf("Do: %v, want ErrGone", err)
			}
			if err := c.Enqueue(clienttest.Post(t, `{"amount":1}`), "later"); !errors.Is(err, persist.ErrGone) {
				t.Errorf("Enqueue: %v, want ErrGone", err)
			}
			second, _ := onFile(t, wire, path)
			clienttest.Do(t, second, clienttest.Post(t, `{"amount":1}`), "new")
			if n := wire.Keys()["new"]; n != 1 {
				t.Errorf("it was sent %d times, want once, by the second program", n)
			}
		})
	}
}

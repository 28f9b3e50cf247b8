package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// file is a real journal in a real file. A crash leaves the bytes of the file
// at its last sync.
type file struct {
	*bolt.Journal
	t   *testing.T
	dir string
	n   int

	mu     sync.Mutex
	synced []byte
	over   bool
}

// openFile opens the n-th journal file of a simulated run, in dir: each crash of a process continues with a new file.
func openFile(t *testing.T, dir string, n int) *file {
	f := &file{t: t, dir: dir, n: n}
	journal, err := bolt.Open(f.path(), bolt.Options{Sync: f.sync})
	if err != nil {
		panic(fmt.Sprintf("sim: %v", err)) // the file after a crash must open
	}
	f.Journal = journal
	return f
}

// path returns the path of the present journal file.
func (f *file) path() string { return filepath.Join(f.dir, fmt.Sprintf("%d.db", f.n)) }

// sync keeps a copy of the file's present bytes, in place of a sync to a disk: after a simulated crash the file has these bytes. It fails once the process has
// died (over).
func (f *file) sync(to *os.File) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return errDead
	}
	info, err := to.Stat()
	if err != nil {
		return err
	}
	f.synced, err = io.ReadAll(io.NewSectionReader(to, 0, info.Size()))
	return err
}

// crash implements [store]. The next run of the program opens the file as it was at its last sync.
func (f *file) crash(*rand.Rand) store {
	f.mu.Lock()
	f.over = true
	synced := f.synced
	f.mu.Unlock()
	next := &file{t: f.t, dir: f.dir, n: f.n + 1}
	if synced != nil { // else there never was one
		if err := os.WriteFile(next.path(), synced, 0o600); err != nil {
			panic(err)
		}
	}
	go func() { _ = f.Journal.Close() }() // no process uses the old one
	return openFile(f.t, f.dir, f.n+1)
}

// durable implements [store]. It returns the record in the file that a crash now would leave, or that the commit in progress is about to write; false: there is
// none.
func (f *file) durable(id persist.ID) (persist.Record, bool) {
	rec, err := f.Get(context.Background(), id)
	return rec, err == nil
}

// heal does nothing: a real file has no faults.
func (f *file) heal() {} // nothing fails

// all implements store. Each record of the file is durable.
func (f *file) all() []persist.Record {
	var all []persist.Record
	for rec, err := range f.List(context.Background(), persist.Query{AllAccounts: true}) {
		if err == nil {
			all = append(all, rec)
		}
	}
	return all
}

// Package bolt is oncehttp's default journal: one bbolt file.
//
// One commit serves everybody who waits: see commit.go. Records are kept in the
// order in which they were begun, and found by an index in memory that is
// rebuilt when the file is opened: see slots.go and index.go. A commit is made
// durable by one sync, and what it wrote is proved by a digest when the file is
// opened: see write.go.
package bolt

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
)

// Options adjust [Open]. The zero value is the right one but for tests.
type Options struct {
	_ struct{}

	// LockWait is how long Open waits for another process that holds the file.
	// Zero is one second; negative is not at all.
	LockWait time.Duration

	// OpenFile opens the file. Nil is os.OpenFile. For tests.
	OpenFile func(name string, flag int, perm os.FileMode) (*os.File, error)

	// Sync makes durable what was written to the file. Nil is fdatasync where
	// there is one, else File.Sync. For tests and measurements.
	Sync func(*os.File) error

	hashMask uint64 // clears bits of every hash, so that tests see collisions
}

// Journal is a journal in one file. [Open] makes one. All methods are safe for
// concurrent use. A context that has ended stops a method before it queues
// anything; afterwards it is not looked at.
type Journal struct {
	persist.Attachment

	path     string
	file     *os.File
	pageSize int
	db       *bbolt.DB
	sync     func() error
	hash     hasher

	names names

	// The committer's own.
	scratch [64]byte
	bodies  uint64 // digest of what is in the bucket of bodies
	stuck   bool   // bbolt panicked, and may hold its locks

	lastSync time.Duration // what the last sync took
	syncTime time.Duration // the shorter of the last two, so that no single one counts

	// mu guards what follows. Nobody who holds a bbolt transaction takes it:
	// transactions are begun under it.
	mu         sync.Mutex
	closed     bool
	broken     error // of the commit after which nothing is known
	seq        uint64
	slots      *slots
	ids        *index
	unresolved *index // by fingerprint, see slot.unresolved
	accounts   accounts
	collecting *batch
	flying     *batch // under commit
	crowd      crowd  // who waits for them
	spare      *queue // memory for the next batch
	leading    bool   // somebody commits, or has been told to
	idle       sync.Cond
	lazy       *queue // what nobody waits for
	lazyDigest uint64 // what it adds to the digest
	timer      *time.Timer
	armed      bool // the timer is set
	due        bool // the timer has come: the next commit takes lazy
	stats      Stats
}

// Stats counts what a journal has done since it was opened.
type Stats struct {
	Commits int64 // batches made durable
	Syncs   int64 // calls of Sync
	Changes int64 // changes of records in those batches
	Bytes   int64 // bytes of pages written, metadata included
}

// Stats returns the counts.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

// Path is the name that the journal was opened by.
func (j *Journal) Path() string { return j.path }

// Open opens the journal at path, or creates it with mode 0600. The file is
// locked until Close: a second Open, in this process or another, fails.
//
// Errors: persist.ErrLocked if the file is held by somebody else, and
// persist.ErrCorrupt if it is damaged, no journal, or written by a later
// version; such a file is left as it is.
func Open(path string, opts Options) (*Journal, error) {
	j, err := openJournal(path, opts)
	if err != nil {
		return nil, fmt.Errorf("persist/bolt: %s: %w", path, err)
	}
	return j, nil
}

func openJournal(path string, opts Options) (*Journal, error) {
	if opts.OpenFile == nil {
		opts.OpenFile = os.OpenFile
	}
	if opts.LockWait == 0 {
		opts.LockWait = time.Second
	}
	j := &Journal{
		path: path, hash: newHasher(opts.hashMask), collecting: &batch{queue: newQueue()}, lazy: newQueue(),
		names: newNames(),
	}
	j.reset()
	j.idle.L = &j.mu
	if err := j.openDB(opts); err != nil {
		return nil, err
	}
	j.timer = time.AfterFunc(time.Hour, j.flushIdle)
	j.timer.Stop()
	return j, nil
}

// syncDir makes a new file's name durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	// Some file systems cannot sync a directory; those that lose names can.
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

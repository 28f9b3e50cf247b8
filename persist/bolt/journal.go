package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
)

var (
	_ persist.Journal  = (*Journal)(nil)
	_ persist.DueTimes = (*Journal)(nil)
)

// Options adjust [Open]. The zero value is the right one but for tests.
type Options struct {
	_ struct{}

	// LockWait is how long Open waits for another process that holds the file.
	// Zero is one second; negative is not at all.
	LockWait time.Duration

	// OpenFile opens the file, which exists. Nil is os.OpenFile. For tests.
	OpenFile func(name string, flag int, perm os.FileMode) (*os.File, error)

	// Sync makes durable what was written to the file. Nil is fdatasync where
	// there is one, else File.Sync. If it is set, each commit calls it once,
	// whatever version of bbolt the program is built with. For tests and
	// measurements.
	Sync func(*os.File) error

	hashMask uint64 // clears bits of every hash, so that tests see collisions
	hooks    hooks
}

// Journal is a journal in one file. [Open] makes one. All methods are safe for
// concurrent use. A context that has ended stops a method before it queues
// anything; afterwards it is not looked at.
type Journal struct {
	persist.Attachment

	path     string
	file     *os.File
	place    place
	pageSize int
	db       *bbolt.DB
	sync     func() error
	twoSyncs bool // bbolt syncs itself, twice, and sync is not called for a commit
	hash     hasher
	names    names
	hooks    hooks

	// Only the committer uses what follows, and Open and Close.
	scratch    [64]byte
	bodies     uint64 // digest of what is in the bucket of bodies
	stuck      bool   // bbolt panicked, and may hold its locks
	markSynced bool   // the last mark is on the disk
	formatKept bool   // the file's format is formatKept
	// firstAttempt: no attempt was made before to commit the next transaction.
	firstAttempt bool
	lastSync     time.Duration
	syncTime     time.Duration // the shorter of the last two syncs

	// mu guards what follows. No holder of a bbolt transaction takes it:
	// transactions are begun under it.
	mu         sync.Mutex
	closed     bool
	broken     error // of the commit after which nothing is known
	seq        uint64
	slots      *slots
	ids        *idTable // by account and key
	unresolved *index   // by fingerprint, see slot.unresolved in slots.go
	accounts   accounts
	collecting *batch // what the next commit writes
	committing *batch // what the commit under way writes
	waiters    waiters
	spare      *queue // memory for the next batch
	leading    bool   // a caller commits, or has been told to
	idle       sync.Cond
	lazy       *queue // changes that no caller waits for
	lazyDigest uint64 // what they add to the digest
	lazyDue    bool   // the next commit takes them
	timer      *time.Timer
	timerSet   bool
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

// Open opens the journal at path, or creates it with mode 0600. The file is locked
// until Close: a second Open, in this process or another, fails. Permissions that
// others have on the file are taken away, those of its group stay.
//
// Where a crash or a failed sync came in between, Open ends what was under way: the
// last commit is brought to the disk, or, if it was cut off, forgotten.
//
// Errors: persist.ErrLocked if another journal holds the file for longer than
// Options.LockWait; persist.ErrCorrupt if it is damaged, empty, no journal, or
// written by a later version, and then it is left as it is; persist.ErrGone if it
// is moved again and again meanwhile; else what the file system said.
func Open(path string, opts Options) (*Journal, error) {
	j, err := openJournal(path, opts)
	if err != nil {
		return nil, fmt.Errorf("persist/bolt: %s: %w", path, err)
	}
	return j, nil
}

// openJournal is Open without the path in its errors. The timer is made here and
// stopped, so that putLazy only has to set it.
func openJournal(path string, opts Options) (*Journal, error) {
	if opts.OpenFile == nil {
		opts.OpenFile = os.OpenFile
	}
	if opts.LockWait == 0 {
		opts.LockWait = time.Second
	}
	j := &Journal{
		path: path, hash: newHasher(opts.hashMask), collecting: &batch{queue: newQueue()}, lazy: newQueue(),
		names: newNames(), hooks: opts.hooks, markSynced: true,
	}
	var err error
	if j.place.path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	j.reset()
	j.idle.L = &j.mu
	if err := j.openFile(opts); err != nil {
		return nil, err
	}
	j.timer = time.AfterFunc(time.Hour, j.flushLazy)
	j.timer.Stop()
	return j, nil
}

// usable reports why nothing can be done. The caller holds mu.
func (j *Journal) usable() error {
	if j.closed {
		return fmt.Errorf("persist/bolt: %s: %w", j.path, persist.ErrClosed)
	}
	return j.broken
}

// Flush implements [persist.Journal]. If something is queued, the next commit takes
// all of it. Else the commit under way is the one to wait for.
func (j *Journal) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return err
	}
	if len(j.collecting.changes)+len(j.lazy.changes) > 0 {
		j.lazyDue = true
		return j.unlockAndAwait(j.collecting)
	}
	if j.committing != nil {
		return j.unlockAndAwait(j.committing)
	}
	j.mu.Unlock()
	return nil
}

// Close implements [persist.Journal]. It commits what is queued, waits for the commit
// under way, brings the last mark to the disk, and gives the file back. Whatever it
// returns, the file is released.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.timer.Stop()
	err := j.broken
	if err == nil && len(j.collecting.changes)+len(j.lazy.changes) > 0 {
		j.lazyDue = true
		err = j.unlockAndAwait(j.collecting)
		j.mu.Lock()
	}
	for j.leading {
		j.idle.Wait()
	}
	if err == nil {
		err = j.broken
	}
	j.mu.Unlock()
	j.step(stepCloseCommitted)
	if err == nil {
		err = j.wrap(j.syncMark())
	}
	j.step(stepCloseMarkSynced)
	err = errors.Join(err, j.closeFile())
	j.step(stepCloseDone)
	return err
}

// closeFile closes the file and releases its lock. It is called last, when no commit is under way.
func (j *Journal) closeFile() error {
	if j.stuck {
		// bbolt panicked and may hold locks, for which its Close would wait for ever.
		return j.file.Close()
	}
	return j.db.Close()
}

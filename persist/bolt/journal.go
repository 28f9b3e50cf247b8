package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
)

var (
	_ persist.Journal  = (*Journal)(nil)
	_ persist.DueTimes = (*Journal)(nil)
	_ persist.Counter  = (*Journal)(nil)
)

// Options adjust [Open]. The zero value is the right one but for tests.
type Options struct {
	_ struct{}

	// LockWait is how long Open waits for another process holding the file. Zero is one second; negative is
	// not at all.
	LockWait time.Duration

	// OpenFile opens the existing file. Nil is os.OpenFile. For tests.
	OpenFile func(name string, flag int, perm os.FileMode) (*os.File, error)

	// Secret is the secret of a newly made file, in persist.SecretSize bytes, for a copy of a journal. Nil:
	// random bytes.
	Secret []byte

	// Sync makes the writes to the file durable. Nil is fdatasync if the system has it, else File.Sync. If
	// Sync is set, each commit calls it once, with any version of bbolt in the program. The first commit
	// after Open and after a failure has bbolt's own two syncs besides. For tests and measurements.
	Sync func(*os.File) error

	// ReadOnly opens an existing file for reading. Get, GetEach, List, Secret, Count, DueTimes, and Fact without a value work; every other call is
	// persist.ErrReadOnly. The file is locked all the same. It is written to only where a crash has left a commit to be ended. So a file
	// that may not be written to can be opened, too, unless such a commit is in it. Opening is quicker, and the file is not mapped into memory.
	ReadOnly bool

	hashMask uint64 // clears bits of every hash, so tests see collisions
	hooks    hooks
}

// Journal is a journal in one file. [Open] makes one. All methods are safe for concurrent use. An ended
// context stops a method before it queues anything; afterwards the context is not looked at.
//
// A Journal not returned by Open is closed: the methods of a zero one return [persist.ErrClosed], those of
// a nil one panic.
type Journal struct {
	persist.Attachment

	path     string
	file     *os.File
	place    place
	pageSize int
	db       *bbolt.DB // nil if readOnly
	readOnly bool
	// protected: the file may not be written to, and is only read
	protected bool
	pages     *commitPages // if readOnly: what is read
	sync      func() error
	twoSyncs  bool // bbolt syncs each commit itself, twice
	ownSync   bool // sync is Options.Sync
	hash      hasher
	names     names
	hooks     hooks
	secret    [persist.SecretSize]byte // of the file, once it was read
	about     uint64                   // the file's aboutSum
	facts     facts                    // of the file; written by the committer with mu
	factsMu   sync.Mutex               // held while a fact is written

	// Only the committer, Open and Close use the following fields.
	scratch    [64]byte
	bodies     uint64                      // digest of the bucket of bodies
	stuck      bool                        // bbolt panicked, and may hold its locks
	markSynced bool                        // the last mark is on the disk
	steady     bool                        // the last commit has succeeded, and there was one since Open
	metaPage   [pageHeader + metaSize]byte // the memory of hasMeta
	lastSync   time.Duration
	syncTime   time.Duration // the shorter of the last two syncs

	// mu guards the following fields. No holder of a bbolt transaction takes it: transactions are begun
	// under it.
	mu         sync.Mutex
	closed     bool
	released   chan struct{} // closed when Close has released the file
	broken     error         // of the commit with an unknown result, or of an overwritten file
	jammed     bool          // bbolt panicked in a reader, and holds its locks
	last       proof         // of the last commit; written by the committer
	seq        uint64
	slots      *slots
	ids        *idTable // by account and key
	erases     bool     // some record is erased, or was
	unresolved *index   // by fingerprint, see slot.unresolved in slots.go
	accounts   accounts
	collecting *batch // the batch of the next commit
	committing *batch // the batch of the commit under way
	waiters    waiters
	spare      *queue // memory for the next batch
	leading    bool   // a caller commits, or has been told to
	idle       sync.Cond
	lazy       *queue // changes without a waiting caller
	lazyDigest uint64 // their part of the digest
	lazyDue    bool   // the next commit takes them
	timer      *time.Timer
	timerSet   bool
	stats      Stats
}

// Stats counts the work of a journal since it was opened.
type Stats struct {
	Commits int64 // batches made durable
	Syncs   int64 // of those commits: one each; two of the first after Open and after a failure, or three with Options.Sync
	Changes int64 // changes of records in those batches
	Bytes   int64 // bytes of pages written, metadata included

	// NamesSynced reports whether Open has made durable the name of the file and of each symbolic link
	// leading to it. It is false if the system cannot sync a directory, or does not let the process open
	// one for reading. Then a power cut may take the name of a file made, moved or restored shortly before.
	NamesSynced bool
}

// Stats returns the counts of the journal's work.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

// Path returns the path given to [Open].
func (j *Journal) Path() string { return j.path }

// Open opens the journal at path, or creates it with mode 0600. The file is locked until Close: a second
// Open, in this process or another, fails. Permissions of others on the file are taken away; those of its
// group stay.
//
// After a crash or a failed sync, Open ends the work under way: the last commit is brought to the disk, or,
// if it was cut off, forgotten.
//
// Errors: persist.ErrLocked if another journal holds the file for longer than Options.LockWait.
// persist.ErrCorrupt if it is damaged, empty or no journal, and ErrFormat if another version wrote it; in
// both cases the file is left as it is. persist.ErrGone if it is moved again and again meanwhile. Else the
// file system's error.
func Open(path string, opts Options) (*Journal, error) {
	j, err := openJournal(path, opts)
	if err != nil {
		return nil, fmt.Errorf("persist/bolt: %s: %w", path, err)
	}
	return j, nil
}

// openJournal is Open; its errors do not have the path yet. The timer for changes without a waiting caller is made here and stopped, so that putLazy only has
// to set it. opts.hooks and opts.hashMask are of tests.
func openJournal(path string, opts Options) (*Journal, error) {
	if opts.OpenFile == nil {
		opts.OpenFile = os.OpenFile
	}
	if opts.LockWait == 0 {
		opts.LockWait = time.Second
	}
	j := &Journal{
		path: path, hash: newHasher(opts.hashMask), collecting: &batch{queue: newQueue()}, lazy: newQueue(),
		names: newNames(), hooks: opts.hooks, readOnly: opts.ReadOnly, markSynced: true, released: make(chan struct{}),
	}
	if copy(j.secret[:], opts.Secret) != len(opts.Secret) || len(opts.Secret) != 0 && len(opts.Secret) != len(j.secret) {
		return nil, fmt.Errorf("a Secret of %d bytes, want %d", len(opts.Secret), len(j.secret))
	}
	var err error
	if j.place.path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if j.place.sameFile = opts.hooks.sameFile; j.place.sameFile == nil { // of tests
		j.place.sameFile = os.SameFile
	}
	j.reset() // empty indexes, to be filled from the file
	j.idle.L = &j.mu
	if err := j.openFile(opts); err != nil {
		return nil, err
	}
	j.timer = time.AfterFunc(time.Hour, j.flushLazy)
	j.timer.Stop()
	return j, nil
}

// usable returns nil if the journal can be used, and else the reason why not: it is closed, or an earlier failure has broken it until it is opened again.
// The caller holds mu.
func (j *Journal) usable() error {
	if j.closed {
		return j.errClosed()
	}
	return j.broken
}

// start is the first check of a method. It returns an error if the journal was never opened (Open makes released), or if ctx has ended. The caller does not
// hold mu.
func (j *Journal) start(ctx context.Context) error {
	if j.released == nil {
		return j.errClosed()
	}
	return ctx.Err()
}

// startWrite makes the checks at the start of each method that writes: those of start, and that the journal is not open for reading only.
func (j *Journal) startWrite(ctx context.Context) error {
	if err := j.start(ctx); err != nil || !j.readOnly {
		return err
	}
	return fmt.Errorf("persist/bolt: %s: %w", j.path, persist.ErrReadOnly)
}

// errClosed is the error of a closed or never opened journal.
func (j *Journal) errClosed() error {
	return fmt.Errorf("persist/bolt: %s: %w", j.path, persist.ErrClosed)
}

// Secret implements [persist.Journal]: it returns a copy of the journal's random secret, the key for digests in its records. It was made with the file.
func (j *Journal) Secret(ctx context.Context) ([]byte, error) {
	if err := j.start(ctx); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return nil, err
	}
	return slices.Clone(j.secret[:]), nil
}

// Flush implements [persist.Journal]: it waits until the changes of all calls that have returned before it are durable, and returns nil only then.
func (j *Journal) Flush(ctx context.Context) error {
	if err := j.start(ctx); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	return j.flush()
}

// flush commits the queued changes, or waits for the commit under way. If a commit is not written, its changes without a waiting caller are queued again, and
// committed once more. So there are two rounds. Failed changes beside them, such as a large body on a nearly full disk, are gone by then. The caller holds mu;
// flush gives it up meanwhile.
func (j *Journal) flush() (err error) {
	for range 2 {
		switch {
		case j.broken != nil:
			return j.broken
		case len(j.collecting.changes)+len(j.lazy.changes) > 0:
			// The next commit takes all of it, and comes after the one under way.
			j.lazyDue = true
			err = j.unlockAndAwait(j.collecting)
		case j.committing != nil:
			err = j.unlockAndAwait(j.committing)
		default: // Nothing is to be written. The last commit may be gone: another program has overwritten the file.
			if there, err := j.hasMeta(j.last.txid); err == nil && !there {
				j.broken = overwritten{j.path}
			}
			return j.broken
		}
		j.mu.Lock()
		if err == nil {
			return nil
		}
	}
	return err
}

// Close implements [persist.Journal]. It waits for the commit under way, commits the changes queued then,
// brings the last mark to the disk, and gives the file back. It returns nil exactly if the changes of all
// returned calls are durable, and else the error of the last commit or of the mark's sync. The file is
// released in any case: changes not yet durable are lost. A second Close returns when the first has, and is
// nil regardless of the first one's result.
func (j *Journal) Close() error {
	if j.released == nil { // it was never opened
		return nil
	}
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		<-j.released
		return nil
	}
	defer close(j.released)
	j.closed = true
	j.timer.Stop()
	for j.leading {
		j.idle.Wait()
	}
	err := j.flush()
	if j.broken == nil {
		j.broken = err // a Flush still waiting commits no more
	}
	// A panic of bbolt in a writer (stuck) or a reader (jammed) may have left its locks held.
	j.stuck = j.stuck || j.jammed
	j.mu.Unlock()
	if err == nil {
		err = j.wrap(j.syncMark())
	}
	return errors.Join(err, j.closeFile())
}

// closeFile closes the file and so releases its lock. It is called last, when no commit is under way. After a panic of bbolt, bbolt's own Close could
// wait for ever: then only the file is closed.
func (j *Journal) closeFile() error {
	if j.stuck {
		// bbolt panicked and may hold locks; its Close would wait for them for ever. Its mapping stays.
		unlock(j.file)
		return j.file.Close()
	}
	if j.readOnly { // bbolt was never opened
		unlock(j.file)
		return j.file.Close()
	}
	return j.db.Close()
}

package bolt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	bbolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/oncehttp/oncehttp/persist"
)

// openFile opens the file at the journal's path, or creates it, and opens the journal in it. It begins again a few times if another process moved the
// file before it was locked.
func (j *Journal) openFile(opts Options) error {
	// Another process may move the file, or put another in its place, until it is locked.
	const triesMax = 5
	for try := 1; ; try++ {
		f, err := opts.OpenFile(j.path, os.O_RDWR, 0o600) // with ReadOnly, too: a commit that a crash left must be ended
		if errors.Is(err, fs.ErrNotExist) && !opts.ReadOnly {
			if err = j.create(j.path); err == nil {
				f, err = opts.OpenFile(j.path, os.O_RDWR, 0o600)
			}
		}
		if opts.ReadOnly && (errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)) {
			f, err = opts.OpenFile(j.path, os.O_RDONLY, 0)
			j.protected = true // the file may not be written to
		}
		if err != nil {
			return err
		}
		moved, err := j.openIn(f, opts)
		if err == nil {
			return nil
		}
		_ = f.Close() // bbolt may have closed it already
		if !moved || try == triesMax {
			return err
		}
	}
}

// openIn locks, checks and loads the file, and only then gives it to bbolt. moved is true if the path led elsewhere once the file was locked. releaseForBbolt
// gives up the part of the lock that bbolt takes for itself. j.protected says that the file may not be written to.
func (j *Journal) openIn(f *os.File, opts Options) (moved bool, err error) {
	releaseForBbolt, err := lock(f, opts.LockWait)
	if errors.Is(err, persist.ErrLocked) && openHere(f) {
		return false, lockedHere{}
	}
	if err != nil {
		return false, err
	}
	if !isAt(j.path, f) {
		return true, fmt.Errorf("%w: it was moved while it was opened", persist.ErrGone)
	}
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, errors.New("it is not a regular file")
	}
	j.file, j.place.file = f, f
	j.sync = f.Sync
	if j.ownSync = opts.Sync != nil; j.ownSync {
		j.sync = func() error { return opts.Sync(f) }
	}
	// From here on no other journal is in the file.
	reader := io.ReaderAt(f)
	if j.hooks.read != nil {
		reader = j.hooks.read(f)
	}
	ms, err := j.recoverFile(reader, info.Size())
	if j.protected && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EBADF)) {
		err = fmt.Errorf("a crash has left a commit that opening must end, and the file may not be written to: open a copy of it (%w)", err)
	}
	if err != nil {
		return false, err
	}
	if !j.readOnly {
		if err := releaseForBbolt(); err != nil {
			return false, err
		}
		if err := j.giveToBbolt(f, opts, ms); err != nil {
			return false, err
		}
	}
	if err := j.finishOpen(f, info); err != nil {
		_ = j.closeFile()
		return false, err
	}
	return false, nil
}

// finishOpen changes names and mode of the opened file: it removes a second name left by an interrupted creation, makes the names durable, and takes
// away the access of others. It is called once the journal was accepted: a refused file stays as it is.
func (j *Journal) finishOpen(f *os.File, info fs.FileInfo) (err error) {
	if j.protected { // it may not be written to
		return nil
	}
	removeSecondName(j.path, f)
	if j.stats.NamesSynced, err = syncNames(j.path); err != nil {
		return err
	}
	return restrict(f, info)
}

// giveToBbolt opens the checked file with bbolt, for writing. ms are the meta pages that were checked: if they have changed, another program wrote in
// between, and the error matches persist.ErrLocked.
func (j *Journal) giveToBbolt(f *os.File, opts Options, ms metas) error {
	if err := j.openBolt(f, opts); err != nil {
		return err
	}
	// fdatasync, if the system has it; until now it was fsync.
	if !j.ownSync {
		j.sync = j.dataSync
	}
	// A program without locking can have been in the file between the two opens.
	if now, err := readMetas(f, math.MaxInt64); err != nil || now.newest != ms.newest { // the size does not matter for meta pages
		_ = j.db.Close()
		return fmt.Errorf("%w: it was written to while it was opened", persist.ErrLocked)
	}
	return nil
}

// dataSync makes the writes to the file durable by bbolt's own sync. It is tried again if a signal interrupts it, as File.Sync is.
func (j *Journal) dataSync() error {
	for {
		if err := j.db.Sync(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// openBolt opens the file with bbolt. bbolt panics on some damaged files: that is persist.ErrCorrupt here. After such a panic its mapping of the file
// stays, and holds the lock.
func (j *Journal) openBolt(f *os.File, opts Options) (err error) {
	defer func() {
		if p := recover(); p != nil {
			unlock(f)
			err = fmt.Errorf("%w: %v", persist.ErrCorrupt, p)
		}
	}()
	// An unreadable page is a fault in the mapped file. Make it a panic.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	// bbolt syncs each commit itself, twice, unless its version is known to be safe with one sync by the journal, or Options.Sync is set.
	j.twoSyncs = opts.Sync == nil && !usesReviewedBbolt(opts.hooks.bboltVersion)
	j.db, err = bbolt.Open(j.path, 0o600, &bbolt.Options{
		Timeout:        max(opts.LockWait, 1), // 0 would wait for ever
		NoSync:         !j.twoSyncs,
		NoFreelistSync: true, // the list of free pages is made anew when the file is opened
		FreelistType:   bbolt.FreelistMapType,
		// When it has to map a larger file, bbolt copies everything in the commit
		// under way, and waits for all readers.
		InitialMmapSize: mapSize(),
		Logger:          opts.hooks.logger,
		OpenFile:        func(string, int, os.FileMode) (*os.File, error) { return f, nil },
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return persist.ErrLocked
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", persist.ErrCorrupt, err)
	}
	return err
}

// mapSize returns how many bytes of address space are mapped at first: as many as cost nothing. From there on the mapping doubles, and each time bbolt
// copies the data of the commit under way. 0 leaves the size to bbolt.
func mapSize() int {
	switch {
	case runtime.GOOS == "windows":
		return 0 // there the file would be made as large
	case math.MaxInt == math.MaxInt32:
		return 64 << 20 // of two to four gigabytes
	}
	return 1 << 30
}

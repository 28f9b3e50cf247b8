package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	bbolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// openDB opens the file, checks and loads it, and only then gives it to bbolt.
func (j *Journal) openDB(opts Options) error {
	f, err := opts.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := j.openFile(f, opts); err != nil {
		// bbolt may have closed it already.
		_ = f.Close()
		return err
	}
	return nil
}

func (j *Journal) openFile(f *os.File, opts Options) error {
	if err := lock(f, opts.LockWait); err != nil {
		return err
	}
	ms, err := j.inspect(f)
	if err != nil {
		return err
	}
	if err := j.openBolt(f, opts); err != nil {
		return err
	}
	if err := j.begin(f, opts, ms); err != nil {
		_ = j.db.Close()
		return err
	}
	return nil
}

// begin does what is left to do once bbolt has the file.
func (j *Journal) begin(f *os.File, opts Options, ms metas) error {
	j.file, j.pageSize, j.sync = f, j.db.Info().PageSize, j.db.Sync
	if opts.Sync != nil {
		j.sync = func() error { return opts.Sync(f) }
	}
	if now, err := readMetas(f, 1<<62); err != nil || now.newest != ms.newest {
		return fmt.Errorf("%w: it was written to while it was opened", persist.ErrLocked)
	}
	if ms.whole {
		return nil
	}
	// The last commit is in the file, but perhaps in the kernel's memory only.
	// Nobody may be told of its records before they are on the disk.
	if err := j.sync(); err != nil {
		return err
	}
	j.mark(ms.newest.txid)
	return nil
}

// errFormat says that the file is whole, and another version's.
var errFormat = errors.New("its format is")

// inspect checks the file and loads it. It writes only where there is nothing
// yet, and where a crash has cut off the last commit. The newest meta that it
// returns is the one that counts.
func (j *Journal) inspect(f *os.File) (metas, error) {
	info, err := f.Stat()
	if err != nil {
		return metas{}, err
	}
	if !info.Mode().IsRegular() {
		return metas{}, errors.New("it is not a regular file")
	}
	size := info.Size()
	if unborn(f, size) {
		if size, err = j.found(f); err != nil {
			return metas{}, err
		}
	}
	ms, err := readMetas(f, size)
	if err != nil {
		return metas{}, err
	}
	err = j.verify(f, size, ms.newest, !ms.whole)
	if err == nil || ms.whole || !ms.both || errors.Is(err, errFormat) {
		return ms, err
	}
	// Nobody was told of the newest commit. If it was cut off, all is as the one
	// before it has left it.
	j.reset()
	if j.verify(f, size, ms.older, true) != nil {
		return metas{}, err
	}
	return metas{newest: ms.older}, j.forgetCommit(f, ms.newest)
}

// found makes a journal of a file that holds nothing, and returns its size.
func (j *Journal) found(f *os.File) (int64, error) {
	b := image(os.Getpagesize())
	if _, err := f.WriteAt(b, 0); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return int64(len(b)), syncDir(filepath.Dir(j.path))
}

// forgetCommit takes back a commit that was cut off, by wiping its meta page.
func (j *Journal) forgetCommit(f *os.File, m meta) error {
	if _, err := f.WriteAt(make([]byte, m.pageSize), int64(m.txid%2)*int64(m.pageSize)); err != nil {
		return err
	}
	return f.Sync()
}

// reset empties the memory for another attempt at loading it.
func (j *Journal) reset() {
	j.slots, j.ids, j.unresolved, j.accounts = newSlots(), newIndex(), newIndex(), accounts{}
	j.seq, j.bodies = 0, 0
}

// verify reads the tree of one meta page whole, checks it against its digest,
// and loads it. Bodies that are kept outside of their records are read only if
// full is set: a commit that is known to be whole needs that no more, and their
// own checksums are looked at when they are asked for.
func (j *Journal) verify(f *os.File, size int64, m meta, full bool) error {
	s, err := newScanner(f, size, m)
	if err != nil {
		return err
	}
	if m.freelist != pgidNone {
		return fmt.Errorf("%w: it was written to by another program", persist.ErrCorrupt)
	}
	r, err := s.root()
	if err != nil {
		return err
	}
	if err := j.checkFormat(r.about); err != nil {
		return err
	}
	st, ok := decodeState(r.state)
	if !ok || st.txid != m.txid {
		return fmt.Errorf("%w: the state of commit %d is not the one that it wrote", persist.ErrCorrupt, m.txid)
	}
	if err := s.bucket(r.fates, 8, j.loadFate); err != nil {
		return err
	}
	j.ids = newIndexOf(min(st.records, uint64(size)/minEntry))
	l := j.newLoader()
	err = s.bucket(r.intents, 8, l.intent)
	l.end()
	if err != nil {
		return err
	}
	bodies, visit := st.bodies, (func(key, value []byte) error)(nil)
	if full {
		bodies = 0
		visit = func(key, value []byte) error {
			bodies += pieceContribution(key, codec.Checksum(value))
			return nil
		}
	}
	if err := s.bucket(r.bodies, 12, visit); err != nil {
		return err
	}
	if j.slots.digest != st.digest || bodies != st.bodies {
		return fmt.Errorf("%w: its records do not add up to the digest of commit %d", persist.ErrCorrupt, m.txid)
	}
	j.seq, j.bodies = st.lastSeq, st.bodies
	j.slots.settle()
	return nil
}

// minEntry is less than any entry takes, so that no number of records that a
// damaged file names asks for more memory than its size justifies.
const minEntry = 64

// checkFormat reads the bucket about the file, which is small enough for bbolt
// to keep it in the root page.
func (j *Journal) checkFormat(about bucket) error {
	p, err := parsePage(about.inline, 0, uint64(max(len(about.inline), pageHeader)))
	if err != nil || !p.leaf || p.overflow != 0 {
		return fmt.Errorf("%w: its format cannot be read", persist.ErrCorrupt)
	}
	for i := range p.count {
		key, value, _, err := p.entry(i)
		if err != nil {
			return err
		}
		switch {
		case !bytes.Equal(key, j.names.format):
		case string(value) == formatVersion:
			return nil
		default:
			return fmt.Errorf("%w: %w: %q, and this version knows %q", persist.ErrCorrupt, errFormat, value, formatVersion)
		}
	}
	return fmt.Errorf("%w: it has no format", persist.ErrCorrupt)
}

// openBolt gives the file to bbolt. What still makes bbolt panic is damage too.
func (j *Journal) openBolt(f *os.File, opts Options) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", persist.ErrCorrupt, p)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	j.db, err = bbolt.Open(j.path, 0o600, &bbolt.Options{
		Timeout:        max(opts.LockWait, 1),
		NoSync:         true,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		// Mapped anew, a file costs bbolt a copy of everything in the commit
		// under way, and waits for all readers.
		InitialMmapSize: mapSize(),
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

// mapSize is how much address space is mapped at first: as much as costs nothing.
func mapSize() int {
	if runtime.GOOS == "windows" || math.MaxInt == math.MaxInt32 {
		return 0 // where the file would be made as large, or addresses are few
	}
	return 1 << 30
}

// closeDB gives the file back.
func (j *Journal) closeDB() error {
	if j.stuck {
		// bbolt panicked with its locks held.
		return j.file.Close()
	}
	return j.db.Close()
}

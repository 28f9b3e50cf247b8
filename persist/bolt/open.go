package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	if ms.newest.txid < firstCommit {
		if err := j.found(); err != nil {
			return err
		}
		return syncDir(filepath.Dir(j.path))
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

// firstCommit is the number of the first transaction after bbolt's own two.
const firstCommit = 2

// inspect checks the file and loads it. It writes only where a crash has cut
// off the creation of the file, or its last commit. The newest meta that it
// returns is the one that counts; in a file that holds nothing yet its txid is
// below firstCommit.
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
		j.slots.settle()
		return metas{}, f.Truncate(0)
	}
	ms, err := readMetas(f, size)
	if err != nil {
		return metas{}, err
	}
	err = j.verify(f, size, ms.newest, !ms.whole)
	if err == nil || ms.whole || !ms.both {
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

// unborn reports whether the file is what a crash leaves of one that was being
// created: nothing, zeros, or the first pages of an empty bbolt file. Anything
// else of that size is somebody's.
func unborn(f *os.File, size int64) bool {
	const pages = 4
	b := readPage(f, 0, pages*pageSizeMax+1)
	if int64(len(b)) != size {
		return false
	}
	if len(bytes.Trim(b, "\x00")) == 0 {
		return true
	}
	m, valid := parseMeta(b)
	return valid && m.txid == 0 && len(b) < pages*int(m.pageSize)
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
	j.slots, j.ids, j.strays, j.accounts = newSlots(), newIndex(), newIndex(), accounts{}
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
	if m.txid < firstCommit {
		j.slots.settle()
		return s.empty()
	}
	if m.freelist != pgidNone {
		return fmt.Errorf("%w: it was written to by another program", persist.ErrCorrupt)
	}
	buckets, err := s.buckets()
	if err != nil {
		return err
	}
	st, err := readAbout(buckets, m)
	if err != nil {
		return err
	}
	if err := s.bucket(buckets[string(bucketFates)], 8, j.loadFate); err != nil {
		return err
	}
	if err := s.bucket(buckets[string(bucketIntents)], 8, j.loadIntent); err != nil {
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
	if err := s.bucket(buckets[string(bucketBodies)], 12, visit); err != nil {
		return err
	}
	if j.slots.digest != st.digest || bodies != st.bodies {
		return fmt.Errorf("%w: its records do not add up to the digest of commit %d", persist.ErrCorrupt, m.txid)
	}
	j.seq, j.bodies = st.lastSeq, st.bodies
	j.slots.settle()
	return nil
}

// readAbout reads the bucket about the file, which is always small enough for
// bbolt to keep it in the root page.
func readAbout(buckets map[string]bucket, m meta) (state, error) {
	b, found := buckets[string(bucketAbout)]
	if !found || len(buckets) != 4 {
		return state{}, fmt.Errorf("%w: it is a bbolt file, but no journal of oncehttp", persist.ErrCorrupt)
	}
	p, err := parsePage(b.inline, 0, uint64(max(len(b.inline), pageHeader)))
	if err != nil || !p.leaf || p.overflow != 0 {
		return state{}, damagedPage(m.root, "has a bucket that cannot be read")
	}
	entries := map[string][]byte{}
	for i := range p.count {
		key, value, _, err := p.entry(i)
		if err != nil {
			return state{}, err
		}
		entries[string(key)] = value
	}
	if format := string(entries[string(keyFormat)]); format != formatVersion {
		return state{}, fmt.Errorf("%w: its format is %q, and this version knows %q", persist.ErrCorrupt, format, formatVersion)
	}
	st, ok := decodeState(entries[string(keyState)])
	if !ok || st.txid != m.txid {
		return state{}, fmt.Errorf("%w: the state of commit %d is not the one that it wrote", persist.ErrCorrupt, m.txid)
	}
	return st, nil
}

// empty checks that the file is what bbolt makes of a new one: a free list that
// names nothing and a root without entries.
func (s *scanner) empty() error {
	if s.meta.root != 3 || s.meta.freelist != 2 || s.meta.pages != 4 {
		return fmt.Errorf("%w: it is a bbolt file, but no journal of oncehttp", persist.ErrCorrupt)
	}
	root, err := s.page(3)
	if err != nil {
		return err
	}
	list := readPage(s.f, 2*int64(s.meta.pageSize), pageHeader)
	if len(list) < pageHeader || !root.leaf || root.count != 0 ||
		binary.NativeEndian.Uint64(list) != 2 || binary.NativeEndian.Uint16(list[8:]) != flagFreelist || binary.NativeEndian.Uint16(list[10:]) != 0 {
		return fmt.Errorf("%w: it is a bbolt file, but no journal of oncehttp", persist.ErrCorrupt)
	}
	return nil
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
		OpenFile:       func(string, int, os.FileMode) (*os.File, error) { return f, nil },
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return persist.ErrLocked
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", persist.ErrCorrupt, err)
	}
	return err
}

// found makes a journal of an empty file.
func (j *Journal) found() error {
	tx, err := j.db.Begin(true)
	if err != nil {
		return err
	}
	for _, name := range [...][]byte{bucketAbout, bucketIntents, bucketFates, bucketBodies} {
		if _, err := tx.CreateBucket(name); err != nil {
			_ = tx.Rollback()
			return err
		}
	}
	if err := tx.Bucket(bucketAbout).Put(keyFormat, []byte(formatVersion)); err != nil {
		_ = tx.Rollback()
		return err
	}
	txid := uint64(tx.ID())
	if err := tx.Bucket(bucketAbout).Put(keyState, state{txid: txid}.encode()); err != nil {
		_ = tx.Rollback()
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if err := j.sync(); err != nil {
		return err
	}
	j.mark(txid)
	return nil
}

// closeDB gives the file back.
func (j *Journal) closeDB() error {
	if j.stuck {
		// bbolt panicked with its locks held.
		return j.file.Close()
	}
	return j.db.Close()
}

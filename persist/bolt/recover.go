package bolt

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"slices"

	"github.com/oncehttp/oncehttp/persist"
)

// recoverFile finds the commit that counts and loads it into memory. It returns
// what the meta pages then say, the newest of them being that of the commit that
// counts. It writes only where the newest commit has no mark: then a crash came in
// between, or a sync failed, and no caller was told that this commit is durable.
//
// Only pages that are damaged decide anything. If the disk fails to read one, that
// is the error.
func (j *Journal) recoverFile(f io.ReaderAt, size int64) (metas, error) {
	if size == 0 {
		return metas{}, fmt.Errorf("%w: it is empty, and no journal ever is; delete it if it never was one", persist.ErrCorrupt)
	}
	ms, err := readMetas(f, size)
	if err != nil {
		return metas{}, err
	}
	j.pageSize = int(ms.newest.pageSize)
	if ms.marked {
		_, err := j.load(f, size, ms.newest, nil)
		return ms, err
	}
	pages := newPageSums()
	attempt, err := j.load(f, size, ms.newest, pages)
	if err == nil && ms.follows() && ms.attempt != 0 && attempt != ms.attempt {
		err = fmt.Errorf("%w: commit %d was cut off, and its pages are those of an attempt before it", persist.ErrCorrupt, ms.newest.txid)
	}
	switch {
	case err == nil:
		return ms, j.complete(f, size, ms, pages)
	case !ms.both || !errors.Is(err, persist.ErrCorrupt) || errors.Is(err, errFormat):
		return metas{}, err
	}
	// No caller was told of the newest commit. If it was cut off, all is as the commit
	// before it has left it.
	// What load has entered of the newest commit goes.
	j.reset()
	if _, olderErr := j.load(f, size, ms.older, newPageSums()); olderErr != nil {
		if !errors.Is(olderErr, persist.ErrCorrupt) {
			err = olderErr
		}
		return metas{}, err
	}
	return metas{newest: ms.older}, j.forgetNewest(ms)
}

// complete makes the newest commit durable, which is whole in the file and has no mark
// yet, and then marks it as whole.
//
// A sync is not enough where one has failed before. Linux then takes the pages for
// clean although the disk does not have them, and a later sync writes nothing
// (see the manual page fsync(2), and the mailing list pgsql-hackers in spring
// 2018). So every page that the commit before did not have is written once more,
// as it was verified. If the commit before is damaged, every page is written.
func (j *Journal) complete(f io.ReaderAt, size int64, ms metas, pages *pageSums) error {
	j.step(stepOpenVerified)
	if ms.follows() {
		if err := pages.without(f, size, ms.older); err != nil && !errors.Is(err, persist.ErrCorrupt) {
			return err
		}
	}
	// In the order of the file.
	for _, id := range slices.Sorted(maps.Keys(pages.sums)) {
		if err := j.rewrite(f, id, pages); err != nil {
			return err
		}
	}
	if err := j.rewriteMetas(f, ms); err != nil {
		return err
	}
	j.step(stepOpenRewritten)
	if err := j.sync(); err != nil {
		return err
	}
	j.step(stepOpenSynced)
	return j.markDurably(ms.newest.txid)
}

// rewrite writes a page once more, if it still is as it was verified.
func (j *Journal) rewrite(f io.ReaderAt, id uint64, pages *pageSums) error {
	p := pages.sums[id]
	at := int64(id) * int64(j.pageSize)
	b, err := readUpTo(f, at, p.size)
	if err != nil {
		return err
	}
	// The kernel may have dropped the page since, and read the disk's older one.
	if len(b) < p.size || pages.sum(b) != p.sum {
		return fmt.Errorf("page %d reads otherwise than a moment before", id)
	}
	return j.writeAt(b, at)
}

// rewriteMetas writes both meta pages once more. The older one, too, may be only in
// the kernel's memory, if it was wiped by an Open that could not sync.
func (j *Journal) rewriteMetas(f io.ReaderAt, ms metas) error {
	for i := range int64(2) {
		b, err := readUpTo(f, i*int64(j.pageSize), j.pageSize)
		if err != nil {
			return err
		}
		if m, valid := parseMeta(b); uint64(i) == ms.newest.txid%2 && (!valid || m != ms.newest) {
			return errors.New("the newest meta page reads otherwise than a moment before")
		}
		if err := j.writeAt(b, i*int64(j.pageSize)); err != nil {
			return err
		}
	}
	return nil
}

// forgetNewest takes back the newest commit, which was cut off, by wiping its meta
// page. The mark of the commit before comes after that is on the disk: it says that
// there is no later one.
func (j *Journal) forgetNewest(ms metas) error {
	if err := j.writeAt(make([]byte, j.pageSize), int64(ms.newest.txid%2)*int64(j.pageSize)); err != nil {
		return err
	}
	j.step(stepOpenForgotten)
	if err := j.sync(); err != nil {
		return err
	}
	j.step(stepOpenForgetSynced)
	return j.markDurably(ms.older.txid)
}

// markDurably marks a commit as whole, on the disk.
func (j *Journal) markDurably(txid uint64) error {
	if err := j.mark(txid); err != nil {
		return err
	}
	j.step(stepOpenMarked)
	if err := j.syncMark(); err != nil {
		return err
	}
	j.step(stepOpenMarkSynced)
	return nil
}

// syncMark brings the last mark to the disk, if it is not there yet. Without it, a
// crash and a damaged page together would look like a commit that was cut off.
func (j *Journal) syncMark() error {
	if j.markSynced {
		return nil
	}
	err := j.sync()
	j.markSynced = err == nil
	return err
}

// pageSums are the pages of one commit, with what they were when it was verified.
type pageSums struct {
	seed maphash.Seed
	sums map[uint64]pageSum // by page
}

// pageSum is a hash of a page with all that it overflows into, and its size.
type pageSum struct {
	sum  uint64
	size int
}

// newPageSums is without pages yet.
func newPageSums() *pageSums {
	return &pageSums{seed: maphash.MakeSeed(), sums: map[uint64]pageSum{}}
}

// sum is the hash of a page. Its seed is random, so that no file can be made to fit.
func (p *pageSums) sum(b []byte) uint64 { return maphash.Bytes(p.seed, b) }

// add notes a page that was read.
func (p *pageSums) add(id uint64, b []byte) { p.sums[id] = pageSum{p.sum(b), len(b)} }

// without removes the pages that another commit has, too. If that is damaged, it
// removes none.
func (p *pageSums) without(f io.ReaderAt, size int64, m meta) error {
	s, err := newScanner(f, size, m)
	if err != nil {
		return err
	}
	r, err := s.root()
	if err != nil {
		return err
	}
	for _, b := range r.trees() {
		if err := s.bucket(b.bucket, b.keySize, nil); err != nil {
			return err
		}
	}
	maps.DeleteFunc(p.sums, func(id uint64, _ pageSum) bool { return s.taken(id) })
	return nil
}

// reached reports whether a commit that failed may have got as far as its meta
// page. Before that, nothing of it counts.
func (j *Journal) reached(txid uint64) bool {
	page := make([]byte, pageHeader+metaSize)
	if _, err := j.file.ReadAt(page, int64(txid%2)*int64(j.pageSize)); err != nil {
		return true
	}
	m, valid := parseMeta(page)
	return !valid || m.txid >= txid
}

// reset empties the memory for another attempt at loading it.
func (j *Journal) reset() {
	j.slots, j.ids, j.unresolved, j.accounts = newSlots(), newIDTable(0), newIndex(), accounts{}
	j.seq, j.bodies = 0, 0
}

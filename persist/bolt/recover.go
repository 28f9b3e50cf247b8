package bolt

import (
	"errors"
	"fmt"
	"io"

	"github.com/oncehttp/oncehttp/persist"
)

// Recovery: Open finds the commit that counts.
//
// If the newest commit has a mark, all of it is on the disk, and Open writes nothing. Without a mark a
// crash came in between, or a sync failed, and there are three cases. The pages of a meta are its commit's
// own if the commit before does not have them.
//
//   - The other meta page is not the one of the commit before. A meta page is written only once the newer
//     commit in the other one is on the disk, so the newest commit is on the disk.
//   - The newest commit is whole, and the one before is there, too. Perhaps nobody knows of the newest; then
//     the disk may lack a part of it shown by the kernel. Or its callers know, and the power cut has taken the
//     mark. So its own pages are written once more. No page of it may be under way without a synced copy of it:
//     the copy comes first, see copy.go.
//   - The newest commit is not whole. No caller was told of it. The commit before counts; it has never been
//     under way since.
//
// In each case the meta page not counting is wiped before the mark is written there. Otherwise the kernel
// could show the mark over a meta page still on the disk, and the next Open would take it for the truth.

// recoverFile finds the commit that counts and loads it into memory: the newest, or the one before if a crash has cut that off. A mark says that the newest is
// whole. c is a copy of its pages behind the end of the file, as a cut off Open leaves it. It returns the resulting meta pages; the newest of them is of this
// commit. size is the size of the file.
//
// Only damaged pages decide anything. If the disk fails to read a page, recoverFile returns the disk's error.
func (j *Journal) recoverFile(f io.ReaderAt, size int64) (metas, error) {
	if size == 0 {
		return metas{}, fmt.Errorf("%w: it is empty, and no journal ever is; delete it if it never was one", persist.ErrCorrupt)
	}
	ms, err := readMetas(f, size)
	if err != nil {
		return metas{}, err
	}
	j.pageSize = int(ms.newest.pageSize)
	c, err := findCopy(f, size, ms)
	if err != nil {
		return metas{}, err
	}
	if c != nil {
		f = c
		if ms, err = readMetas(f, size); err != nil {
			return metas{}, err
		}
	}
	if ms.marked {
		return ms, j.load(f, size, ms.newest, nil)
	}
	pages := newPageSums()
	err = j.load(f, size, ms.newest, pages)
	switch {
	case err == nil:
		return ms, j.complete(f, size, ms, pages, c)
	// There is no commit before it to go back to, or a whole copy of this one was found, or the disk has failed.
	case !ms.both || c != nil || !errors.Is(err, persist.ErrCorrupt):
		return metas{}, err
	}
	// Remove the records entered from the newest commit.
	j.reset()
	if olderErr := j.load(f, size, ms.older, newPageSums()); olderErr != nil {
		if !errors.Is(olderErr, persist.ErrCorrupt) { // else both are damaged, and the error of the newest is told
			err = olderErr
		}
		return metas{}, err
	}
	return metas{newest: ms.older}, j.makeNewest(ms.older.txid)
}

// complete makes the newest commit durable and then marks it. The commit is whole and has no mark yet. If a later commit was begun, this one is on the disk:
// then only the other meta page is written over, and the mark set. c is the copy through which f shows it, or nil.
//
// A sync is not enough after a failed one. Linux then takes the pages for clean although the disk does not have them, and a later sync writes nothing. See the
// manual page fsync(2), and the mailing list pgsql-hackers in spring 2018. So the pages are written once more, as they were verified.
func (j *Journal) complete(f io.ReaderAt, size int64, ms metas, pages *pageSums, c *commitCopy) error {
	if !ms.follows() { // a later commit was begun, so this one is on the disk
		return j.makeNewest(ms.newest.txid)
	}
	switch err := pages.without(f, size, ms.older); {
	case errors.Is(err, persist.ErrCorrupt):
		// The pages of the commit before are in use again: a commit came after the newest, and was cut off.
		return j.makeNewest(ms.newest.txid)
	case err != nil:
		return err
	}
	parts := pages.parts(ms.newest, j.pageSize)
	end, err := j.writeCopy(f, size, ms.newest, parts, pages, c)
	if err != nil {
		return err
	}
	if err := j.sync(); err != nil {
		return err
	}
	for _, p := range parts {
		b, err := pages.read(f, p, ms.newest)
		if err == nil {
			err = j.writeAt(b, p.at)
		}
		if err != nil {
			return err
		}
	}
	if err := j.sync(); err != nil {
		return err
	}
	if err := j.markDurably(ms.newest.txid); err != nil {
		return err
	}
	return j.file.Truncate(end) // a copy left behind belongs to no later commit
}

// makeNewest makes a commit that is on the disk the one that counts. It overwrites the other meta page, perhaps of a commit that a crash interrupted,
// and then marks the commit there as whole.
func (j *Journal) makeNewest(txid uint64) error {
	if err := j.writeAt(make([]byte, j.pageSize), int64(txid+1)%2*int64(j.pageSize)); err != nil {
		return err
	}
	if err := j.sync(); err != nil {
		return err
	}
	return j.markDurably(txid)
}

// markDurably marks a commit as whole, on the disk.
func (j *Journal) markDurably(txid uint64) error {
	if err := j.mark(txid); err != nil {
		return err
	}
	return j.syncMark()
}

// syncMark makes the last commit's mark durable, if it is not yet. Without it, a crash and a damaged page together would look like a commit that the
// crash interrupted.
func (j *Journal) syncMark() error {
	if j.markSynced {
		return nil
	}
	err := j.sync()
	j.markSynced = err == nil
	return err
}

// reached reports whether a failed commit may have written its meta page, the last thing that a commit writes. If not, nothing of it counts. It is
// true also if the page cannot be read. txid is the number of the commit.
func (j *Journal) reached(txid uint64) bool {
	page := make([]byte, pageHeader+metaSize)
	if _, err := j.file.ReadAt(page, int64(txid%2)*int64(j.pageSize)); err != nil {
		return true
	}
	m, valid := parseMeta(page)
	return !valid || m.txid >= txid
}

// reset empties the memory (slots and indexes of records, and the numbers over all) for another attempt at loading it.
func (j *Journal) reset() {
	j.slots, j.ids, j.unresolved, j.accounts = newSlots(), newIDTable(0), newIndex(), accounts{}
	j.seq, j.bodies = 0, 0
}

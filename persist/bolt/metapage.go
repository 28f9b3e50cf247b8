package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/oncehttp/oncehttp/persist"
)

// The layout of bbolt's pages, a part of its file format. Numbers are in the machine's own byte order.
const (
	pageHeader  = 16 // id, flags, count, overflow
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSize    = 64
	pgidNone    = ^uint64(0) // of the free list, if it is not in the file
	pageSizeMin = 1 << 10
	pageSizeMax = 1 << 16
	flagBranch  = 0x01
	flagLeaf    = 0x02
	flagMeta    = 0x04
)

// meta is the content of a meta page.
type meta struct {
	pageSize uint32
	root     uint64
	freelist uint64
	pages    uint64 // high water mark
	txid     uint64
}

// parseMeta reads a meta page, which names the root of a commit's data, from its beginning. The second result is false if it is damaged, or no meta page. A
// page size is a power of two. A page cut by a crash counts as damaged: it has a checksum.
func parseMeta(page []byte) (meta, bool) {
	if len(page) < pageHeader+metaSize {
		return meta{}, false
	}
	b := page[pageHeader : pageHeader+metaSize]
	n := binary.NativeEndian
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	if n.Uint32(b) != metaMagic || n.Uint32(b[4:]) != metaVersion || n.Uint64(b[56:]) != sum.Sum64() {
		return meta{}, false
	}
	m := meta{pageSize: n.Uint32(b[8:]), root: n.Uint64(b[16:]), freelist: n.Uint64(b[32:]), pages: n.Uint64(b[40:]), txid: n.Uint64(b[48:])}
	return m, m.pageSize >= pageSizeMin && m.pageSize <= pageSizeMax && m.pageSize&(m.pageSize-1) == 0
}

// The mark is a magic number, the number of the whole transaction, and both mixed. It lies in the page of
// the other, older meta, behind bbolt's data there. The next commit writes this page anew and removes the
// mark with it. The mark is in another 512-byte sector than the meta, so a crash during its write cannot
// damage the meta.
const (
	markAt    = 512
	markSize  = 24
	markMagic = 0x6f6e636568747470
)

// appendMark appends a mark: it says that the commit of this transaction is whole and safely on the disk.
func appendMark(b []byte, txid uint64) []byte {
	b = binary.BigEndian.AppendUint64(b, markMagic)
	b = binary.BigEndian.AppendUint64(b, txid)
	return binary.BigEndian.AppendUint64(b, mix(markMagic^mix(txid)))
}

// parseMark reads the mark from a meta page. It returns the transaction declared whole by the mark, or 0 if
// there is no mark, or a damaged one.
func parseMark(page []byte) uint64 {
	if len(page) < markAt+markSize {
		return 0
	}
	b := page[markAt : markAt+markSize]
	txid := binary.BigEndian.Uint64(b[8:])
	if binary.BigEndian.Uint64(b) != markMagic || binary.BigEndian.Uint64(b[16:]) != mix(markMagic^mix(txid)) {
		return 0
	}
	return txid
}

// mark writes the mark that the commit of this transaction is whole. The two meta pages belong to even and odd transactions; the mark goes into the other one,
// that of the commit before. It does not sync: the next sync does, at the latest the sync of Close.
func (j *Journal) mark(txid uint64) error {
	j.markSynced = false
	return j.writeAt(appendMark(j.scratch[:0], txid), int64(txid+1)%2*int64(j.pageSize)+markAt)
}

// writeAt writes b to the file at the offset at. The journal writes its own marks and copies by it; bbolt writes its pages by itself. Tests can see
// the write, and make it fail.
func (j *Journal) writeAt(b []byte, at int64) error {
	if j.hooks.write != nil {
		if err := j.hooks.write(b, at); err != nil {
			return err
		}
	}
	_, err := j.file.WriteAt(b, at)
	return err
}

// metas are the two meta pages of a file.
type metas struct {
	newest meta
	older  meta
	both   bool // older is valid too
	marked bool // a mark declares the newest commit whole
}

// follows reports whether the other meta page is valid, and of the commit just before the newest one. Otherwise a crash has interrupted a later commit, or
// that page is damaged.
func (ms *metas) follows() bool { return ms.both && ms.older.txid == ms.newest.txid-1 }

// readMetas reads the two meta pages and finds the newest valid one. bbolt writes them in turn, so the other is that of the commit before. A mark in
// either says up to which commit everything is safely on the disk. If a marked commit has no valid meta page, the file was damaged later.
// Errors: persist.ErrCorrupt, or the error of a failed read.
func readMetas(f io.ReaderAt, size int64) (metas, error) {
	pageSize, err := findPageSize(f, size)
	if err != nil {
		return metas{}, err
	}
	var found [2]meta
	var ok [2]bool
	marked := uint64(0)
	for i := range found {
		page, err := readUpTo(f, int64(i)*pageSize, pageSizeMin)
		if err != nil {
			return metas{}, err
		}
		found[i], ok[i] = parseMeta(page)
		// bbolt writes the meta of a transaction to the page of its parity.
		ok[i] = ok[i] && int64(found[i].pageSize) == pageSize && found[i].txid%2 == uint64(i)
		marked = max(marked, parseMark(page))
	}
	if !ok[0] && !ok[1] {
		return metas{}, fmt.Errorf("%w: both meta pages are damaged", persist.ErrCorrupt)
	}
	newest := 0
	if !ok[0] || ok[1] && found[1].txid > found[0].txid {
		newest = 1
	}
	ms := metas{newest: found[newest], older: found[1-newest], both: ok[1-newest]}
	// A mark is written after its commit is on the disk, so its meta page was there.
	if marked > ms.newest.txid {
		return metas{}, fmt.Errorf("%w: the newest meta page, of commit %d, is damaged", persist.ErrCorrupt, marked)
	}
	ms.marked = marked == ms.newest.txid
	return ms, nil
}

// findPageSize returns the page size that the first meta page names. If that page is damaged, it looks for the second meta page at each place that a
// possible page size gives it.
func findPageSize(f io.ReaderAt, size int64) (int64, error) {
	first, err := readUpTo(f, 0, pageSizeMin)
	if err != nil {
		return 0, err
	}
	if m, valid := parseMeta(first); valid {
		return int64(m.pageSize), nil
	}
	for at := int64(pageSizeMin); at <= pageSizeMax && at < size; at *= 2 {
		page, err := readUpTo(f, at, pageSizeMin)
		if err != nil {
			return 0, err
		}
		if m, valid := parseMeta(page); valid && int64(m.pageSize) == at {
			return at, nil
		}
	}
	return 0, fmt.Errorf("%w: it is no bbolt file, or both its meta pages are damaged", persist.ErrCorrupt)
}

// readUpTo reads size bytes from an offset, or fewer at the end of the file. An error is one of reading, and does not mean that the file is damaged.
func readUpTo(f io.ReaderAt, at int64, size int) ([]byte, error) {
	b := make([]byte, size)
	n, err := f.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

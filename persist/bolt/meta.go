package bolt

import (
	"encoding/binary"
	"hash/fnv"
	"io"
)

// The layout of bbolt's meta page, which is part of its file format. Numbers are
// in the machine's own byte order.
const (
	pageHeader   = 16
	metaMagic    = 0xED0CDAED
	metaVersion  = 2
	metaSize     = 64
	pgidNone     = ^uint64(0) // of the free list, if it is not in the file
	pageSizeMin  = 1 << 10
	pageSizeMax  = 16 << 20
	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	flagMeta     = 0x04
)

// meta is what a meta page says.
type meta struct {
	pageSize uint32
	root     uint64
	freelist uint64
	pages    uint64 // high water mark
	txid     uint64
}

// parseMeta reads a meta page from its beginning.
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

// The mark behind a meta page: a magic number, the number of the transaction
// that is whole, and both mixed. bbolt leaves this part of the page alone until
// it writes the whole page again, two commits later.
const (
	markAt    = 512 // in a sector of its own, where sectors have 512 bytes
	markSize  = 24
	markMagic = 0x6f6e636568747470
)

func encodeMark(txid uint64) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, markSize), markMagic)
	b = binary.BigEndian.AppendUint64(b, txid)
	return binary.BigEndian.AppendUint64(b, mix(markMagic^mix(txid)))
}

// parseMark reads the mark from a meta page, and returns 0 if there is none.
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

// mark says behind its meta page that a commit is whole. It is not synced, and
// what becomes of it does not matter to anybody but a file that was damaged.
func (j *Journal) mark(txid uint64) {
	_, _ = j.file.WriteAt(encodeMark(txid), int64(txid%2)*int64(j.pageSize)+markAt)
}

// reached reports whether a commit that failed may have got as far as its meta
// page. Before that, nothing of it counts.
func (j *Journal) reached(txid uint64) bool {
	page := make([]byte, pageHeader+metaSize)
	if _, err := j.file.ReadAt(page, int64(txid%2)*int64(j.pageSize)); err != nil && err != io.EOF {
		return true
	}
	m, valid := parseMeta(page)
	return !valid || m.txid >= txid
}

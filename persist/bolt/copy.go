package bolt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"slices"
)

// Open writes the newest commit's own pages and its meta page once more. Meanwhile a synced copy of them
// lies behind the end of the file; bbolt does not look there. If the power fails then, these pages may hold
// anything, and the next Open reads them from the copy. Before the next Open touches anything, it writes a
// copy of its own behind the found one. The sync of the found one may have failed, and yet it may be the
// only copy on the disk.
//
// A copy begins at a multiple of copyAlign with its head. Then comes a table of the copied parts of the
// file, then these parts. The copy counts for as long as no later commit is on the disk, and its commit is
// not marked. When all is done, the file is cut to its size again.
const (
	copyMagic = 0x6f6e63656370792e
	copyAlign = 64 << 10
	copyHead  = 9*8 + sha256.Size
)

// commitCopy is a copy found in a file. It reads as the file, with the content of the copy in its place.
type commitCopy struct {
	f     io.ReaderAt
	head  head
	parts []copied // in the order of the file
}

// copied is a part of the file, and the place of its copy.
type copied struct {
	part
	from int64
}

// head is the head of a copy.
type head struct {
	txid   uint64 // of the commit
	nth    uint64 // of the copies of the commit, from 1
	size   uint64 // of the file without any
	parts  uint64 // how many
	length uint64 // of the table and the parts
	sum    [sha256.Size]byte
}

// append appends the head of a copy of commit pages to b, with a checksum at its end. The head says of what commit the pages are (txid), which of its copies
// this is (nth), the size of the file without copies (size), and the number of copied parts, the length and the checksum of what follows the head. The
// checksum is cut to 24 bytes, the rest of the head's fixed length.
func (h *head) append(b []byte) []byte {
	from := len(b)
	for _, n := range [...]uint64{copyMagic, h.txid, h.nth, h.size, h.parts, h.length} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = append(b, h.sum[:]...)
	sum := sha256.Sum256(b[from:])
	return append(b, sum[:3*8]...)
}

// parseHead reads the head of a copy of commit pages, as append has written it. ok is false for bytes that are no whole head with a right checksum.
func parseHead(b []byte) (h head, ok bool) {
	if len(b) != copyHead || binary.BigEndian.Uint64(b) != copyMagic {
		return head{}, false
	}
	n := binary.BigEndian
	h = head{txid: n.Uint64(b[8:]), nth: n.Uint64(b[16:]), size: n.Uint64(b[24:]), parts: n.Uint64(b[32:]), length: n.Uint64(b[40:])}
	copy(h.sum[:], b[48:])
	return h, bytes.Equal(h.append(nil), b)
}

// aligned returns the first offset of the file, from at on, at which a copy of pages may begin.
func aligned(at int64) int64 { return (at + copyAlign - 1) / copyAlign * copyAlign }

// findCopy looks behind the end of the file for copies of the newest commit's pages. Open makes such a copy before it writes these pages once more: if a crash
// cuts that off, only the copy has them. findCopy returns the last valid copy, or nil if there is none. Copies begin at multiples of copyAlign, behind the
// pages of the commit. A copy counts for the newest commit or a later one, and not for a commit that is marked: then the commit itself is safely on the disk.
// Errors: the error of a failed read.
func findCopy(f io.ReaderAt, size int64, ms metas) (*commitCopy, error) {
	var found *commitCopy
	for at := aligned(int64(ms.newest.pages) * int64(ms.newest.pageSize)); at+copyHead <= size; at += copyAlign {
		b, err := readUpTo(f, at, copyHead)
		if err != nil {
			return nil, err
		}
		h, ok := parseHead(b)
		if !ok || h.txid < ms.newest.txid || h.txid == ms.newest.txid && ms.marked || found != nil && !found.head.before(&h) {
			continue
		}
		c, err := readCopy(f, size, at, h)
		if err != nil {
			return nil, err
		}
		if c != nil {
			found = c
		}
	}
	return found, nil
}

// before reports whether another copy of commit pages is to be preferred to this one: it is of a later commit, or was written later.
func (h *head) before(other *head) bool {
	return h.txid < other.txid || h.txid == other.txid && h.nth < other.nth
}

// readCopy reads the copy that begins at this place of the file with this head. Behind the head are a table of the copied parts, 16 bytes each (place in the
// file, and size), and then the parts. It returns nil if the copy was not written completely: its lengths do not fit in the file, or its checksum differs.
func readCopy(f io.ReaderAt, size, at int64, h head) (*commitCopy, error) {
	if at += copyHead; h.length > uint64(size-at) || h.parts > h.length/16 {
		return nil, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, at, int64(h.length))); err != nil {
		return nil, err
	}
	if !bytes.Equal(sum.Sum(nil), h.sum[:]) {
		return nil, nil
	}
	table, err := readUpTo(f, at, int(h.parts)*16)
	if err != nil {
		return nil, err
	}
	c := &commitCopy{f: f, head: h}
	from := at + int64(len(table))
	for b := table; len(b) > 0; b = b[16:] {
		p := part{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}
		c.parts = append(c.parts, copied{p, from})
		from += p.size
	}
	return c, nil
}

// ReadAt implements [io.ReaderAt]: it reads the file with the parts of the copy in their old places. Open copies the pages of the newest commit behind the
// end of the file before it writes them once more. If a crash cuts that off, these pages may hold anything, and the next Open reads the commit by this
// method.
func (c *commitCopy) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.f.ReadAt(b, at)
	// The first part that ends behind at.
	i, _ := slices.BinarySearchFunc(c.parts, at, func(p copied, at int64) int { return int(min(max(p.at+p.size-1-at, -1), 1)) })
	for ; i < len(c.parts) && c.parts[i].at < at+int64(n); i++ {
		p := c.parts[i]
		from, to := max(p.at, at), min(p.at+p.size, at+int64(n))
		if from >= to {
			continue
		}
		if _, err := c.f.ReadAt(b[from-at:to-at], p.from+from-p.at); err != nil {
			return 0, err
		}
	}
	return n, err
}

// writeCopy writes a copy of parts of the commit with the meta page m behind the end of the file, and behind last, an earlier copy (nil: there is none). If a
// crash cuts off the work on the pages in their places, findCopy finds them there. The head is written last: without it the rest is no copy. It does not sync.
// f is the file as read through last, and size its size with it. pages has the hashes of the pages as verified. end is the size of the file without copies.
func (j *Journal) writeCopy(f io.ReaderAt, size int64, m meta, parts []part, pages *pageSums, last *commitCopy) (end int64, err error) {
	h := head{txid: m.txid, nth: 1, size: uint64(size), parts: uint64(len(parts))}
	if last != nil {
		h.nth, h.size = last.head.nth+1, last.head.size
	}
	at := aligned(size)
	w := &copyWriter{j: j, at: at + copyHead, sum: sha256.New()}
	table := make([]byte, 0, 16*len(parts))
	for _, p := range parts {
		table = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(table, uint64(p.at)), uint64(p.size))
	}
	w.write(table)
	for _, p := range parts {
		b, err := pages.read(f, p, m)
		if err != nil {
			return 0, err
		}
		w.write(b)
	}
	h.length = uint64(w.at - at - copyHead)
	w.sum.Sum(h.sum[:0])
	if w.err == nil {
		w.err = j.writeAt(h.append(nil), at)
	}
	if w.err != nil {
		return 0, fmt.Errorf("%w: Open needs %d bytes more of disk space, for a moment", w.err, w.at-size)
	}
	return int64(h.size), nil
}

// copyWriter writes one thing behind the other, and sums them up.
type copyWriter struct {
	j   *Journal
	at  int64
	sum hash.Hash
	err error
}

// write appends b to the copy in the file, and to its checksum. After a failed write it does nothing: the caller looks at err once, at the end.
func (w *copyWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	w.sum.Write(b)
	w.err = w.j.writeAt(b, w.at)
	w.at += int64(len(b))
}

package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/oncehttp/oncehttp/persist"
)

// scanner reads the pages of one commit before bbolt does.
//
// bbolt trusts its file: it panics on a damaged page, even in a goroutine of its own, and follows a damaged
// branch for ever. So bbolt gets the file only after every page in its reach has been read and checked.
// This also brings the pages into the kernel's cache in one sequential pass; bbolt would read them one by
// one.
//
// Its errors are persist.ErrCorrupt if the pages are damaged. Any other error is the disk's, and says
// nothing about the pages.
type scanner struct {
	f    io.ReaderAt
	meta meta
	seen []uint64 // bit set of the pages belonging to a tree
	buf  []byte
	// within bounds the keys of all trees, once it is set. The checksums do not know the upper bit of a Seq.
	within ref
	// read, if it is not nil, is called with every page in full.
	read func(id uint64, b []byte)
}

// readMax is how much one read asks for.
const readMax = 1 << 20

// depthMax bounds a tree's depth, far above the need of 2^64 entries.
const depthMax = 48

// newScanner returns a scanner of the file's pages, as of the commit with the meta page m, without bbolt. seen has a bit for each page that was read as a part
// of some tree; buf is memory for reads. Errors: persist.ErrCorrupt, if the file is too short for the pages of this commit.
func newScanner(f io.ReaderAt, size int64, m meta) (*scanner, error) {
	if m.pages < 2 || m.pages > uint64(size)/uint64(m.pageSize) {
		return nil, fmt.Errorf("%w: it has %d bytes and should have %d pages of %d", persist.ErrCorrupt, size, m.pages, m.pageSize)
	}
	return &scanner{f: f, meta: m, seen: make([]uint64, m.pages/64+1), buf: make([]byte, min(readMax, m.pages*uint64(m.pageSize)))}, nil
}

// root is the content of the root page.
type root struct {
	about, intents, progress, bodies bucket
	state                            []byte
}

// bucket is the place of a bucket: at a page, or inline.
type bucket struct {
	root   uint64
	inline []byte
}

// tree is a bucket with the length of its keys in bytes.
type tree struct {
	bucket
	keySize int
}

// The lengths of keys: a Seq, and a Seq with a part and a number.
const (
	seqKeySize   = 8
	pieceKeySize = 12
)

// trees returns the journal's buckets that may have pages of their own, each with the length of its keys. The bucket about the file is small, and lies in
// the root page.
func (r *root) trees() []tree {
	return []tree{{r.intents, seqKeySize}, {r.progress, seqKeySize}, {r.bodies, pieceKeySize}}
}

// root reads the root page, and returns the places of the journal's buckets. Each bucket must be there once, in bbolt's order, and nothing else may be there
// but the entry of the commit's state.
// Errors: persist.ErrCorrupt, also for a bbolt file without a journal.
func (s *scanner) root() (root, error) {
	p, err := s.page(s.meta.root)
	if err != nil {
		return root{}, err
	}
	if !p.leaf || p.overflow != 0 {
		return root{}, damagedPage(p.id, "is no root of a journal")
	}
	var r root
	var last []byte
	n := newNames()
	places := map[string]*bucket{string(n.about): &r.about, string(n.intents): &r.intents, string(n.progress): &r.progress, string(n.bodies): &r.bodies}
	for i := range p.count {
		key, value, flags, err := p.entry(i)
		if err != nil {
			return root{}, err
		}
		// bbolt searches by halves, and panics if the keys are not in order.
		if i > 0 && bytes.Compare(last, key) >= 0 {
			return root{}, damagedPage(p.id, "is out of order")
		}
		last = key
		// Each name may come once, and none may be missing.
		place := places[string(key)]
		delete(places, string(key))
		switch {
		case place != nil && flags == flagBucket && len(value) >= pageHeader:
			*place = bucket{root: binary.NativeEndian.Uint64(value), inline: bytes.Clone(value[pageHeader:])}
		case bytes.Equal(key, n.state) && flags == 0 && r.state == nil:
			r.state = bytes.Clone(value)
		default:
			return root{}, fmt.Errorf("%w: it is a bbolt file, but no journal of oncehttp", persist.ErrCorrupt)
		}
	}
	if len(places) != 0 {
		return root{}, fmt.Errorf("%w: it is a bbolt file, but no journal of oncehttp", persist.ErrCorrupt)
	}
	return r, nil
}

// page reads one page, without its overflow pages, and notes that it belongs to a tree. A page that two places name is damage. s.read, if it is set, gets
// every page.
func (s *scanner) page(id uint64) (page, error) {
	if id < 2 || id >= s.meta.pages { // the first two are meta pages
		return page{}, damagedPage(id, "does not exist")
	}
	size := uint64(s.meta.pageSize)
	b, err := readUpTo(s.f, int64(id*size), int(size))
	if err != nil {
		return page{}, err
	}
	p, err := parsePage(b, id, size)
	if err == nil {
		err = s.take(&p)
	}
	if err == nil && s.read != nil {
		s.read(id, b)
	}
	return p, err
}

// take notes a page and its overflow pages as parts of a tree. A page of two trees would be written over by either, and so it is damage.
// Errors: persist.ErrCorrupt, if the page is taken or leaves the file.
func (s *scanner) take(p *page) error {
	if p.overflow >= s.meta.pages-p.id {
		return damagedPage(p.id, "leaves the file")
	}
	for id := p.id; id <= p.id+p.overflow; id++ {
		if s.taken(id) {
			return damagedPage(id, "is used twice")
		}
		s.seen[id/64] |= 1 << (id % 64)
	}
	return nil
}

// taken reports whether the check of the file has read this page already, as a part of another tree. A page in two trees is damage.
func (s *scanner) taken(id uint64) bool {
	return id < s.meta.pages && s.seen[id/64]&(1<<(id%64)) != 0
}

// bound is a key of a tree as numbers: a Seq, or a Seq and a piece.
type bound struct {
	seq   uint64
	piece uint32
}

// parseBound reads a key of size bytes: the Seq of a record, and for a piece of a body its number. It returns false for a key of another length.
func parseBound(key []byte, size int) (bound, bool) {
	if len(key) != size {
		return bound{}, false
	}
	b := bound{seq: binary.BigEndian.Uint64(key)}
	if size == pieceKeySize {
		b.piece = binary.BigEndian.Uint32(key[8:])
	}
	return b, true
}

// compare compares the keys of two entries as bbolt orders them, by their bytes: by the record's number, then by the piece of its
// body.
func (b bound) compare(c bound) int {
	return cmp.Or(cmp.Compare(b.seq, c.seq), cmp.Compare(b.piece, c.piece))
}

// ref is a page still to be read, with the bounds of its keys.
type ref struct {
	id      uint64
	from    bound
	to      bound // not included
	bounded bool  // there is a to
}

// walk is a pass over one bucket.
type walk struct {
	s       *scanner
	keySize int
	// visit gets every entry, in no order. If it is nil, only the shape of the tree is checked, and large
	// pages are read no further than needed for this.
	visit func(key, value []byte) error
	next  []ref
}

// bucket walks a bucket level by level, and gives every entry to visit, in no order. A level is read in the order of the file. Without a visit it checks the
// shape only. The keys are of keySize bytes, and within the bounds s.within. A small bucket (root is 0) has no pages of its own: it lies inside the root page.
// Errors: those of visit, persist.ErrCorrupt, or the error of a failed read.
func (s *scanner) bucket(b bucket, keySize int, visit func(key, value []byte) error) error {
	w := walk{s: s, keySize: keySize, visit: visit}
	if b.root == 0 {
		p, err := parsePage(b.inline, 0, uint64(max(len(b.inline), pageHeader)))
		if err != nil || !p.leaf || p.overflow != 0 {
			return damagedPage(s.meta.root, "has a bucket that cannot be read")
		}
		return w.leaf(&p, s.within)
	}
	top := s.within
	top.id = b.root
	level := []ref{top}
	for range depthMax {
		if len(level) == 0 {
			return nil
		}
		// Reading in the order of the file makes opening a large one quick.
		slices.SortFunc(level, func(a, b ref) int { return cmp.Compare(a.id, b.id) })
		if err := w.level(level); err != nil {
			return err
		}
		level, w.next = w.next, level[:0]
	}
	return fmt.Errorf("%w: a tree is deeper than %d levels", persist.ErrCorrupt, depthMax)
}

// level reads and checks the pages of one level of a tree. refs names them, sorted by page. Pages near to each other are read by one call, as many as
// fit in the buffer.
func (w *walk) level(refs []ref) error {
	size := uint64(w.s.meta.pageSize)
	span := readMax / size
	for len(refs) > 0 {
		first := refs[0].id
		n := 1
		// Gaps of a few pages are read along: one read is quicker than two.
		for n < len(refs) && refs[n].id < first+span && refs[n].id <= refs[n-1].id+8 {
			n++
		}
		last := refs[n-1].id
		if first < 2 || last >= w.s.meta.pages {
			return damagedPage(last, "does not exist")
		}
		b := w.s.buf[:(last-first+1)*size]
		got, err := w.s.f.ReadAt(b, int64(first*size))
		switch {
		case got == len(b):
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: pages %d to %d are cut off", persist.ErrCorrupt, first, last)
		default:
			return err
		}
		for _, r := range refs[:n] {
			if err := w.page(b[(r.id-first)*size:][:size], r); err != nil {
				return err
			}
		}
		refs = refs[n:]
	}
	return nil
}

// page checks one page of a tree and its content. b is its first page; its overflow pages are read only if somebody needs their content, or if the table of
// entries goes on in them. A leaf's entries are visited, and the children of a branch are noted for the next level. r has the bounds of the page's keys.
func (w *walk) page(b []byte, r ref) error {
	p, err := parsePage(b, r.id, uint64(w.s.meta.pageSize))
	if err != nil {
		return err
	}
	if err := w.s.take(&p); err != nil {
		return err
	}
	if p.overflow > 0 && (w.visit != nil || w.s.read != nil || pageHeader+p.count*elementSize > len(b)) {
		if p.b, err = readUpTo(w.s.f, int64(r.id)*int64(w.s.meta.pageSize), int(p.size)); err != nil {
			return err
		}
		if uint64(len(p.b)) < p.size {
			return damagedPage(r.id, "is cut off")
		}
	}
	if w.s.read != nil {
		w.s.read(r.id, p.b)
	}
	if p.leaf {
		return w.leaf(&p, r)
	}
	return w.branch(&p, r)
}

// branch checks a branch page, whose keys must be within the bounds in r. It notes the page's children in w.next, each with the bounds of its keys: from its
// own key to the key of the next child.
func (w *walk) branch(p *page, r ref) error {
	from := len(w.next)
	for i := range p.count {
		e, err := p.element(i)
		if err != nil {
			return err
		}
		key, err := p.bytes(e.key, e.value)
		if err != nil {
			return err
		}
		b, err := w.order(p, i, key, r)
		if err != nil {
			return err
		}
		if i > 0 {
			w.next[len(w.next)-1].to, w.next[len(w.next)-1].bounded = b, true
		}
		w.next = append(w.next, ref{id: e.child, from: b, to: r.to, bounded: r.bounded})
		if i > 0 && w.next[from+i-1].from.compare(b) >= 0 {
			return damagedPage(p.id, "is out of order")
		}
	}
	return nil
}

// leaf checks a leaf page, whose keys must be within the bounds in r, and gives its entries to visit. Without a visit, only the beginning of a page with
// large values was read. Of the entries behind it only the keys are read. Their own checksums are checked when the entries are asked for.
func (w *walk) leaf(p *page, r ref) error {
	var last bound
	for i := range p.count {
		e, err := p.element(i)
		if err != nil {
			return err
		}
		if e.flags != 0 {
			return damagedPage(p.id, "has a bucket within a bucket")
		}
		key, err := w.key(p, e)
		if err != nil {
			return err
		}
		b, err := w.order(p, i, key, r)
		if err != nil {
			return err
		}
		if i > 0 && last.compare(b) >= 0 {
			return damagedPage(p.id, "is out of order")
		}
		last = b
		if w.visit == nil {
			continue
		}
		value, err := p.bytes(e.value, e.end)
		if err != nil {
			return err
		}
		if err := w.visit(key, value); err != nil {
			return err
		}
	}
	return nil
}

// key returns the key of an entry of a leaf page. If only the beginning of the page was read, it reads the key alone: bbolt relies on the order of
// all keys.
func (w *walk) key(p *page, e element) ([]byte, error) {
	if e.value <= uint64(len(p.b)) {
		return p.b[e.key:e.value], nil
	}
	if e.value-e.key != uint64(w.keySize) {
		return nil, damagedPage(p.id, fmt.Sprintf("has a key of %d bytes", e.value-e.key))
	}
	key, err := readUpTo(w.s.f, int64(p.id)*int64(w.s.meta.pageSize)+int64(e.key), w.keySize)
	if err == nil && len(key) < w.keySize {
		err = damagedPage(p.id, "is cut off")
	}
	return key, err
}

// order checks that the i-th key of a page has the right length, and is within the bounds that the parent page has set for it (in r; without bounded there is
// no upper one): else a search would miss the entry. It returns the key as numbers: a record's Seq and, for a piece of a body, the number of the piece.
func (w *walk) order(p *page, i int, key []byte, r ref) (bound, error) {
	b, ok := parseBound(key, w.keySize)
	if !ok {
		return bound{}, damagedPage(p.id, fmt.Sprintf("has a key of %d bytes", len(key)))
	}
	if b.compare(r.from) < 0 || r.bounded && b.compare(r.to) >= 0 {
		return bound{}, damagedPage(p.id, fmt.Sprintf("has entry %d out of order", i))
	}
	return b, nil
}

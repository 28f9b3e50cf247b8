package bolt

import (
	"encoding/binary"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// page is a leaf or branch page of the file, checked so far: none of its methods reads beyond it. b may be
// its beginning only.
type page struct {
	id       uint64
	b        []byte
	size     uint64 // of the whole page, overflow included
	leaf     bool
	count    int
	overflow uint64
}

const elementSize = 16 // of leaf and of branch pages

// parsePage checks the head of a page read from the place of id. b may be less than the whole page; the
// size in the result counts the whole page.
// Errors: persist.ErrCorrupt.
func parsePage(b []byte, id, pageSize uint64) (page, error) {
	if len(b) < pageHeader {
		return page{}, damagedPage(id, "is cut off")
	}
	n := binary.NativeEndian
	flags := n.Uint16(b[8:])
	p := page{id: id, b: b, leaf: flags == flagLeaf, count: int(n.Uint16(b[10:])), overflow: uint64(n.Uint32(b[12:]))}
	p.size = (p.overflow + 1) * pageSize
	switch {
	case n.Uint64(b) != id:
		return page{}, damagedPage(id, "says that it is another")
	case flags != flagLeaf && flags != flagBranch:
		return page{}, damagedPage(id, "is neither leaf nor branch")
	case pageHeader+uint64(p.count)*elementSize > p.size:
		return page{}, damagedPage(id, "has more entries than fit")
	case flags == flagBranch && p.count == 0:
		return page{}, damagedPage(id, "is a branch to nowhere")
	}
	return p, nil
}

// element is the place of the key and the value of an entry in their page.
type element struct {
	key, value, end uint64
	flags           uint32 // of a leaf page
	child           uint64 // of a branch page
}

// element returns the place of the i-th entry. The table of entries must be in p.b up to there; the entry
// itself need not be.
// Errors: persist.ErrCorrupt.
func (p *page) element(i int) (element, error) {
	at := pageHeader + i*elementSize
	if at+elementSize > len(p.b) {
		return element{}, damagedPage(p.id, "is cut off")
	}
	n, b := binary.NativeEndian, p.b[at:at+elementSize]
	var e element
	var pos, ksize, vsize uint64
	if p.leaf {
		e.flags = n.Uint32(b)
		pos, ksize, vsize = uint64(n.Uint32(b[4:])), uint64(n.Uint32(b[8:])), uint64(n.Uint32(b[12:]))
	} else {
		pos, ksize = uint64(n.Uint32(b)), uint64(n.Uint32(b[4:]))
		e.child = n.Uint64(b[8:])
	}
	e.key = uint64(at) + pos
	e.value = e.key + ksize
	e.end = e.value + vsize
	if e.end > p.size {
		return element{}, damagedPage(p.id, "has an entry that leaves it")
	}
	return e, nil
}

// bytes returns a part of the page. The part must have been read.
func (p *page) bytes(from, to uint64) ([]byte, error) {
	if to > uint64(len(p.b)) {
		return nil, damagedPage(p.id, "is cut off")
	}
	return p.b[from:to], nil
}

// entry returns the key, the value and the flags of the i-th entry of a leaf page. They point into the page, which must have been read with its
// overflow pages.
// Errors: persist.ErrCorrupt.
func (p *page) entry(i int) (key, value []byte, flags uint32, err error) {
	e, err := p.element(i)
	if err != nil {
		return nil, nil, 0, err
	}
	all, err := p.bytes(e.key, e.end)
	if err != nil {
		return nil, nil, 0, err
	}
	return all[:e.value-e.key], all[e.value-e.key:], e.flags, nil
}

// damagedPage is the error for a page a journal cannot have.
func damagedPage(id uint64, what string) error {
	return fmt.Errorf("%w: page %d %s", persist.ErrCorrupt, id, what)
}

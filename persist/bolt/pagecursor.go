package bolt

import (
	"bytes"
	"fmt"
	"io"
	"sort"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
)

// cursor reads the entries of a bucket in the order of their keys. The results are valid until its next call. After an error its position
// is not defined: seek again.
type cursor interface {
	// seek goes to the first entry whose key is not before this one. key is nil if there is none.
	seek(from []byte) (key, value []byte, err error)
	// next goes to the entry after that. key is nil at the end.
	next() (key, value []byte, err error)
}

// boltCursor is a cursor of bbolt. It panics on a damaged page.
type boltCursor struct{ c *bbolt.Cursor }

// seek is [bbolt.Cursor.Seek]: it returns the first entry with a key not below from; the key is nil at the end. Its error is always nil: the other kind of
// cursor reads the file by itself, and can fail.
func (b boltCursor) seek(from []byte) (key, value []byte, err error) {
	key, value = b.c.Seek(from)
	return key, value, nil
}

// next is [bbolt.Cursor.Next]: it returns the next entry; the key is nil at the end. Its error is always nil: the other kind of cursor can fail.
func (b boltCursor) next() (key, value []byte, err error) {
	key, value = b.c.Next()
	return key, value, nil
}

// commitPages are the pages of the commit read by a journal opened for reading. Nobody changes them while it holds the file.
type commitPages struct {
	f        io.ReaderAt
	pageSize uint64
	pages    uint64 // their number
	root     root
}

// pageCursor is a cursor that reads pages from the file, and not through a mapping of it: a listing of a large journal takes the memory of
// a few pages. A failed read is the disk's error, a damaged page persist.ErrCorrupt.
type pageCursor struct {
	of     *commitPages
	bucket bucket
	path   []step // from the root to a leaf
	depth  int    // the length of path in use; the rest are buffers for later pages
}

// step is a page on the way to an entry.
type step struct {
	page page
	at   int // the entry
	buf  []byte
}

// seek moves to the first entry with a key not below from, and returns it. The key is nil at the end.
func (c *pageCursor) seek(from []byte) (key, value []byte, err error) {
	c.depth = 0
	if err := c.descend(c.bucket.root, from); err != nil {
		return nil, nil, err
	}
	return c.here()
}

// next moves to the next entry, and returns it. The key is nil at the end, and before a seek.
func (c *pageCursor) next() (key, value []byte, err error) {
	if c.depth == 0 {
		return nil, nil, nil
	}
	c.path[c.depth-1].at++
	return c.here()
}

// here returns the entry at the cursor's position. At the end of a leaf page it goes on to the next leaf. The key is nil at the end of the tree.
func (c *pageCursor) here() (key, value []byte, err error) {
	for {
		leaf := &c.path[c.depth-1]
		if leaf.at < leaf.page.count {
			key, value, _, err = leaf.page.entry(leaf.at)
			return key, value, err
		}
		if more, err := c.nextLeaf(); err != nil || !more {
			c.depth = 0
			return nil, nil, err
		}
	}
}

// nextLeaf moves from the end of a leaf page to the first entry of the next one: up to the nearest page with a further child, and down from there. It
// returns false at the end of the tree.
func (c *pageCursor) nextLeaf() (bool, error) {
	for c.depth--; c.depth > 0; c.depth-- {
		up := &c.path[c.depth-1]
		if up.at++; up.at < up.page.count {
			e, err := up.page.element(up.at)
			if err != nil {
				return false, err
			}
			return true, c.descend(e.child, nil)
		}
	}
	return false, nil
}

// descend goes from the page with this id down to the leaf page where key is or would be, and notes the pages on the way. A nil key is before all
// keys. A damaged tree that is too deep is an error.
func (c *pageCursor) descend(id uint64, key []byte) error {
	for range depthMax {
		s, err := c.read(id)
		if err != nil {
			return err
		}
		if s.at, err = s.page.search(key); err != nil || s.page.leaf {
			return err
		}
		e, err := s.page.element(s.at)
		if err != nil {
			return err
		}
		id = e.child
	}
	return fmt.Errorf("%w: a tree is deeper than %d levels", persist.ErrCorrupt, depthMax)
}

// read reads a page as the next step of the path from the root to a leaf. The id 0 means the page of a small bucket, which lies inside the root page.
func (c *pageCursor) read(id uint64) (s *step, err error) {
	if c.depth == len(c.path) {
		c.path = append(c.path, step{})
	}
	s = &c.path[c.depth]
	if id == 0 {
		s.page, err = parsePage(c.bucket.inline, 0, uint64(max(len(c.bucket.inline), pageHeader)))
	} else {
		s.page, s.buf, err = c.of.page(id, s.buf)
	}
	if err == nil {
		c.depth++
	}
	return s, err
}

// page reads a page with its overflow pages, the pages that follow if its entries are long. buf is memory for it; it is returned, perhaps larger, to
// be used for the next page.
func (p *commitPages) page(id uint64, buf []byte) (page, []byte, error) {
	if id < 2 || id >= p.pages { // the first two are meta pages
		return page{}, buf, damagedPage(id, "does not exist")
	}
	buf, err := p.read(id, p.pageSize, buf)
	if err != nil {
		return page{}, buf, err
	}
	got, err := parsePage(buf, id, p.pageSize)
	switch {
	case err != nil || got.overflow == 0:
		return got, buf, err
	case got.overflow >= p.pages-id:
		return page{}, buf, damagedPage(id, "leaves the file")
	}
	buf, err = p.read(id, got.size, buf)
	got.b = buf
	return got, buf, err
}

// read reads size bytes from the beginning of a page. A page that ends before is damaged. buf is memory for it, and replaced if it is too small.
func (p *commitPages) read(id, size uint64, buf []byte) ([]byte, error) {
	if uint64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if n, err := p.f.ReadAt(buf, int64(id*p.pageSize)); n < len(buf) {
		if err == io.EOF {
			return buf, damagedPage(id, "is cut off")
		}
		return buf, err
	}
	return buf, nil
}

// search returns the place of a key in a page read whole: in a leaf the first entry not before it, in a branch the child with its entries, that is the last
// one whose key is not after it.
func (p *page) search(key []byte) (at int, err error) {
	at = sort.Search(p.count, func(i int) bool {
		e, bad := p.element(i)
		if bad != nil || e.value > uint64(len(p.b)) {
			err = damagedPage(p.id, "is cut off")
			return true
		}
		order := bytes.Compare(p.b[e.key:e.value], key)
		return order > 0 || order == 0 && p.leaf
	})
	if !p.leaf {
		at = max(at-1, 0)
	}
	return at, err
}

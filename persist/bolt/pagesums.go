package bolt

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"slices"
)

// pageSums are the pages of one commit, with their hashes when they were verified.
type pageSums struct {
	seed maphash.Seed
	sums map[uint64]pageSum // by page
}

// pageSum is a hash of a page with all its overflow pages, and its size.
type pageSum struct {
	sum  uint64
	size int
}

// newPageSums returns an empty set of hashes of pages, under a random seed. By it a page that is read again is compared with the one that was verified.
func newPageSums() *pageSums {
	return &pageSums{seed: maphash.MakeSeed(), sums: map[uint64]pageSum{}}
}

// sum returns the hash of a page. Its seed is random, so no file can be made to fit.
func (p *pageSums) sum(b []byte) uint64 { return maphash.Bytes(p.seed, b) }

// add notes the hash and the size of a page that was just read and verified.
func (p *pageSums) add(id uint64, b []byte) { p.sums[id] = pageSum{p.sum(b), len(b)} }

// without removes the pages that the commit of the meta page m also has. The rest are the pages of the newest commit alone. If the other commit is damaged, it
// removes none, and returns an error that matches persist.ErrCorrupt; other errors are those of reading.
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

// part is a part of the file, in whole pages.
type part struct{ at, size int64 }

// parts returns the places in the file of the noted pages and of the meta page m of their commit (it is page 0 or 1, by the parity of the commit's number), in
// the order of the file.
func (p *pageSums) parts(m meta, pageSize int) []part {
	all := []part{{int64(m.txid%2) * int64(pageSize), int64(pageSize)}}
	for _, id := range slices.Sorted(maps.Keys(p.sums)) {
		all = append(all, part{int64(id) * int64(pageSize), int64(p.sums[id].size)})
	}
	return all
}

// read reads at, a part returned by parts, once more. It returns an error if the bytes differ from those verified (by their hash; a meta page, 0 or 1, by its
// content): the kernel may have dropped a page from its memory since, and the disk may have an older one.
func (p *pageSums) read(f io.ReaderAt, at part, m meta) ([]byte, error) {
	b, err := readUpTo(f, at.at, int(at.size))
	if err != nil {
		return nil, err
	}
	id := uint64(at.at) / uint64(m.pageSize)
	if id < 2 {
		if now, valid := parseMeta(b); !valid || now != m {
			return nil, errors.New("the newest meta page reads otherwise than a moment before")
		}
		return b, nil
	}
	if sum := p.sums[id]; len(b) < sum.size || p.sum(b) != sum.sum {
		return nil, fmt.Errorf("page %d reads otherwise than a moment before", id)
	}
	return b, nil
}

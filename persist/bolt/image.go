package bolt

import (
	"encoding/binary"
	"hash/fnv"
	"os"
)

// An empty journal is written as one image of four pages, and not by bbolt in
// several steps: what a crash leaves of it can be told, byte by byte, from
// everything else that a file may hold. Page 0 is the meta page of the first
// commit, page 1 the one before it, with the mark, page 2 is free, and page 3 is
// the root, which holds all buckets, empty, and the state.
const (
	imagePages = 4
	imageRoot  = 3
	firstTxid  = 2
)

// image returns an empty journal with pages of the given size.
func image(pageSize int) []byte {
	b, n := make([]byte, imagePages*pageSize), newNames()
	for i, txid := range [...]uint64{firstTxid, firstTxid - 1} {
		putMeta(b[i*pageSize:], uint64(i), meta{pageSize: uint32(pageSize), root: imageRoot, freelist: pgidNone, pages: imagePages, txid: txid})
	}
	copy(b[pageSize+markAt:], appendMark(nil, firstTxid))
	about := leafPage(0, []entry{{key: n.format, value: []byte(formatVersion)}})
	// In the order of their names, as everything in bbolt is.
	root := leafPage(imageRoot, []entry{
		{n.bodies, inlineBucket(leafPage(0, nil)), flagBucket},
		{n.fates, inlineBucket(leafPage(0, nil)), flagBucket},
		{n.intents, inlineBucket(leafPage(0, nil)), flagBucket},
		{n.about, inlineBucket(about), flagBucket},
		{n.state, state{txid: firstTxid}.append(nil), 0},
	})
	copy(b[imageRoot*pageSize:], root)
	return b
}

// unborn reports whether the file is what a crash leaves of one that was being
// created: as much of the image as has arrived, and zeros.
func unborn(f *os.File, size int64) bool {
	whole := image(os.Getpagesize())
	if size > int64(len(whole)) {
		return false
	}
	b := readPage(f, 0, len(whole))
	complete := len(b) == len(whole)
	for i, c := range b {
		if c != whole[i] {
			complete = false
			if c != 0 {
				return false
			}
		}
	}
	return !complete
}

type entry struct {
	key, value []byte
	flags      uint32
}

// flagBucket marks an entry whose value is a bucket.
const flagBucket = 1

// leafPage is a leaf page of bbolt, as long as its entries need.
func leafPage(id uint64, entries []entry) []byte {
	n := binary.NativeEndian
	b := n.AppendUint64(nil, id)
	b = n.AppendUint16(b, flagLeaf)
	b = n.AppendUint16(b, uint16(len(entries)))
	b = n.AppendUint32(b, 0)
	pos := len(entries) * elementSize // from the entry's own place in the table
	for _, e := range entries {
		b = n.AppendUint32(b, e.flags)
		b = n.AppendUint32(b, uint32(pos))
		b = n.AppendUint32(b, uint32(len(e.key)))
		b = n.AppendUint32(b, uint32(len(e.value)))
		pos += len(e.key) + len(e.value) - elementSize
	}
	for _, e := range entries {
		b = append(append(b, e.key...), e.value...)
	}
	return b
}

// inlineBucket is the value of a bucket that has no page of its own.
func inlineBucket(page []byte) []byte {
	return append(make([]byte, pageHeader), page...)
}

// putMeta writes a meta page.
func putMeta(page []byte, id uint64, m meta) {
	n := binary.NativeEndian
	n.PutUint64(page, id)
	n.PutUint16(page[8:], flagMeta)
	b := page[pageHeader:]
	n.PutUint32(b, metaMagic)
	n.PutUint32(b[4:], metaVersion)
	n.PutUint32(b[8:], m.pageSize)
	n.PutUint64(b[16:], m.root)
	n.PutUint64(b[32:], m.freelist)
	n.PutUint64(b[40:], m.pages)
	n.PutUint64(b[48:], m.txid)
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	n.PutUint64(b[56:], sum.Sum64())
}

package bolt

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/oncehttp/oncehttp/persist"
)

// create makes an empty journal at path. The file gets its name only when all of it is on the disk, so a crash leaves a whole journal or none. A
// crash may also leave a temporary file beside it, or a second name (see removeSecondName). The name is not durable yet (see syncNames). If another
// process creates the file first, its file stays as it is.
func (j *Journal) create(path string) error {
	names := followLinks(path)
	path = names[len(names)-1]
	f, err := os.CreateTemp(directory(path), filepath.Base(path)+".*"+temporary) // mode 0600
	if err != nil {
		return err
	}
	// Whatever happens from here on.
	defer os.Remove(f.Name())
	err = j.writeImage(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := giveName(f.Name(), path); err != nil {
		return err
	}
	// Its name may be gone already, if a rename has moved it.
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeImage writes an empty journal to a new file and syncs it. The id is random. The secret is that of Options.Secret, or random.
func (j *Journal) writeImage(f *os.File) error {
	var id [idSize]byte
	_, _ = rand.Read(id[:]) // never fails
	secret := j.secret
	if secret == ([persist.SecretSize]byte{}) {
		_, _ = rand.Read(secret[:])
	}
	b := image(os.Getpagesize(), id, secret)
	if j.hooks.write != nil { // of tests
		if err := j.hooks.write(b, 0); err != nil {
			return err
		}
	}
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return nil
}

// giveName gives the complete file, so far under a temporary name, its name path. It does nothing if path exists: another process was faster, and its
// file is used.
func giveName(temporary, path string) error {
	err := os.Link(temporary, path)
	switch {
	case err == nil, errors.Is(err, fs.ErrExist):
		return nil
	case !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported):
		return err
	}
	// This file system has no links. If two processes come to this at once, the next Begin of one of them
	// finds its file not at the path any more.
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	return os.Rename(temporary, path)
}

// An empty journal is one image of four pages; bbolt would write it in several steps. Page 0 is the meta
// page of the first commit. Page 1 is the one before it, with the mark. Page 2 is free. Page 3 is the root,
// with the state and all buckets, empty.
const (
	imagePages = 4
	imageRoot  = 3
	firstTxid  = 2
)

// image returns the bytes of an empty journal file, as bbolt would write it: two meta pages and a root page with the journal's buckets. The list of free pages
// is not stored (pgidNone), as in every file of a journal. The first meta page belongs to the newest commit. The second one carries the mark that this commit
// is on the disk.
func image(pageSize int, id [idSize]byte, secret [persist.SecretSize]byte) []byte {
	b, n := make([]byte, imagePages*pageSize), newNames()
	for i, txid := range [...]uint64{firstTxid, firstTxid - 1} {
		putMeta(b[i*pageSize:], uint64(i), meta{pageSize: uint32(pageSize), root: imageRoot, freelist: pgidNone, pages: imagePages, txid: txid})
	}
	copy(b[pageSize+markAt:], appendMark(nil, firstTxid)) // the mark of a commit is in the meta page of the one before
	// Everything in bbolt is in the order of its names.
	about := leafPage(0, []entry{{key: n.format, value: []byte(formatVersion)}, {key: n.id, value: id[:]}, {key: n.secret, value: appendSum(secret[:])}})
	root := leafPage(imageRoot, []entry{
		{n.bodies, inlineBucket(leafPage(0, nil)), flagBucket},
		{n.intents, inlineBucket(leafPage(0, nil)), flagBucket},
		{n.about, inlineBucket(about), flagBucket},
		{n.progress, inlineBucket(leafPage(0, nil)), flagBucket},
		{n.state, state{txid: firstTxid}.append(nil, aboutSum(id, secret, nil)), 0},
	})
	copy(b[imageRoot*pageSize:], root)
	return b
}

// entry is one entry of a leaf page.
type entry struct {
	key, value []byte
	flags      uint32
}

// flagBucket marks an entry with a bucket as its value.
const flagBucket = 1

// leafPage returns the bytes of a leaf page in bbolt's format: a header, a table of the entries, then their keys and values. It is as long as its
// entries need. The entries must be in the order of their keys.
func leafPage(id uint64, entries []entry) []byte {
	n := binary.NativeEndian
	b := n.AppendUint64(nil, id)
	b = n.AppendUint16(b, flagLeaf)
	b = n.AppendUint16(b, uint16(len(entries)))
	b = n.AppendUint32(b, 0)          // no further pages
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

// inlineBucket returns the value of a bucket without a page of its own: a head saying so, then its page.
func inlineBucket(page []byte) []byte {
	return append(make([]byte, pageHeader), page...)
}

// putMeta writes a meta page in bbolt's format, with its checksum, to the beginning of page. A meta page names the root of a commit's data. Fields of bbolt
// that stay zero here are left out. id is the number of the page, 0 or 1.
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

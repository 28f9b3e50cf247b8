package bolt

import (
	"bytes"
	"io"
	"io/fs"
	"slices"

	"go.etcd.io/bbolt"
)

// Reviewed is the version of bbolt whose page reuse was reviewed.
const Reviewed = bboltReviewed

// WithHashMask makes the hashes of the journal's indexes collide.
func WithHashMask(opts Options, mask uint64) Options {
	opts.hashMask = mask
	return opts
}

// WithBboltVersion makes the journal believe that it is built with this version.
func WithBboltVersion(opts Options, version string) Options {
	opts.hooks.bboltVersion = version
	return opts
}

// Reviewing is WithBboltVersion for the reviewed version, unless opts names one.
func Reviewing(opts Options) Options {
	if opts.hooks.bboltVersion == "" {
		opts.hooks.bboltVersion = bboltReviewed
	}
	return opts
}

// WithWrite calls f before the journal itself writes.
func WithWrite(opts Options, f func(b []byte, at int64) error) Options {
	opts.hooks.write = f
	return opts
}

// WithCommit calls f before each commit, which is not written if f returns an error.
func WithCommit(opts Options, f func() error) Options {
	opts.hooks.commit = f
	return opts
}

// WithRead wraps what Open reads through.
func WithRead(opts Options, f func(io.ReaderAt) io.ReaderAt) Options {
	opts.hooks.read = f
	return opts
}

// WithTwoNumbers makes the open file look like another one than the file at its path, as on some overlays.
func WithTwoNumbers(opts Options) Options {
	opts.hooks.sameFile = func(_, _ fs.FileInfo) bool { return false }
	return opts
}

// AtPlace reports whether the file at the path has the newest commit of the open one.
func (j *Journal) AtPlace() bool {
	same, _ := j.place.sameCommit()
	return same
}

// WithLogger lets bbolt tell logger how it opens the file.
func WithLogger(opts Options, logger bbolt.Logger) Options {
	opts.hooks.logger = logger
	return opts
}

// NewPages are the pages that the newest commit in a file has and the one before
// it has not: what the commit has written, meta page included. It is nil for a file
// that cannot be read.
func NewPages(file []byte) []uint64 {
	f, size := bytes.NewReader(file), int64(len(file))
	ms, err := readMetas(f, size)
	if err != nil {
		return nil
	}
	pages := newPageSums()
	s, err := newScanner(f, size, ms.newest)
	if err != nil {
		return nil
	}
	s.read = pages.add
	r, err := s.root()
	if err != nil {
		return nil
	}
	for _, b := range r.trees() {
		if s.bucket(b.bucket, b.keySize, nil) != nil {
			return nil
		}
	}
	if ms.both {
		_ = pages.without(f, size, ms.older)
	}
	all := []uint64{ms.newest.txid % 2}
	for id, p := range pages.sums {
		for i := range uint64(p.size) / uint64(ms.newest.pageSize) {
			all = append(all, id+i)
		}
	}
	slices.Sort(all)
	return all
}

// NewestMeta is the page of the newest meta in a file, or -1.
func NewestMeta(file []byte) int {
	ms, err := readMetas(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return -1
	}
	return int(ms.newest.txid % 2)
}

// NoSync reports whether bbolt leaves the syncs to the journal.
func (j *Journal) NoSync() bool { return j.db.NoSync }

// UsedBytes is how many bytes of a file its pages have, or -1.
func UsedBytes(file []byte) int {
	ms, err := readMetas(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return -1
	}
	return int(ms.newest.pages) * int(ms.newest.pageSize)
}

// Marked reports whether a mark says that the newest commit in a file is whole.
func Marked(file []byte) bool {
	ms, err := readMetas(bytes.NewReader(file), int64(len(file)))
	return err == nil && ms.marked
}

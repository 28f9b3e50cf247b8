package bolt

import (
	"bytes"
	"errors"
	"io"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
)

// A file can be overwritten while it is open: a backup is copied over it, and its inode stays. bbolt would
// then add its next pages to trees of an older commit, and no Open would accept the result. So each commit
// first compares the newest commit in the file with the last one of this process.

// proof identifies a commit: the number of its transaction, and its state entry.
type proof struct {
	txid  uint64
	state [stateSize]byte
}

// proofOf returns the proof of a commit, by which the journal recognises its own last commit in the file. It is made of the commit's state and of the
// file's data about itself (aboutSum).
func proofOf(s *state, about uint64) proof {
	p := proof{txid: s.txid}
	s.append(p.state[:0], about)
	return p
}

// isIn reports whether the commit that p identifies, the last one of this process, is still the newest in the file as tx sees it.
// Otherwise another program has written to the file, such as a backup copied over it. state is the name of the entry that each
// commit writes.
func (p *proof) isIn(tx *bbolt.Tx, state []byte) bool {
	return bytes.Equal(tx.Cursor().Bucket().Get(state), p.state[:])
}

// hasMeta reports whether the file has the meta page of this commit, the page that makes a commit valid. If it lacks that of the last commit, another
// program has written over the file. Its error is one of the disk. The committer calls it, or a holder of mu while no commit is under way.
func (j *Journal) hasMeta(txid uint64) (bool, error) {
	n, err := j.file.ReadAt(j.metaPage[:], int64(txid%2)*int64(j.pageSize))
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	m, valid := parseMeta(j.metaPage[:n])
	return valid && m.txid == txid, nil
}

// overwritten is the error of a journal if its file was overwritten while it was open.
type overwritten struct{ path string }

// Error says that another program has written to the journal's file, and how to proceed.
func (e overwritten) Error() string {
	return "persist/bolt: " + e.path + ": the file was overwritten while it was open, and nothing more is recorded: " +
		"stop this program, put the right file in place, and go on as after a restored backup"
}

// Is reports whether target is persist.ErrGone, or persist.ErrUncertain. Another program has overwritten the journal's file: its last changes may be
// lost, and the journal refuses all further work.
func (overwritten) Is(target error) bool {
	return target == persist.ErrGone || target == persist.ErrUncertain
}

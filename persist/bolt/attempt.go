package bolt

import (
	"encoding/binary"
	"math/rand/v2"
)

// A commit that failed may have left pages on the disk, and the next one has the
// same transaction number and mostly the same pages. If the power fails during
// that, its meta page may arrive while its other pages do not, and then the meta
// page leads to the tree of the commit that failed: whole, and with a digest that
// fits. Its callers were told that it is uncertain or not written, and may have
// found since that it is not there. It must not come back.
//
// So a commit that may be another attempt at its number, which is the first after
// Open and each after a failure, has a number of its own: a random one, in its
// state entry, and before that in the page of the newest meta, synced. A tree with
// another number is that of another attempt. All other commits have the number 0.
// The commit after it writes that page anew, which removes the number from it: the
// tree that is found then is that of the attempt that succeeded.
const (
	attemptAt    = markAt + 64 // in the page of the meta of the commit before
	attemptSize  = 24
	attemptMagic = 0x617474656d707421
)

func appendAttempt(b []byte, txid, attempt uint64) []byte {
	b = binary.BigEndian.AppendUint64(b, attemptMagic)
	b = binary.BigEndian.AppendUint64(b, attempt)
	return binary.BigEndian.AppendUint64(b, mix(attempt^mix(attemptMagic^mix(txid))))
}

// parseAttempt reads from the page of a meta which attempt at the transaction txid,
// which is the next one, is under way. It returns 0 if there is none.
func parseAttempt(page []byte, txid uint64) uint64 {
	if len(page) < attemptAt+attemptSize {
		return 0
	}
	b := page[attemptAt : attemptAt+attemptSize]
	attempt := binary.BigEndian.Uint64(b[8:])
	if binary.BigEndian.Uint64(b) != attemptMagic || binary.BigEndian.Uint64(b[16:]) != mix(attempt^mix(attemptMagic^mix(txid))) {
		return 0
	}
	return attempt
}

// beginAttempt returns the number of this attempt at a commit. Where it may not be
// the first, the number is on the disk before beginAttempt returns. If its sync
// fails, the journal refuses all further work, as after any sync that fails, although
// nothing of this commit is in the file.
// Errors: those of write.
func (j *Journal) beginAttempt(txid uint64) (uint64, error) {
	if j.firstAttempt {
		return 0, nil
	}
	attempt := rand.Uint64() | 1 // never 0
	if err := j.writeAt(appendAttempt(j.scratch[:0], txid, attempt), int64(txid-1)%2*int64(j.pageSize)+attemptAt); err != nil {
		return 0, j.unwritten(err)
	}
	j.step(stepCommitNumbered)
	if err := j.sync(); err != nil {
		return 0, j.uncertain(err)
	}
	j.step(stepCommitNumberSynced)
	return attempt, nil
}

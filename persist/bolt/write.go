package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime/debug"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
)

// One commit is one bbolt transaction and one sync.
//
// bbolt itself syncs twice, once before it writes the meta page, so that a meta
// page never names pages that a crash has kept from the disk. Here bbolt does
// not sync at all, and the meta page may well arrive first. What makes that
// safe is the state entry: it holds a digest over every entry of the file and
// the number of its transaction. A file whose newest meta page names a tree with
// another digest was cut off in its last commit, which nobody was told of, and
// the meta page before it is still good: bbolt never writes over pages that the
// last commit but one has left in use. Open finds this out, see scan.go.
//
// After the sync and before anybody is told, a mark is written behind the meta
// page, which says that this commit is whole. It tells damage to a file, which
// must be refused, from a commit that was cut off, which must be forgotten.
const (
	formatVersion = "1"
	// fillPercent is how full bbolt packs pages. Entries come in order, so that
	// pages are filled once and stay full.
	fillPercent = 0.9
)

// The buckets, and the keys in the one about the file.
var (
	bucketAbout   = []byte("oncehttp")
	bucketIntents = []byte("intents")
	bucketFates   = []byte("fates")
	bucketBodies  = []byte("bodies")
	keyFormat     = []byte("format")
	keyState      = []byte("state")
)

// state is the entry that is rewritten by every commit.
type state struct {
	txid    uint64
	digest  uint64
	lastSeq uint64
}

const stateSize = 32

func (s state) encode() []byte {
	b := make([]byte, 0, stateSize)
	b = binary.BigEndian.AppendUint64(b, s.txid)
	b = binary.BigEndian.AppendUint64(b, s.digest)
	b = binary.BigEndian.AppendUint64(b, s.lastSeq)
	return binary.BigEndian.AppendUint64(b, mix(s.txid^mix(s.digest^mix(s.lastSeq))))
}

func decodeState(b []byte) (state, bool) {
	if len(b) != stateSize {
		return state{}, false
	}
	s := state{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])}
	return s, bytes.Equal(s.encode(), b)
}

// write commits a batch. Its error is persist.ErrUncertain if the batch may or
// may not be durable; with any other it is definitely not.
func (j *Journal) write(b *batch) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = j.uncertain(fmt.Errorf("%w: %v", persist.ErrCorrupt, p))
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	tx, err := j.db.Begin(true)
	if err != nil {
		return j.unwritten(err)
	}
	txid := uint64(tx.ID())
	if err := j.apply(tx, b); err != nil {
		_ = tx.Rollback()
		return j.unwritten(err)
	}
	written := tx.Stats()
	if err := tx.Commit(); err != nil {
		if j.reached(txid) {
			return j.uncertain(err)
		}
		return j.unwritten(err)
	}
	if err := j.sync(); err != nil {
		return j.uncertain(err)
	}
	j.mark(txid)
	j.count(written)
	return nil
}

func (j *Journal) apply(tx *bbolt.Tx, b *batch) error {
	intents, fates, bodies := tx.Bucket(bucketIntents), tx.Bucket(bucketFates), tx.Bucket(bucketBodies)
	intents.FillPercent, fates.FillPercent, bodies.FillPercent = fillPercent, fillPercent, fillPercent
	for i := range b.changes {
		c := &b.changes[i]
		if err := applyEntries(intents, fates, c); err != nil {
			return err
		}
		if err := applyBodies(bodies, c); err != nil {
			return err
		}
	}
	s := state{txid: uint64(tx.ID()), digest: b.digest, lastSeq: b.lastSeq}
	return tx.Bucket(bucketAbout).Put(keyState, s.encode())
}

func applyEntries(intents, fates *bbolt.Bucket, c *change) error {
	key := seqKey(c.seq)
	if c.drop {
		if err := intents.Delete(key[:]); err != nil {
			return err
		}
		if !c.before.is(slotFated) {
			return nil
		}
		return fates.Delete(key[:])
	}
	if c.intent != nil {
		if err := intents.Put(key[:], c.intent); err != nil {
			return err
		}
	}
	switch {
	case c.fate != nil:
		return fates.Put(key[:], c.fate)
	case c.plain:
		return fates.Delete(key[:])
	}
	return nil
}

func applyBodies(bodies *bbolt.Bucket, c *change) error {
	if c.before.is(slotOutside) {
		from := partAnswer // a new fate has an answer of its own, or none
		if c.loose || c.drop {
			from = partRequest
		}
		if err := deletePieces(bodies, c.seq, from); err != nil {
			return err
		}
	}
	if err := putPieces(bodies, c.seq, partRequest, c.request); err != nil {
		return err
	}
	return putPieces(bodies, c.seq, partAnswer, c.answer)
}

// putPieces writes a body that is kept outside. bbolt copies the pieces into
// its pages; nothing else does.
func putPieces(bodies *bbolt.Bucket, seq uint64, part int, body []byte) error {
	for n := 0; len(body) > 0; n++ {
		piece := body[:min(len(body), pieceMax)]
		if err := bodies.Put(pieceKey(seq, part, n), piece); err != nil {
			return err
		}
		body = body[len(piece):]
	}
	return nil
}

func deletePieces(bodies *bbolt.Bucket, seq uint64, from int) error {
	prefix := seqKey(seq)
	var keys [][]byte
	c := bodies.Cursor()
	for k, _ := c.Seek(pieceKey(seq, from, 0)); bytes.HasPrefix(k, prefix[:]); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	for _, k := range keys {
		if err := bodies.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) unwritten(cause error) error {
	return fmt.Errorf("persist/bolt: %s: not written: %w", j.path, cause)
}

func (j *Journal) count(s bbolt.TxStats) {
	j.mu.Lock()
	j.stats.Syncs++
	j.stats.Bytes += s.GetPageAlloc() + int64(os.Getpagesize())
	j.mu.Unlock()
}

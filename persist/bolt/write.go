package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
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
// After the sync and before anybody is told, a mark is written into the file,
// which says that this commit is whole, see meta.go. It tells damage to a file, which
// must be refused, from a commit that was cut off, which must be forgotten.
const (
	formatVersion = "1"
	// fillPercent is how full bbolt packs pages. Entries come in order, so that
	// pages are filled once and stay full.
	fillPercent = 0.9
	// growMin and growMax bound by how much the file grows.
	growMin = 64 << 10
	growMax = 64 << 20
)

// names are the names of the buckets, and of the entries beside and in them.
type names struct {
	about, intents, fates, bodies []byte // buckets
	state                         []byte // beside the buckets
	format                        []byte // in about
}

func newNames() names {
	return names{
		about: []byte("oncehttp"), intents: []byte("intents"), fates: []byte("fates"), bodies: []byte("bodies"),
		state: []byte("state"), format: []byte("format"),
	}
}

// state is the entry that is rewritten by every commit.
type state struct {
	txid    uint64
	digest  uint64 // of the records, see slots
	bodies  uint64 // of what is in the bucket of bodies
	records uint64 // how many there are
	lastSeq uint64
}

const stateSize = 48

func (s state) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, s.txid)
	b = binary.BigEndian.AppendUint64(b, s.digest)
	b = binary.BigEndian.AppendUint64(b, s.bodies)
	b = binary.BigEndian.AppendUint64(b, s.records)
	b = binary.BigEndian.AppendUint64(b, s.lastSeq)
	return binary.BigEndian.AppendUint64(b, mix(s.txid^mix(s.digest^mix(s.bodies^mix(s.records^mix(s.lastSeq))))))
}

func decodeState(b []byte) (state, bool) {
	if len(b) != stateSize {
		return state{}, false
	}
	n := binary.BigEndian
	s := state{n.Uint64(b), n.Uint64(b[8:]), n.Uint64(b[16:]), n.Uint64(b[24:]), n.Uint64(b[32:])}
	return s, bytes.Equal(s.append(nil), b)
}

// write commits a batch. Its error is persist.ErrUncertain if the batch may or
// may not be durable; with any other it is definitely not.
func (j *Journal) write(b *batch) (err error) {
	var tx *bbolt.Tx
	defer func() {
		if p := recover(); p != nil {
			err = j.uncertain(fmt.Errorf("%w: %v", persist.ErrCorrupt, p))
			j.stuck = !rolledBack(tx)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if tx, err = j.db.Begin(true); err != nil {
		return j.unwritten(err)
	}
	// Each growth of the file is a sync of its own: let them be few, and the
	// space that is ahead of the need in proportion.
	j.db.AllocSize = min(max(int(tx.Size()/8), growMin), growMax)
	s := b.state
	s.txid, s.bodies = uint64(tx.ID()), j.bodies
	if err := j.apply(tx, b, &s); err != nil {
		_ = tx.Rollback()
		return j.unwritten(err)
	}
	if err := tx.Commit(); err != nil {
		if j.reached(s.txid) {
			return j.uncertain(err)
		}
		return j.unwritten(err)
	}
	began := time.Now()
	if err := j.sync(); err != nil {
		return j.uncertain(err)
	}
	took := time.Since(began)
	j.lastSync, j.syncTime = took, min(j.lastSync, took)
	j.bodies = s.bodies
	j.mark(s.txid)
	j.count(tx.Stats())
	return nil
}

// rolledBack reports whether a transaction that panicked has let go of bbolt's
// locks.
func rolledBack(tx *bbolt.Tx) (ok bool) {
	defer func() { ok = recover() == nil && ok }()
	return tx != nil && tx.Rollback() == nil
}

// apply puts a batch into a transaction, and its state with it. It opens only
// the buckets that it needs, because opening and writing one is a good part of
// what a small commit costs.
func (j *Journal) apply(tx *bbolt.Tx, b *batch, s *state) error {
	t := trees{tx: tx, names: &j.names}
	key := j.scratch[:8] // bbolt copies it
	for i := range b.changes {
		c := &b.changes[i]
		binary.BigEndian.PutUint64(key, c.seq)
		if err := applyEntries(&t, c, key); err != nil {
			return err
		}
		if err := applyBodies(&t, c, s); err != nil {
			return err
		}
	}
	// The bucket of buckets is written with every commit anyway.
	return tx.Cursor().Bucket().Put(j.names.state, s.append(j.scratch[8:8]))
}

// trees are the buckets of one transaction, as far as they are needed.
type trees struct {
	tx                     *bbolt.Tx
	names                  *names
	intents, fates, bodies *bbolt.Bucket
}

func (t *trees) open(b **bbolt.Bucket, name []byte) *bbolt.Bucket {
	if *b == nil {
		*b = t.tx.Bucket(name)
		(*b).FillPercent = fillPercent
	}
	return *b
}

func (t *trees) intent() *bbolt.Bucket { return t.open(&t.intents, t.names.intents) }
func (t *trees) fate() *bbolt.Bucket   { return t.open(&t.fates, t.names.fates) }
func (t *trees) body() *bbolt.Bucket   { return t.open(&t.bodies, t.names.bodies) }

func applyEntries(t *trees, c *change, key []byte) error {
	if c.drop {
		if err := t.intent().Delete(key); err != nil {
			return err
		}
		if !c.before.is(slotFated) {
			return nil
		}
		return t.fate().Delete(key)
	}
	if c.intent != nil {
		if err := t.intent().Put(key, c.intent); err != nil {
			return err
		}
	}
	switch {
	case c.fate != nil:
		return t.fate().Put(key, c.fate)
	case c.plain:
		return t.fate().Delete(key)
	}
	return nil
}

func applyBodies(t *trees, c *change, s *state) error {
	if c.before.is(slotOutside) {
		from := partAnswer // a new fate has an answer of its own, or none
		if c.loose || c.drop {
			from = partRequest
		}
		if err := deletePieces(t.body(), c.seq, from, s); err != nil {
			return err
		}
	}
	if c.request != nil {
		if err := putPieces(t.body(), c.seq, partRequest, c.request, s); err != nil {
			return err
		}
	}
	if c.answer != nil {
		return putPieces(t.body(), c.seq, partAnswer, c.answer, s)
	}
	return nil
}

// putPieces writes a body that is kept outside. bbolt copies the pieces into
// its pages; nothing else does.
func putPieces(bodies *bbolt.Bucket, seq uint64, part int, body []byte, s *state) error {
	for n := 0; len(body) > 0; n++ {
		key, piece := pieceKey(seq, part, n), body[:min(len(body), pieceMax)]
		if err := bodies.Put(key, piece); err != nil {
			return err
		}
		s.bodies += pieceContribution(key, codec.Checksum(piece))
		body = body[len(piece):]
	}
	return nil
}

// deletePieces removes a record's pieces from a part on.
func deletePieces(bodies *bbolt.Bucket, seq uint64, from int, s *state) error {
	prefix := seqKey(seq)
	var keys [][]byte
	c := bodies.Cursor()
	for k, v := c.Seek(pieceKey(seq, from, 0)); bytes.HasPrefix(k, prefix[:]); k, v = c.Next() {
		keys = append(keys, bytes.Clone(k))
		s.bodies -= pieceContribution(k, codec.Checksum(v))
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

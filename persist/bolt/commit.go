package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// One commit is one bbolt transaction and one sync.
//
// bbolt itself syncs twice, once before it writes the meta page. So a meta page never names pages kept from
// the disk by a crash. Here bbolt does not sync, and the meta page may reach the disk first. The state
// entry makes this safe: it holds a digest over every entry of the file, and the number of its transaction.
// If the newest meta page names a tree with another digest, a crash has cut off this commit, and no caller
// was told of it. Then the meta page before it still counts, because bbolt never writes over pages in use
// by the commit before. Open finds this out, see recover.go.
//
// After the sync, and before any caller is told, a mark in the file declares this commit whole, see
// metapage.go. With the mark, an inconsistency means damage, and the file is refused. Without it, it means
// a commit cut off by a crash, and the commit is forgotten.
//
// All this relies on how one version of bbolt uses its pages again. With any other
// version each commit has bbolt's own two syncs, see bboltversion.go, and with this one
// the first commit after Open and after a failure, see syncs.
const (
	// fillPercent is how full bbolt packs pages. Entries come in order, so pages are filled once and stay
	// full.
	fillPercent = 0.9
	// growMin and growMax bound by how many bytes the file grows at once.
	growMin = 64 << 10
	growMax = 64 << 20
)

// write commits a batch, the queued changes of several callers, by one transaction. If its error is persist.ErrUncertain, the batch may or may not be durable;
// with any other error it is definitely not. Only the committer calls it, without mu.
//
// Each commit writes its state s: its number (txid), and sums over all records and bodies. j.last has that of the commit before: if it is not in the file,
// another program has written there. about is a hash of the file's data about itself; a new fact changes it. j.ownSync says that Options.Sync is to be called
// for a sync, j.steady that the commit has succeeded, j.stuck that bbolt has panicked and may hold its locks.
func (j *Journal) write(b *batch) (err error) {
	var tx *bbolt.Tx
	defer func() {
		if p := recover(); p != nil {
			err = j.uncertain(fmt.Errorf("%w: %v", persist.ErrCorrupt, p))
			j.stuck = !rolledBack(tx)
		}
		j.steady = err == nil
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // an unreadable page of the mapped file is a panic then
	if j.hooks.commit != nil {                               // of tests
		if err := j.hooks.commit(); err != nil {
			return j.unwritten(err)
		}
	}
	if tx, err = j.beginWrite(); err != nil {
		return err
	}
	if !j.last.isIn(tx, j.names.state) {
		_ = tx.Rollback()
		return overwritten{j.path}
	}
	// Each growth of the file is a sync of its own: few of them, and in proportion.
	j.db.AllocSize = min(max(int(tx.Size()/8), growMin), growMax)
	s := b.state
	s.txid, s.bodies = uint64(tx.ID()), j.bodies
	about := j.about
	if b.fact != nil {
		about = aboutSum(j.place.id, j.secret, j.facts.with(b.fact))
	}
	if err := j.apply(tx, b, &s, about); err != nil {
		_ = tx.Rollback()
		return j.unwritten(err)
	}
	began, syncs := time.Now(), j.syncs()
	j.db.NoSync = syncs == 1
	if err := j.commit(tx, s.txid); err != nil {
		return err
	}
	if syncs == 1 || j.ownSync { // with two, bbolt has synced itself
		began = time.Now()
		if err := j.sync(); err != nil {
			return j.uncertain(err)
		}
	}
	j.syncTook(time.Since(began))
	// Whoever writes over the file during a commit writes over the meta page of the commit before, too.
	if there, err := j.hasMeta(s.txid - 1); err == nil && !there {
		return overwritten{j.path}
	}
	j.bodies, j.about = s.bodies, about
	_ = j.mark(s.txid)           // a lost mark costs the next Open some time
	if syncs == 2 && j.ownSync { // bbolt's two, and ours
		syncs++
	}
	j.count(tx.Stats(), syncs, proofOf(&s, about))
	return nil
}

// beginWrite begins bbolt's transaction for a commit. Before this it checks that the newest commit in the file is the last one of this journal. If
// not, somebody else has written to the file, and the error is of type overwritten. Every other error means that nothing was written.
func (j *Journal) beginWrite() (*bbolt.Tx, error) {
	switch there, err := j.hasMeta(j.last.txid); {
	case err != nil:
		return nil, j.unwritten(err)
	case !there:
		return nil, overwritten{j.path}
	}
	tx, err := j.db.Begin(true)
	if err != nil {
		return nil, j.unwritten(err)
	}
	return tx, nil
}

// syncs returns the number of syncs of the next commit. One is the journal's own. Two are bbolt's, in a program with a version of bbolt that was not reviewed
// for this package (twoSyncs): a mistake about how bbolt uses its pages again costs nothing then. The first commit after Open and after each failed one has
// two, too. An earlier attempt at the same transaction may have left its pages. The new meta page would lead to those if it reached the disk before the new
// pages.
func (j *Journal) syncs() int {
	if j.twoSyncs || !j.steady {
		return 2
	}
	return 1
}

// commit lets bbolt write a transaction, and says how a failure counts. If the new meta page, which makes a commit valid, cannot have been written, the commit
// did not happen, and later commits may be tried (unwritten). If it may have been, or if a sync failed, nobody knows the content of the disk (uncertain): so
// it is, too, if the size of the file has changed before bbolt failed otherwise than by a write. txid is the number of the transaction.
func (j *Journal) commit(tx *bbolt.Tx, txid uint64) error {
	before, sizeErr := j.size()
	err := tx.Commit()
	if err == nil {
		return nil
	}
	if now, nowErr := j.size(); sizeErr == nil && nowErr == nil && now == before || failedToWrite(err) {
		// Pages written, but not named by a meta page, are free pages. reached: the meta page may be in the file.
		if j.reached(txid) || failedToSync(err) {
			return j.uncertain(err)
		}
		return j.unwritten(err)
	}
	// It is unknown if the disk has the new size, and the kernel may take it for clean: the next commit
	// growing the file has to sync it.
	if sizeErr == nil {
		_ = j.file.Truncate(before) // an error changes nothing: the journal is broken either way
	}
	return j.uncertain(err)
}

// size returns the file's size. Seek, unlike Stat, makes no garbage, and nobody reads or writes at the
// offset moved by it.
func (j *Journal) size() (int64, error) { return j.file.Seek(0, io.SeekEnd) }

// failedToSync reports whether an error of bbolt comes from a sync. bbolt returns the error of fdatasync as
// it is; the sync of a larger size has an error without a type.
func failedToSync(err error) bool {
	var path *fs.PathError
	var number syscall.Errno
	return errors.As(err, &path) && path.Op == "sync" || !errors.As(err, &path) && errors.As(err, &number)
}

// failedToWrite reports whether an error of bbolt comes from a write.
func failedToWrite(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && path.Op != "sync"
}

// syncTook notes how long the last sync took: a commit waits for further callers for a part of this time. The shorter of the last two counts, so a single
// slow one does not.
func (j *Journal) syncTook(d time.Duration) {
	j.lastSync, j.syncTime = d, min(j.lastSync, d)
}

// rolledBack rolls a transaction back after a panic of bbolt, and reports whether bbolt has released its locks by that. It is false if there is no
// transaction (nil), and if the rollback fails or panics, too.
func rolledBack(tx *bbolt.Tx) (ok bool) {
	defer func() { ok = recover() == nil && ok }()
	return tx != nil && tx.Rollback() == nil
}

// apply puts the changes of a batch into a transaction, with the entry of the commit's state s, by which damage is found later. about is a hash of the file's
// data about itself; the checksum of the state covers it. apply opens only the buckets that the batch needs: to open and write one is a good part of the cost
// of a small commit.
func (j *Journal) apply(tx *bbolt.Tx, b *batch, s *state, about uint64) error {
	t := trees{tx: tx, names: &j.names}
	key := j.scratch[:8] // bbolt copies it
	// A batch holds one change per record, so their order does not matter.
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
	if b.fact != nil {
		if err := b.fact.put(tx, j.names.about); err != nil {
			return err
		}
	}
	// The bucket of buckets is written with every commit anyway.
	return tx.Cursor().Bucket().Put(j.names.state, s.append(j.scratch[8:8], about))
}

// trees are the buckets of one transaction, as far as they are needed.
type trees struct {
	tx                              *bbolt.Tx
	names                           *names
	inIntents, inProgress, inBodies *bbolt.Bucket
}

// open returns the bucket of this name. It opens the bucket when it is first needed in a transaction, and keeps it in *b. bbolt is to fill its pages
// (fillPercent), as entries come in order.
func (t *trees) open(b **bbolt.Bucket, name []byte) *bbolt.Bucket {
	if *b == nil {
		*b = t.tx.Bucket(name)
		(*b).FillPercent = fillPercent
	}
	return *b
}

// intents returns the bucket with the records as they were begun (intents), opened once in a transaction.
func (t *trees) intents() *bbolt.Bucket { return t.open(&t.inIntents, t.names.intents) }

// progress returns the bucket with the changed parts of records (progress), opened once in a transaction.
func (t *trees) progress() *bbolt.Bucket { return t.open(&t.inProgress, t.names.progress) }

// bodies returns the bucket with the large bodies of requests and answers, opened once in a transaction.
func (t *trees) bodies() *bbolt.Bucket { return t.open(&t.inBodies, t.names.bodies) }

// applyEntries writes the two entries of a changed record, or deletes them: the one in the bucket of intents (the record as it was begun) and the one in the
// bucket of progress (its changeable part; slotChanged: there is one). key is the record's number (Seq) as bytes. Large bodies are stored apart, by
// applyBodies.
func applyEntries(t *trees, c *change, key []byte) error {
	if c.drop {
		if err := t.intents().Delete(key); err != nil {
			return err
		}
		if !c.before.is(slotChanged) {
			return nil
		}
		return t.progress().Delete(key)
	}
	if isUsed(c.intent) { // the short entry of an erased record
		// bbolt joins a page with its neighbour only after a Delete, not where a value becomes shorter.
		if err := t.intents().Delete(key); err != nil {
			return err
		}
	}
	if c.intent != nil {
		if err := t.intents().Put(key, c.intent); err != nil {
			return err
		}
	}
	switch {
	case c.progress != nil:
		return t.progress().Put(key, c.progress)
	case c.dropProgress:
		return t.progress().Delete(key)
	}
	return nil
}

// applyBodies writes the large bodies of a change into their bucket in pieces, and deletes those that the change replaces. A new progress (the changeable
// part) brings its own answer, or none: the pieces of the earlier answer go. It brings s.bodies up to date, a sum over all pieces to find damage.
func applyBodies(t *trees, c *change, s *state) error {
	// What memory had of the record before this commit describes the content of the file: it has bodies there.
	if c.before.is(slotOutside) {
		from := partAnswer // a new progress has an answer of its own, or none
		if c.dropBodies || c.drop {
			from = partRequest
		}
		if err := deletePieces(t.bodies(), c.seq, from, s); err != nil {
			return err
		}
	}
	if c.request != nil {
		if err := putPieces(t.bodies(), c.seq, partRequest, c.request, s); err != nil {
			return err
		}
	}
	if c.answer != nil {
		return putPieces(t.bodies(), c.seq, partAnswer, c.answer, s)
	}
	return nil
}

// putPieces writes a body that is too long for its record's entry into the bucket of bodies, cut into pieces. It adds the checksum of each piece to
// the digest of all bodies in s. part says if it is the body of the request or of the answer. bbolt copies the pieces into its pages; nothing else
// copies them.
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

// deletePieces deletes the stored pieces of a record's bodies: those of the part from, and of the parts after it. It takes them out of s.bodies, a sum over
// all pieces to find damage. It collects the keys first, since bbolt's cursor does not survive a Delete.
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

// count adds a successful commit to the journal's statistics, and keeps its proof: its number and state, by which the journal later recognises its own last
// commit in the file.
func (j *Journal) count(s bbolt.TxStats, syncs int, p proof) {
	j.mu.Lock()
	j.last = p
	j.stats.Syncs += int64(syncs)
	j.stats.Bytes += s.GetPageAlloc() + int64(os.Getpagesize()) // and the meta page
	j.mu.Unlock()
}

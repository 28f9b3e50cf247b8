package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// errAgain tells the caller to look the record up anew.
var errAgain = errors.New("persist/bolt: look again")

// Get implements [persist.Journal]: it returns the record of an ID, or persist.ErrNotFound. Changes that are queued and not yet in the file count.
func (j *Journal) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	if err := j.start(ctx); err != nil {
		return persist.Record{}, err
	}
	return j.lookup(id)
}

// lookup reads the record of an ID, as it is now: with its queued changes, and after a Forget under way. Memory knows only a hash of the ID: a record found by
// it may have another ID, and then the next one is looked at.
// Errors: persist.ErrNotFound, persist.ErrCorrupt, and those of usable.
func (j *Journal) lookup(id persist.ID) (persist.Record, error) {
	hash := j.hash.id(id.Account, id.Key)
	var others []uint64
	for {
		j.mu.Lock()
		if err := j.usable(); err != nil {
			j.mu.Unlock()
			return persist.Record{}, err
		}
		seq := j.findID(id, hash, others)
		if seq == 0 {
			j.mu.Unlock()
			return persist.Record{}, notFound(id)
		}
		rec, err := j.read(seq)
		if errors.Is(err, errAgain) {
			continue
		}
		if err != nil || j.isOf(&rec, id) {
			return rec, err
		}
		others = append(others, seq)
	}
}

// read returns the record of a Seq present in memory. The caller holds mu; read gives it up. After errAgain nothing was read: read has waited for a commit,
// the record may be gone by now, and the caller looks for it again.
//
// The transaction begins under mu, together with a look at the record's queued changes (o), so the two fit: a record is read as it was at this moment.
func (j *Journal) read(seq uint64) (persist.Record, error) {
	o := j.overlay(seq)
	if b := j.unreadable(seq, &o); b != nil {
		_ = j.unlockAndAwait(b)
		return persist.Record{}, errAgain
	}
	v, err := j.view()
	j.mu.Unlock()
	if err != nil {
		return persist.Record{}, err
	}
	defer v.end()
	rec, _, err := v.readMatch(seq, &o, nil)
	return rec, j.wrap(err)
}

// unsettled returns the batch (the changes of one commit) with a change of this record, if a caller waits for that change; nil if there is none. Such a
// change may still fail, and then it is undone: so others wait for the commit before they rely on it. The caller holds mu.
func (j *Journal) unsettled(seq uint64) *batch {
	for _, b := range [...]*batch{j.collecting, j.committing} {
		if b == nil {
			continue
		}
		if c := b.get(seq); c != nil && !c.lazy {
			return b
		}
	}
	return nil
}

// unreadable returns the batch (the changes of one commit) to wait for before a record can be read; nil if it can be read now. o has the record's queued
// changes. It has to wait in two cases. Until the commit is over, the body of its request is the caller's own; or Forget is removing it, with a result not
// known yet. The caller holds mu.
func (j *Journal) unreadable(seq uint64, o *overlay) *batch {
	if b := j.unsettled(seq); b != nil && (o.request || b.get(seq).drop) {
		return b
	}
	return nil
}

// view is a read transaction. It reads neighbouring records quickly.
type view struct {
	tx                *bbolt.Tx // nil in a journal opened for reading: nothing changes meanwhile
	intents, progress sequentialReader
	bodies            func() cursor // few records need it
	size              int64         // no body is longer
}

// view begins a read transaction, with readers of the buckets of intents (records as they were begun), progress (their changed parts) and bodies. It sees the
// file as the last commit has left it, synced or not; changes that are queued or being written must be laid over it (overlay). A journal open for reading only
// has no bbolt, and reads its own pages. If another program has overwritten the file, the journal is broken from then on. The caller holds mu, and must call
// end.
func (j *Journal) view() (v *view, err error) {
	if j.readOnly {
		return j.pages.view(), nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = j.wrap(fmt.Errorf("%w: %v", persist.ErrCorrupt, p))
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // an unreadable page of the mapped file is a panic then
	tx, err := j.beginRead()
	if err != nil {
		return nil, err
	}
	defer func() {
		if v == nil {
			_ = tx.Rollback()
		}
	}()
	// A commit under way may have written its meta page.
	if id := uint64(tx.ID()); id != j.last.txid && id != j.last.txid+1 {
		j.broken = overwritten{j.path}
		return nil, j.broken
	}
	return &view{
		tx:       tx,
		intents:  sequentialReader{c: boltCursor{tx.Bucket(j.names.intents).Cursor()}},
		progress: sequentialReader{c: boltCursor{tx.Bucket(j.names.progress).Cursor()}},
		bodies:   func() cursor { return boltCursor{tx.Bucket(j.names.bodies).Cursor()} },
		size:     tx.Size(),
	}, nil
}

// beginRead begins bbolt's read transaction. It only reads the meta pages; if bbolt panics because they are gone, its locks stay held (jammed), and the
// journal is broken. The caller holds mu.
func (j *Journal) beginRead() (tx *bbolt.Tx, err error) {
	defer func() {
		if p := recover(); p != nil {
			j.jammed, j.broken = true, overwritten{j.path}
			err = j.broken
		}
	}()
	tx, err = j.db.Begin(false)
	return tx, j.wrap(err)
}

// view returns a view, the means to read records, of the pages of this commit. It is used by a journal that is open for reading only.
func (p *commitPages) view() *view {
	at := func(b bucket) cursor { return &pageCursor{of: p, bucket: b} }
	return &view{
		intents: sequentialReader{c: at(p.root.intents)}, progress: sequentialReader{c: at(p.root.progress)},
		bodies: func() cursor { return at(p.root.bodies) }, size: int64(p.pages * p.pageSize),
	}
}

// end ends the transaction. Data returned by it must not be used any more. A view of a journal that is open for reading only has no transaction.
func (v *view) end() {
	if v.tx != nil {
		_ = v.tx.Rollback()
	}
}

// queued reports whether some change of a record is not in the file yet, or may not be. There are three queues: the commit under way, the next one, and the
// changes that no caller waits for (lazy). A lazy change moves from the last into the commit that takes it. The caller holds mu.
func (j *Journal) queued(seq uint64) bool {
	return j.committing != nil && j.committing.get(seq) != nil || j.collecting.get(seq) != nil || j.lazy.get(seq) != nil
}

// overlay returns the queued changes of a record in one, over which the file's content is read: those of the commit in progress, those of the next
// one, and those without a waiting caller. The caller holds mu.
func (j *Journal) overlay(seq uint64) overlay {
	var o overlay
	if j.committing != nil {
		o.add(j.committing.get(seq))
	}
	o.add(j.collecting.get(seq))
	o.add(j.lazy.get(seq))
	return o
}

// wrap names the file in an error.
func (j *Journal) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("persist/bolt: %s: %w", j.path, err)
}

// readMatch reads one record in a transaction, with its queued changes (o) on top. A record has two encoded parts, the intent (frozen by Begin) and the
// progress (changeable). With a q, it reads only as far as needed to decide if q selects the record; matches is false if not, and true without a q. The record
// is the caller's: nothing of it points into the file.
//
// Errors: persist.ErrCorrupt, also for damage on which bbolt panics, and for an unreadable page.
func (v *view) readMatch(seq uint64, o *overlay, q *persist.Query) (rec persist.Record, matches bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: record %d: %v", persist.ErrCorrupt, seq, p)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // an unreadable page of the mapped file is a panic then
	entry, err := v.entry(seq, o)
	if err != nil {
		return persist.Record{}, false, err
	}
	if isUsed(entry) {
		return readUsed(entry, seq, q)
	}
	intent, progress, err := v.entries(entry, seq, o)
	if err != nil {
		return persist.Record{}, false, err
	}
	if q != nil {
		if matches, err = match(intent, progress, seq, q); err != nil || !matches {
			return persist.Record{}, false, err
		}
	}
	rec.Seq = seq
	request, err := codec.DecodeIntent(intent, &rec)
	if err != nil {
		return persist.Record{}, false, err
	}
	answer, err := codec.DecodeProgress(progress, &rec)
	if err != nil {
		return persist.Record{}, false, err
	}
	if q != nil && q.Needs != "" && rec.Needs().String() != q.Needs {
		return persist.Record{}, false, nil
	}
	if err := v.readBodies(&rec, request, answer, o); err != nil {
		return persist.Record{}, false, err
	}
	if err := rec.Validate(); err != nil {
		return persist.Record{}, false, fmt.Errorf("%w: record %d: %w", persist.ErrCorrupt, seq, err)
	}
	return rec, true, nil
}

// readUsed reads the record of a used key, what is left of an erased record, from its entry. matches is false if q, a query, does not select it; with a nil
// q it is true.
// Errors: persist.ErrCorrupt.
func readUsed(entry []byte, seq uint64, q *persist.Query) (rec persist.Record, matches bool, err error) {
	if _, err = openUsed(entry, seq, &rec); err == nil {
		err = rec.Validate()
	}
	switch {
	case err != nil:
		return persist.Record{}, false, fmt.Errorf("%w: record %d: %w", persist.ErrCorrupt, seq, err)
	case q != nil && !q.Match(&rec):
		return persist.Record{}, false, nil
	}
	return rec, true, nil
}

// entry returns the entry of a record in the bucket of intents (records as they were begun), from its queued changes (o) or else from the file. It points
// there, and is valid until the transaction ends.
func (v *view) entry(seq uint64, o *overlay) ([]byte, error) {
	// A queued entry is newer than that of the file.
	if o.intent != nil {
		return o.intent, nil
	}
	return v.intents.get(seq)
}

// entries returns the two encoded parts of a record, intent (frozen by Begin) and progress (changeable), from its entry, its queued changes (o) and the file.
// The entry has a progress of its own, for a record that has not changed since. They point there, and are valid until the transaction ends.
// Errors: persist.ErrCorrupt.
func (v *view) entries(entry []byte, seq uint64, o *overlay) (intent, progress []byte, err error) {
	intent, progress, _, err = openIntent(entry, seq)
	if err != nil {
		return nil, nil, err
	}
	later := o.progress
	if later == nil && !o.dropProgress {
		if later, err = v.progress.get(seq); err != nil {
			return nil, nil, err
		}
	}
	if later != nil {
		progress, _, err = open(later, kindProgress, seq)
	}
	return intent, progress, err
}

// match reports whether q selects a record, by the few fields of its encoded parts (intent, frozen by Begin, and progress, changeable) that a query needs:
// most records of a listing are decided without decoding them whole. The Needs of q (requirements on a client) are left to the caller. The account and the key
// are copied only if q asks for them.
func match(intent, progress []byte, seq uint64, q *persist.Query) (bool, error) {
	i, err := codec.PeekIntent(intent)
	if err != nil {
		return false, err
	}
	f, err := codec.PeekProgress(progress)
	if err != nil {
		return false, err
	}
	// Only the fields used by Match. A field that q does not ask for stays empty, and matches.
	head := persist.Record{Seq: seq, State: f.State, Unreported: f.Unreported, NextAttempt: f.NextAttempt, OwedFrom: f.OwedFrom, Generated: i.Generated, Fingerprint: i.Fingerprint}
	if !q.AllAccounts {
		head.Account = string(i.Account)
	}
	if q.Key != "" {
		head.Key = string(i.Key)
	}
	if q.Origin != "" {
		head.Origin = string(i.Origin)
	}
	rest := *q
	rest.Needs = ""
	return rest.Match(&head), nil
}

// readBodies reads the bodies stored in pieces, outside of the record's entries, into rec. request and answer have their lengths (zero: none) and checksums.
// An answer that is queued and not yet in the file is taken from o. A queued body of a request is not read here: unreadable makes readers wait for its commit.
func (v *view) readBodies(rec *persist.Record, request, answer codec.Outside, o *overlay) (err error) {
	if request.Len > 0 {
		if rec.Body, err = v.readBody(rec.Seq, partRequest, request); err != nil {
			return err
		}
	}
	switch {
	case answer.Len == 0:
	// It is queued with its progress. The bytes are the journal's, so they are copied.
	case o.answer != nil:
		rec.Answer.Body = bytes.Clone(o.answer)
	default:
		rec.Answer.Body, err = v.readBody(rec.Seq, partAnswer, answer)
	}
	return err
}

// readBody joins the stored pieces of a body: part says if it is that of the request or of the answer, and want has its length and checksum. The number of
// pieces is known from the length, so a damaged length cannot ask for more memory than the file's size.
func (v *view) readBody(seq uint64, part int, want codec.Outside) ([]byte, error) {
	if int64(want.Len) > v.size {
		return nil, fmt.Errorf("%w: record %d: length of a body", persist.ErrCorrupt, seq)
	}
	body := make([]byte, 0, want.Len)
	c := v.bodies()
	n := 0
	k, piece, err := c.seek(pieceKey(seq, part, 0))
	for ; len(body) < want.Len; k, piece, err = c.next() {
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(k, pieceKey(seq, part, n)) || len(piece) == 0 || len(piece) > want.Len-len(body) {
			return nil, fmt.Errorf("%w: record %d lacks a part of a body", persist.ErrCorrupt, seq)
		}
		body = append(body, piece...)
		n++
	}
	if codec.Checksum(body) != want.Sum {
		return nil, fmt.Errorf("%w: record %d: checksum of a body", persist.ErrCorrupt, seq)
	}
	return body, nil
}

package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// errAgain says that the record has to be looked up anew.
var errAgain = errors.New("persist/bolt: look again")

// read returns the record with a Seq that is in memory. The caller holds mu,
// which read gives up. After errAgain the record may be gone.
//
// The transaction begins under mu, together with a look at what is queued, so
// that the two fit: a record is read as it was at that moment.
func (j *Journal) read(seq uint64) (persist.Record, error) {
	o := j.overlay(seq)
	if b := j.unsettled(seq); b != nil && o.request {
		// The request's body is the caller's own until the commit is over.
		_ = j.await(b)
		return persist.Record{}, errAgain
	}
	tx, err := j.db.Begin(false)
	j.mu.Unlock()
	if err != nil {
		return persist.Record{}, j.wrap(err)
	}
	rec, _, err := readMatch(tx, seq, &o, nil)
	_ = tx.Rollback()
	return rec, j.wrap(err)
}

// overlay is what is queued of a record. The caller holds mu.
func (j *Journal) overlay(seq uint64) overlay {
	var o overlay
	o.add(j.flying.get(seq))
	o.add(j.collecting.get(seq))
	return o
}

func (j *Journal) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("persist/bolt: %s: %w", j.path, err)
}

// readMatch reads one record from a transaction and what is queued on top, if q
// is nil or selects it. Damage that bbolt answers with a panic, and a page that
// cannot be read at all, are ErrCorrupt.
func readMatch(tx *bbolt.Tx, seq uint64, o *overlay, q *persist.Query) (rec persist.Record, matches bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: record %d: %v", persist.ErrCorrupt, seq, p)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	intent, fate, err := entries(tx, seq, o)
	if err != nil {
		return persist.Record{}, false, err
	}
	if q != nil {
		if matches, err = match(intent, fate, seq, q); err != nil || !matches {
			return persist.Record{}, false, err
		}
	}
	rec.Seq = seq
	request, err := codec.DecodeIntent(intent, &rec)
	if err != nil {
		return persist.Record{}, false, err
	}
	answer, err := codec.DecodeFate(fate, &rec)
	if err != nil {
		return persist.Record{}, false, err
	}
	if err := readBodies(tx, &rec, request, answer, o); err != nil {
		return persist.Record{}, false, err
	}
	if err := rec.Validate(); err != nil {
		return persist.Record{}, false, fmt.Errorf("%w: record %d: %w", persist.ErrCorrupt, seq, err)
	}
	return rec, true, nil
}

// entries returns the two parts of a record. They point into the file.
func entries(tx *bbolt.Tx, seq uint64, o *overlay) (intent, fate []byte, err error) {
	key := seqKey(seq)
	entry := o.intent
	if entry == nil {
		entry = tx.Bucket(bucketIntents()).Get(key[:])
	}
	intent, fate, _, err = openIntent(entry, seq)
	if err != nil {
		return nil, nil, err
	}
	later := o.fate
	if later == nil && !o.plain {
		later = tx.Bucket(bucketFates()).Get(key[:])
	}
	if later != nil {
		fate, _, err = open(later, kindFate, seq)
	}
	return intent, fate, err
}

// match asks q before the record is decoded.
func match(intent, fate []byte, seq uint64, q *persist.Query) (bool, error) {
	i, err := codec.PeekIntent(intent)
	if err != nil {
		return false, err
	}
	f, err := codec.PeekFate(fate)
	if err != nil {
		return false, err
	}
	head := persist.Record{Seq: seq, State: f.State, NextAttempt: f.NextAttempt, Generated: i.Generated, Fingerprint: i.Fingerprint}
	if !q.AllAccounts {
		head.Account = string(i.Account)
	}
	if q.Key != "" {
		head.Key = string(i.Key)
	}
	return q.Match(&head), nil
}

// readBodies fetches what is kept outside the record's entries.
func readBodies(tx *bbolt.Tx, rec *persist.Record, request, answer codec.Outside, o *overlay) (err error) {
	if request.Len > 0 {
		if rec.Body, err = readBody(tx, rec.Seq, partRequest, request); err != nil {
			return err
		}
	}
	switch {
	case answer.Len == 0:
	case o.answer != nil:
		rec.Answer.Body = bytes.Clone(o.answer)
	default:
		rec.Answer.Body, err = readBody(tx, rec.Seq, partAnswer, answer)
	}
	return err
}

// readBody joins the pieces of a body. Their number is known from its length,
// so that a damaged length cannot ask for memory that the file does not hold.
func readBody(tx *bbolt.Tx, seq uint64, part int, want codec.Outside) ([]byte, error) {
	if int64(want.Len) > tx.Size() {
		return nil, fmt.Errorf("%w: record %d: length of a body", persist.ErrCorrupt, seq)
	}
	body := make([]byte, 0, want.Len)
	c := tx.Bucket(bucketBodies()).Cursor()
	n := 0
	for k, v := c.Seek(pieceKey(seq, part, 0)); len(body) < want.Len; k, v = c.Next() {
		if !bytes.Equal(k, pieceKey(seq, part, n)) || len(v) == 0 || len(v) > want.Len-len(body) {
			return nil, fmt.Errorf("%w: record %d lacks a part of a body", persist.ErrCorrupt, seq)
		}
		body = append(body, v...)
		n++
	}
	if codec.Checksum(body) != want.Sum {
		return nil, fmt.Errorf("%w: record %d: checksum of a body", persist.ErrCorrupt, seq)
	}
	return body, nil
}

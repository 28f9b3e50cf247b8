package bolt

import (
	"bytes"
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// Erase implements [persist.Eraser]. The record gets a new entry among the intents, with its progress. Until the commit is durable memory finds it
// by both IDs, as in Assign. Pages that the old entries leave keep their bytes until they are used again, or Copy writes another file.
func (j *Journal) Erase(ctx context.Context, rec persist.Record, fingerprint []byte) (persist.Record, error) {
	if err := j.startWrite(ctx); err != nil {
		return persist.Record{}, err
	}
	if err := rec.ReadyToErase(); err != nil {
		return persist.Record{}, err
	}
	now, err := j.lookup(rec.ID)
	switch {
	case err != nil:
		return persist.Record{}, err
	case now.Revision != rec.Revision:
		return persist.Record{}, stale(&now)
	case now.Erased:
		return persist.Record{}, fmt.Errorf("%w: %q is erased already", persist.ErrInvalid, rec.Key)
	}
	was, next := rec, rec.Clone()
	was.Fingerprint = bytes.Clone(fingerprint)
	if len(was.Fingerprint) != len(rec.Fingerprint) {
		return persist.Record{}, fmt.Errorf("%w: a fingerprint of %d bytes", persist.ErrInvalid, len(fingerprint))
	}
	s, err := j.lockEnded(&was, j.hash.keys(&was))
	if err != nil {
		return persist.Record{}, err
	}
	if s.is(slotUnreported) || s.is(slotOwed) {
		j.mu.Unlock()
		return persist.Record{}, fmt.Errorf("%w: the end of %q is owed to somebody", persist.ErrInvalid, rec.Key)
	}
	next.SendUntil = was.SendUntil
	next.Revision++
	next.ID = persist.ErasedID(j.secret[:], rec.ID)
	c := change{seq: rec.Seq, intent: encodeIntent(&next), keys: j.hash.keys(&next), before: s, moved: true, was: j.hash.id(rec.Account, rec.Key)}
	s.rev++
	s.put(&c)
	s.flags = s.flags&^slotIdentity | c.keys.check
	s.group, s.created = c.keys.group, dueAt(next.Created)
	s.setState(next.State, next.NextAttempt, next.SendUntil)
	s.mark(slotSwept, true)
	if c.keys.id != c.was {
		j.ids.add(c.keys.id, c.seq)
	}
	j.accounts.add(next.Account)
	j.slots.set(c.seq, s)
	j.erases = true
	j.collecting.put(c)
	j.collecting.moved = true
	if err := j.unlockAndAwait(j.collecting); err != nil {
		return persist.Record{}, err
	}
	return next, nil
}

// findID returns a record in memory that may be the one of an ID, by its hash, or the erased one that had this ID; 0 if there is none but others. The
// caller holds mu.
func (j *Journal) findID(id persist.ID, hash uint64, others []uint64) uint64 {
	if seq := j.ids.find(hash, others); seq != 0 || !j.erases {
		return seq
	}
	id = persist.ErasedID(j.secret[:], id)
	return j.ids.find(j.hash.id(id.Account, id.Key), others)
}

// isOf reports whether a record found by findID is the one of the ID.
func (j *Journal) isOf(rec *persist.Record, id persist.ID) bool {
	return rec.IsOf(id, j.secret[:])
}

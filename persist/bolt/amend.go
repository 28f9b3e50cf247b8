package bolt

import (
	"context"
	"fmt"
	"math"

	"github.com/oncehttp/oncehttp/persist"
)

// Amend implements [persist.Journal]: it replaces a record that has ended, by a final or a held one. A long body of the answer (over inlineMax) is stored
// apart. lockEnded first commits a queued change of the record, and locks mu. Then the new content goes into the slot (the small part of the record kept in
// memory) and into the queue. unlockAndAwait unlocks mu, and returns when the commit is durable.
func (j *Journal) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := j.startWrite(ctx); err != nil {
		return persist.Record{}, err
	}
	if err := rec.ReadyToAmend(); err != nil {
		return persist.Record{}, err
	}
	keys := j.hash.keys(&rec)
	s, err := j.lockEnded(&rec, keys)
	if err != nil {
		return persist.Record{}, err
	}
	next := rec.Clone()
	next.Revision++
	c := change{seq: rec.Seq, keys: keys, before: s}
	c.encode(&next)
	if a := next.Answer; a != nil && len(a.Body) > inlineMax {
		c.answer = a.Body // stored apart: it is too long for the entry
	}
	s.rev++
	s.put(&c)
	// The slot of a final record lacks these fields of unfinished ones. The record may be held from now on.
	s.group, s.created = keys.group, dueAt(next.Created)
	s.setState(next.State, next.NextAttempt, next.SendUntil)
	s.reason = j.slots.number([]byte(next.HoldReason))
	s.mark(slotUnreported, next.Unreported)
	s.mark(slotOwed, next.Owed())
	j.index(c.keys, c.seq, c.before.unresolved(), s.unresolved()) // whether a caller without a key may still have to hear its end
	j.slots.set(c.seq, s)
	j.collecting.put(c)
	if err := j.unlockAndAwait(j.collecting); err != nil {
		return persist.Record{}, err
	}
	return next, nil
}

// lockEnded locks mu and returns the slot (the small part of a record kept in memory) of a final record, if it is still as the caller read it. keys has the
// hashes of rec; one (check, compared with slotIdentity) is of the fields that never change. The record is read without mu, and may change until mu is taken:
// then the next round reads it again. Queued changes of the record are committed first. On return rec has the later one of its SendUntil and the stored one.
// After an error mu is not held.
// Errors: persist.ErrNotFound, persist.ErrStale, persist.ErrInvalid, and those of usable.
func (j *Journal) lockEnded(rec *persist.Record, keys recordKeys) (slot, error) {
	if rec.Revision >= math.MaxUint32 { // memory has 32 bits for a revision
		return slot{}, fmt.Errorf("%w: revision %d", persist.ErrInvalid, rec.Revision)
	}
	for {
		if err := j.stands(rec); err != nil {
			return slot{}, err
		}
		now, err := j.lookup(rec.ID)
		if err != nil {
			return slot{}, err
		}
		if !now.State.Final() {
			return slot{}, stale(&now)
		}
		rec.ExtendSendUntil(now.SendUntil)
		j.mu.Lock()
		if err := j.usable(); err != nil {
			j.mu.Unlock()
			return slot{}, err
		}
		if j.queued(rec.Seq) {
			j.awaitQueued(rec.Seq)
			continue
		}
		s, found := j.slots.get(rec.Seq)
		switch {
		case !found || uint64(s.rev) != rec.Revision || s.is(slotOpen): // it has changed since: the next round says how
		case s.flags&slotIdentity != keys.check:
			j.mu.Unlock()
			return slot{}, fmt.Errorf("%w: %q would change its identity", persist.ErrInvalid, rec.Key)
		default:
			return s, nil
		}
		j.mu.Unlock()
	}
}

package bolt

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/oncehttp/oncehttp/persist"
)

// Begin implements [persist.Journal]: it creates the record and returns true with it, or returns the existing one of its ID and false. place.check compares
// the file at the path with the open one. It is doubtful if that file may be a copy: then the commit shows it, since a copy lacks the commit. The error of a
// written record matches persist.ErrUncertain then, too: the record is durable, but not in the file at the path.
func (j *Journal) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if err := j.ready(ctx, &rec, false); err != nil {
		return persist.Record{}, false, err
	}
	doubtful, err := j.place.check()
	if err != nil {
		return persist.Record{}, false, j.wrap(err)
	}
	existing, created, err := j.begin(rec)
	if err != nil || !doubtful {
		return existing, created, err
	}
	if _, err = j.place.check(); err == nil {
		return existing, created, nil
	}
	if created {
		err = fmt.Errorf("%w: %w", persist.ErrUncertain, err)
	}
	return persist.Record{}, false, j.wrap(err)
}

// begin is Begin without its checks. It returns the record as it was written and true, or the record that stands under the ID already and false. The record
// is encoded before mu is taken, so that callers disturb each other little. Its checksum is completed under mu, once its number (Seq) is known.
//
// If memory has a record with the same hash of the ID, that is read from the file and compared: it may be one of another ID. Then the next one with this
// hash is looked at.
func (j *Journal) begin(rec persist.Record) (persist.Record, bool, error) {
	rec.Revision = 1
	c := change{intent: encodeIntent(&rec), keys: j.hash.keys(&rec), fresh: true}
	// The body is not copied: Begin returns only when it is written.
	if len(rec.Body) > inlineMax {
		c.request = rec.Body
	}
	if rec.Answer != nil && len(rec.Answer.Body) > inlineMax {
		c.answer = rec.Answer.Body
	}
	var others []uint64 // other IDs with the same hash
	for {
		j.mu.Lock()
		if err := j.usable(); err != nil {
			j.mu.Unlock()
			return persist.Record{}, false, err
		}
		// Under mu, so exactly one of several Begins of one ID finds nothing.
		seq := j.findID(rec.ID, c.keys.id, others)
		if seq == 0 {
			rec.Seq = j.enter(&rec, c)
			if err := j.unlockAndAwait(j.collecting); err != nil {
				return persist.Record{}, false, err
			}
			return rec, true, nil
		}
		if b := j.unsettled(seq); b != nil {
			// The existing record may still fail to become durable.
			_ = j.unlockAndAwait(b)
			continue
		}
		existing, err := j.read(seq)  // unlocks mu
		if errors.Is(err, errAgain) { // read has waited for a commit, and has read nothing
			continue
		}
		if err != nil || j.isOf(&existing, rec.ID) {
			return existing, false, err
		}
		others = append(others, seq)
	}
}

// enter gives a new record its number (Seq), enters its slot (the small part kept in memory) and its places in the indexes, queues c for the next commit, and
// returns the number. From now on every other Begin of its ID waits for that commit. The caller holds mu.
func (j *Journal) enter(rec *persist.Record, c change) uint64 {
	j.seq++
	c.seq = j.seq
	s := slot{rev: 1, flags: c.keys.check, intentSum: sealSum(c.intent, kindIntent, c.seq), group: c.keys.group}
	s.setState(rec.State, rec.NextAttempt, rec.SendUntil)
	s.created, s.reason = dueAt(rec.Created), j.slots.number([]byte(rec.HoldReason))
	s.mark(slotGenerated, rec.Generated)
	s.mark(slotForgets, rec.KeepKey != 0 || rec.KeepText != 0) // a sweep changes its tombstone, too
	s.mark(slotOwed, rec.Owed())
	s.mark(slotOutside, c.request != nil || c.answer != nil) // bodies stored apart
	j.ids.add(c.keys.id, c.seq)
	if rec.Generated { // a caller without a key may have to hear how it ends
		j.unresolved.add(c.keys.fingerprint, c.seq)
	}
	j.accounts.add(rec.Account)
	j.erases = j.erases || rec.Erased // only the copy of a journal begins erased ones
	j.slots.set(c.seq, s)
	j.collecting.put(c)
	return c.seq
}

// Update implements [persist.Journal]: it replaces an unfinished record at its revision, and returns it at the next one once that is durable. Others see the
// new revision in memory at once; a Begin of the same ID, and a Finish, wait for its commit. change has locked mu unless it returns an error, and
// unlockAndAwait unlocks it. false: the record does not end. The second result of change, the place of the record in memory, is for an end.
func (j *Journal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := j.ready(ctx, &rec, false); err != nil {
		return persist.Record{}, err
	}
	c, _, err := j.change(&rec, false)
	if err != nil {
		return persist.Record{}, err
	}
	j.collecting.put(c)
	if err := j.unlockAndAwait(j.collecting); err != nil {
		return persist.Record{}, err
	}
	rec.Revision++
	return rec, nil
}

// Finish implements [persist.Journal]: it ends an unfinished record at its revision. Others see the end at once, but it is not durable yet: the change waits
// in a queue for one of the next commits. Finish itself waits only if too much is queued already: memory would grow. after is the slot (the small part of the
// record in memory) with the end; change has locked mu, and queueLazy unlocks it.
func (j *Journal) Finish(ctx context.Context, rec persist.Record) error {
	if err := j.ready(ctx, &rec, true); err != nil {
		return err
	}
	c, after, err := j.change(&rec, true)
	if err != nil {
		return err
	}
	return j.queueLazy(c, after)
}

// change gives an unfinished record a new progress, its changeable part, in memory. It returns the change, which the caller must queue for a commit,
// and the record's slot (the small part kept in memory) after it. final tells if rec.State is a final one. Of rec.SendUntil and the stored one the
// later stays, and rec has it then.
//
// Without an error mu is held on return: the caller queues the change before another call sees the slot. Errors: those of lockCurrent.
func (j *Journal) change(rec *persist.Record, final bool) (c change, after slot, err error) {
	next := *rec
	next.Revision++
	c = change{lazy: final, keys: j.hash.keys(rec)}
	c.encode(&next)
	if a := rec.Answer; a != nil && len(a.Body) > inlineMax {
		// Copied, because a Finish returns before it is written.
		c.answer = append([]byte(nil), a.Body...)
	}
	s, err := j.lockCurrent(rec, c.keys, final)
	if err != nil {
		return change{}, slot{}, err
	}
	// s.until is the stored SendUntil, the time until which a send may be under way.
	if s.until > dueAt(next.SendUntil) {
		next.SendUntil, rec.SendUntil = dueTime(s.until), dueTime(s.until)
		c.encode(&next)
	}
	c.seq, c.before = rec.Seq, s // before is for an undo
	s.rev++
	s.put(&c)
	s.setState(rec.State, rec.NextAttempt, rec.SendUntil)
	s.reason = j.slots.number([]byte(rec.HoldReason))
	s.mark(slotUnreported, rec.Unreported)
	s.mark(slotOwed, rec.Owed())
	j.index(c.keys, c.seq, c.before.unresolved(), s.unresolved()) // whether a caller without a key may still have to hear its end
	j.slots.set(c.seq, s)
	return c, s, nil
}

// encode sets the encoded content of a change from the record as it will be. Usually that is a new progress entry, the changeable part. A record that has lost
// its request (RequestDropped) gets one new intent entry instead (the form of a record that is begun, with the progress in it), since the old intent holds the
// request. So does a used key (the rest of an erased record), when a journal is copied.
func (c *change) encode(next *persist.Record) {
	if next.RequestDropped {
		c.intent = encodeIntent(next)
		return
	}
	if c.intent = encodeUsed(next); c.intent != nil {
		return
	}
	c.progress = encodeProgress(next)
}

// put notes in a slot (what memory knows of a record) the checksums of the change's new entries, and completes the checksums in these entries. If the change
// has a new intent, it also has the commit delete the old progress entry and the bodies stored apart. The flag slotChanged says that the record has a progress
// entry, slotOutside that it has such bodies.
func (s *slot) put(c *change) {
	if c.intent == nil {
		s.progressSum = sealSum(c.progress, kindProgress, c.seq)
		s.mark(slotChanged, true)
		s.mark(slotOutside, s.is(slotOutside) || c.answer != nil)
		return
	}
	c.dropProgress, c.dropBodies = c.before.is(slotChanged), c.before.is(slotOutside)
	s.intentSum, s.progressSum = sealSum(c.intent, kindIntent, c.seq), 0
	s.mark(slotChanged, false)
	s.mark(slotOutside, c.answer != nil)
}

// index updates the index of unresolved records, those whose end a caller without a key may still have to hear. It goes by the hash of the request's
// fingerprint in keys. was reports whether the record belonged in it before a change, and is whether it does after it. The caller holds mu.
func (j *Journal) index(keys recordKeys, seq uint64, was, is bool) {
	switch {
	case was && !is:
		j.unresolved.remove(keys.fingerprint, seq)
	case is && !was:
		j.unresolved.add(keys.fingerprint, seq)
	}
}

// Forget implements [persist.Journal]: it deletes an unfinished record. Until the commit is durable, readers of the record wait for it (unreadable in
// read.go). contribution is the record's part of the sum over all records that finds damage: the state written with the commit leaves it out.
func (j *Journal) Forget(ctx context.Context, rec persist.Record) error {
	if err := j.startWrite(ctx); err != nil {
		return err
	}
	keys := j.hash.keys(&rec)
	s, err := j.lockCurrent(&rec, keys, false)
	if err != nil {
		return err
	}
	// The record stays in memory until it is gone from the file (settle in
	// groupcommit.go): a reader must not miss it if the commit fails.
	// lockCurrent locked mu; unlockAndAwait unlocks it.
	j.collecting.put(change{seq: rec.Seq, drop: true, before: s, keys: keys})
	j.collecting.countForgotten(s.contribution(rec.Seq))
	return j.unlockAndAwait(j.collecting)
}

// removeSlot takes a record out of memory, with all its index entries. s is its slot (the small part of a record kept in memory), and keys has the hashes
// for the indexes. The caller holds mu.
func (j *Journal) removeSlot(seq uint64, s slot, keys recordKeys) {
	j.ids.remove(keys.id, seq)
	j.index(keys, seq, s.unresolved(), false)
	j.slots.remove(seq)
}

// lockCurrent locks mu and returns the slot (the small part of a record kept in memory) of an unfinished record, if it is still as the caller read it. keys
// has the hashes of rec: of its ID, and (check, compared with slotIdentity) of the fields that never change. If settled is set, it first waits until all
// changes with a waiting caller are durable: a Finish does not wait for its commit, and must not be undone together with one of them. After an error mu is not
// held.
// Errors: persist.ErrNotFound if no record has rec's ID. persist.ErrStale if it has changed since or is final. persist.ErrInvalid if rec would change a value
// frozen by Begin. Those of usable.
func (j *Journal) lockCurrent(rec *persist.Record, keys recordKeys, settled bool) (slot, error) {
	if rec.Revision >= math.MaxUint32 { // memory has 32 bits for it
		return slot{}, fmt.Errorf("%w: revision %d", persist.ErrInvalid, rec.Revision)
	}
	j.mu.Lock()
	// A Forget under way decides first: if it fails, the record is as before.
	for b := j.unsettled(rec.Seq); b != nil && (settled || b.get(rec.Seq).drop); b = j.unsettled(rec.Seq) {
		_ = j.unlockAndAwait(b)
		j.mu.Lock()
	}
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return slot{}, err
	}
	// One record is under this hash, and the caller knows its Seq and all it was begun with: it is the one.
	// Anything else is looked at. This is the usual case, and needs no read.
	if s, _ := j.slots.get(rec.Seq); !j.ids.only(keys.id, rec.Seq) || s.flags&slotIdentity != keys.check {
		j.mu.Unlock()
		found, err := j.lookup(rec.ID)
		if err != nil {
			return slot{}, err
		}
		if found.Seq != rec.Seq {
			return slot{}, stale(&found)
		}
		j.mu.Lock()
	}
	// mu was given up for the lookup: look again.
	s, found := j.slots.get(rec.Seq)
	err := j.usable()
	switch {
	case err != nil:
	case !found:
		err = notFound(rec.ID)
	case uint64(s.rev) != rec.Revision || !s.is(slotOpen):
		err = fmt.Errorf("%w: %q is at revision %d, open %t", persist.ErrStale, rec.Key, s.rev, s.is(slotOpen))
	case s.flags&slotIdentity != keys.check:
		err = fmt.Errorf("%w: %q would change its identity", persist.ErrInvalid, rec.Key)
	default:
		return s, nil
	}
	j.mu.Unlock()
	return slot{}, err
}

// ready is called by the methods that begin or change a record, before they look at the journal: ctx has not
// ended, and rec is valid and final or not, as the method needs.
func (j *Journal) ready(ctx context.Context, rec *persist.Record, final bool) error {
	if err := j.startWrite(ctx); err != nil {
		return err
	}
	if err := rec.Validate(); err != nil {
		return err
	}
	if rec.State.Final() != final {
		return fmt.Errorf("%w: state %v", persist.ErrInvalid, rec.State)
	}
	return nil
}

// notFound is the error for an ID without a record.
func notFound(id persist.ID) error {
	return fmt.Errorf("%w: account %q, key %q", persist.ErrNotFound, id.Account, id.Key)
}

// stale returns the error for a record that is not as the caller has read it: it has changed since. rec is the record as it is now.
func stale(rec *persist.Record) error {
	return fmt.Errorf("%w: %q is %v at revision %d", persist.ErrStale, rec.Key, rec.State, rec.Revision)
}

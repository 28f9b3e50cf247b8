package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// Assign implements [persist.Journal]: it gives the record to another account. The record gets one new entry in the bucket of intents, with its progress (the
// changeable part), in the place of the old entries. Until the commit is durable it is found in memory by both IDs, so that a Begin of either waits for the
// commit. lockFree locks mu, and unlockAndAwait unlocks it. c.was is the hash of the old ID, and moved says that the two differ.
func (j *Journal) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	if err := j.startWrite(ctx); err != nil {
		return persist.Record{}, err
	}
	if err := rec.Validate(); err != nil {
		return persist.Record{}, err
	}
	if rec.Erased && rec.Origin == persist.Unkept { // what is left of it has no parts to be written anew
		return persist.Record{}, fmt.Errorf("%w: Assign of a used key", persist.ErrInvalid)
	}
	next := rec.Clone()
	next.Account = account
	next.Revision++
	c := change{seq: rec.Seq, intent: encodeIntent(&next), keys: j.hash.keys(&next), moved: true, was: j.hash.id(rec.Account, rec.Key)}
	if len(next.Body) > inlineMax {
		c.request = next.Body
	}
	if next.Answer != nil && len(next.Answer.Body) > inlineMax {
		c.answer = next.Answer.Body
	}
	if err := j.lockFree(next.ID, c.keys.id, &rec); err != nil {
		return persist.Record{}, err
	}
	s, _ := j.slots.get(rec.Seq)
	// The commit deletes the old progress entry, and the bodies stored apart, if there are any.
	c.before, c.dropProgress, c.dropBodies = s, s.is(slotChanged), s.is(slotOutside)
	s.rev++
	s.flags = s.flags&^slotIdentity | c.keys.check // a hash of the fields that never change, the account among them
	s.group = c.keys.group
	s.intentSum = sealSum(c.intent, kindIntent, c.seq)
	s.mark(slotChanged, false)
	s.mark(slotOutside, c.request != nil || c.answer != nil)
	if c.keys.id != c.was {
		j.ids.add(c.keys.id, c.seq)
	}
	j.accounts.add(account)
	j.slots.set(c.seq, s)
	j.collecting.put(c)
	j.collecting.moved = true
	if err := j.unlockAndAwait(j.collecting); err != nil {
		return persist.Record{}, err
	}
	return next, nil
}

// lockFree locks mu once it holds that no record has this ID, that the record rec is still as the caller read it, and that no change of it is queued. hash is
// that of the ID. After each wait everything is looked at again, whatever the result of the awaited commit. After an error mu is not held.
// Errors: persist.ErrExists, persist.ErrNotFound, persist.ErrStale, persist.ErrInvalid, and those of usable.
func (j *Journal) lockFree(id persist.ID, hash uint64, rec *persist.Record) error {
	var others []uint64 // records of other IDs with the same hash
	for {
		if err := j.stands(rec); err != nil {
			return err
		}
		j.mu.Lock()
		if err := j.usable(); err != nil {
			j.mu.Unlock()
			return err
		}
		if j.queued(rec.Seq) {
			j.awaitQueued(rec.Seq)
			continue
		}
		if s, found := j.slots.get(rec.Seq); !found || uint64(s.rev) != rec.Revision {
			j.mu.Unlock()
			continue // it has changed since
		}
		seq := j.findID(id, hash, others)
		if seq == 0 {
			return nil
		}
		if b := j.unsettled(seq); b != nil { // its queued change may still fail
			_ = j.unlockAndAwait(b)
			continue
		}
		existing, err := j.read(seq) // unlocks mu
		switch {
		case errors.Is(err, errAgain): // read has waited for a commit, and has read nothing
		case err != nil:
			return err
		case j.isOf(&existing, id):
			return fmt.Errorf("%w: account %q, key %q", persist.ErrExists, id.Account, id.Key)
		default:
			others = append(others, seq)
		}
	}
}

// awaitQueued waits until the queued change of a record is committed or has failed. The caller knows that there is one (queued), in one of three queues. If it
// is not in the commit under way, the next commit has it: that then takes the changes that nobody waits for, too (lazyDue). The caller holds mu; on return it
// does not.
func (j *Journal) awaitQueued(seq uint64) {
	j.lazyDue = true
	b := j.collecting
	if j.committing != nil && j.committing.get(seq) != nil {
		b = j.committing
	}
	_ = j.unlockAndAwait(b)
}

// stands returns nil if the journal still has the record as the caller read it: the same Seq (the record's number in the journal), revision and identity.
// Errors: persist.ErrNotFound, persist.ErrStale if it has changed, persist.ErrInvalid if rec has another Created or Fingerprint, and those of usable.
func (j *Journal) stands(rec *persist.Record) error {
	now, err := j.lookup(rec.ID)
	switch {
	case err != nil:
		return err
	case now.Seq != rec.Seq || now.Revision != rec.Revision:
		return stale(&now)
	case !now.Created.Equal(rec.Created) || !bytes.Equal(now.Fingerprint, rec.Fingerprint):
		return fmt.Errorf("%w: %q would change its identity", persist.ErrInvalid, rec.Key)
	}
	return nil
}

// removeMoved takes the old IDs of moved records out of the index in memory. A moved record has another ID: it has got another account, or was erased. b has
// the changes of a commit that has succeeded: until then both IDs find the record. The caller holds mu.
func (j *Journal) removeMoved(b *batch) {
	for i := range b.changes {
		if c := &b.changes[i]; c.moved && c.was != c.keys.id {
			j.ids.remove(c.was, c.seq)
		}
	}
}

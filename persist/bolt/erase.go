package bolt

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/usedkey"
)

// Erase implements [persist.Eraser]: it replaces a record by rec, the record without texts, under an ID made of digests. rec still has the ID that was read;
// its fingerprint is gone, and so the caller gives that of the record as fingerprint. Erase fails while somebody still has to hear of the end (slotUnreported:
// a caller; slotOwed: Config.OnResult). Until the commit is durable, memory finds the record by both IDs. Pages of the old entries keep their bytes until they
// are used again, or Copy writes another file.
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
	// lockEnded has locked mu; unlockAndAwait below unlocks it.
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
	s.flags = s.flags&^slotIdentity | c.keys.check // a hash of the fields that never change, as they are now
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

// findID returns the number (Seq) of a record in memory that may have this ID, by the hash of the ID; the record may also be an erased one that had the ID. It
// returns 0 if there is none beside others, those already found to have another ID. An erased record has digests in its ID, and a used key, the little that
// stays of one in the file, has them cut short (cutID). erases is false if the journal has no such records. The caller holds mu.
func (j *Journal) findID(id persist.ID, hash uint64, others []uint64) uint64 {
	if seq := j.ids.find(hash, others); seq != 0 || !j.erases {
		return seq
	}
	erased := persist.ErasedID(j.secret[:], id)
	if seq := j.ids.find(j.hash.id(erased.Account, erased.Key), others); seq != 0 {
		return seq
	}
	for _, long := range [...]persist.ID{erased, id} { // id may be that of an erased record, as another call has returned it
		if short, is := cutID(long); is {
			if seq := j.ids.find(j.hash.id(short.Account, short.Key), others); seq != 0 {
				return seq
			}
		}
	}
	return 0
}

// isOf reports whether a record found by findID has the ID. A used key, what is left of an erased record, has shortened digests: isOf gives it the digests of
// this ID in full. The ID may be the one that the record had before, or one made of full digests, as an earlier call has returned it.
func (j *Journal) isOf(rec *persist.Record, id persist.ID) bool {
	if rec.IsOf(id, j.secret[:]) {
		return true
	}
	if !rec.Erased {
		return false
	}
	erased := persist.ErasedID(j.secret[:], id)
	if short, is := cutID(erased); is && rec.ID == short {
		usedkey.Name(rec, id.Key, j.secret[:])
		rec.ID = erased
		return true
	}
	short, is := cutID(id)
	if is = is && rec.ID == short; is {
		// Its key stood on the wire as it was, and still does.
		if rec.WireKey == rec.Key {
			rec.WireKey = id.Key
		}
		rec.ID = id
	}
	return is
}

// nameListed gives a used key, what is left of an erased record, the full digests of the key and account by which a query has found it. In the file they are
// shortened. inside is what follows the account of the query: the digests of the scopes inside of it, which stay short.
func (j *Journal) nameListed(q *persist.Query, rec *persist.Record) {
	if !rec.Erased {
		return
	}
	erased := persist.ErasedID(j.secret[:], persist.ID{Account: q.Account, Key: q.Key})
	if short, is := cutDigest(erased.Key, digestKey); is && rec.Key == short {
		usedkey.Name(rec, q.Key, j.secret[:])
	}
	if q.AllAccounts || q.Account == "" {
		return
	}
	short, is := cutAccount(erased.Account)
	if inside, in := strings.CutPrefix(rec.Account, short); is && in && (inside == "" || inside[0] == '|') {
		rec.Account = erased.Account + inside
	}
}

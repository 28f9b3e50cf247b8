package redis

import (
	"cmp"
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/usedkey"
)

// Erase implements [persist.Eraser]: one script replaces an ended record by rec, its erased form without the texts that name a person. rec still has the ID
// that was read, and fingerprint is that of the record as it was read: the script compares it. The record keeps its place, by the hash of the ID that it had.
// Redis keeps the old bytes in its append-only file until that is rewritten, and in snapshots.
func (j *Journal) Erase(ctx context.Context, rec persist.Record, fingerprint []byte) (persist.Record, error) {
	if err := cmp.Or(j.opened(), ctx.Err(), rec.ReadyToErase()); err != nil {
		return persist.Record{}, err
	}
	b := j.of(idOf(rec.ID))
	rec, e := j.erased(b, &rec)
	if err := j.most.fits(&rec, e); err != nil {
		return persist.Record{}, j.failed(err)
	}
	ended, over := scores(&rec)
	err := j.settle(ctx, func(ctx context.Context, _ bool) error {
		word, rest, err := j.run(ctx, j.scripts.amend, b, e.id, b.numberOf(rec.Seq), rec.Revision, e.head, e.progress, e.answer, ended, over,
			needsHash(rec.Needs().String()), string(rec.HoldReason), e.intent, groupHash(&rec), fingerprint)
		switch {
		case err != nil:
			return err
		case word != "done" || len(rest) == 0:
			return refusal(&rec, word, rest)
		}
		if stays := bytesOf(rest[0]); len(stays) == instantSize { // the later SendUntil
			rec.ExtendSendUntil(timeOf(stays))
		}
		return nil
	})
	if err != nil {
		return persist.Record{}, err
	}
	rec.Revision++
	return rec, nil
}

// erased returns the record with the ID that Erase gives it, and its new entry. The entry stays at the same place in the bucket, which is a hash of
// the old ID.
func (j *Journal) erased(b *bucket, rec *persist.Record) (persist.Record, *entry) {
	next := *rec
	next.ID = persist.ErasedID(j.secret, rec.ID)
	e := b.newEntry(&next, rec.Revision+1)
	e.id = idOf(rec.ID)
	return next, e
}

// checkID returns an error if a record found at the place of an ID is not the one of this ID. The place is a hash, and the names of an erased record are
// digests: so they must be compared. A used key, the little that stays of an erased record, has names made of its place (usedID) instead: it gets the digests
// of the ID.
// Error: persist.ErrCorrupt.
func (j *Journal) checkID(rec *persist.Record, id persist.ID) error {
	if rec.Erased && rec.ID == usedID(idOf(id)) {
		usedkey.Name(rec, id.Key, j.secret)
		rec.ID = persist.ErasedID(j.secret, id)
		return nil
	}
	if rec.IsOf(id, j.secret) {
		return nil
	}
	return j.failed(fmt.Errorf("%w: account %q, key %q: the record at its place is that of another, which was erased", persist.ErrCorrupt, id.Account, id.Key))
}

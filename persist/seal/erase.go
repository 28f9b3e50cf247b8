package seal

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// Erase implements [persist.Eraser]: it replaces an ended record in the journal below by rec, its erased form without the texts that name a person. rec still
// has the ID that was read, and fingerprint is that of the record as it was read. The erased form is sealed anew, with nothing of the old parts, for the new
// ID: a sealed part belongs to its ID. Under a HashKey the new ID is made of the hash of the key. A record that was begun in clear is erased in clear, if the
// sealer accepts such records (plain). The journal below must be an Eraser. It compares the value in the place of the fingerprint, made by the key of the
// record's Begin: each key is tried, until it is not ErrInvalid.
func (j *journal) Erase(ctx context.Context, rec persist.Record, fingerprint []byte) (persist.Record, error) {
	below, can := persist.As[persist.Eraser](j.Journal)
	if !can {
		return persist.Record{}, fmt.Errorf("persist/seal: %w: a %T cannot erase", persist.ErrInvalid, j.Journal)
	}
	if !rec.Erased { // a caller's mistake: the check below returns an error for it
		return persist.Record{}, rec.ReadyToErase()
	}
	secret, err := j.Secret(ctx)
	if err != nil {
		return persist.Record{}, err
	}
	had, plain := j.s.StoredID(rec.ID), rec
	rec.ID = persist.ErasedID(secret, had)
	for _, k := range j.s.keys { // that of its Begin made the value in the place of the fingerprint
		sealed, err := j.s.sealBy(j.s.keys[0], &rec)
		if err != nil {
			return persist.Record{}, err
		}
		sealed.ID = had // the journal below puts the new one in its place
		erased, err := below.Erase(ctx, sealed, k.index(fingerprint))
		switch {
		case err == nil:
			rec.Revision, rec.SendUntil = erased.Revision, erased.SendUntil
			return rec, nil
		case !errors.Is(err, persist.ErrInvalid):
			return persist.Record{}, err
		}
	}
	if j.s.plain { // the record may have been begun in clear
		return below.Erase(ctx, plain, fingerprint)
	}
	return persist.Record{}, fmt.Errorf("%w: no key that was given has sealed %q", persist.ErrInvalid, plain.Key)
}

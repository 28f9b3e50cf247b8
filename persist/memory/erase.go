package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
)

// Erase implements [persist.Eraser]: it replaces an ended record by its erased form, under an ID made of digests. The record must be the one that was
// read, by its revision, Created and fingerprint, and nobody may still have to be told of its end.
func (j *Journal) Erase(ctx context.Context, rec persist.Record, fingerprint []byte) (persist.Record, error) {
	if err := cmp.Or(ctx.Err(), rec.ReadyToErase()); err != nil {
		return persist.Record{}, err
	}
	next := rec.Clone()
	next.Revision++
	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := j.ended(&rec)
	switch {
	case err != nil:
		return persist.Record{}, err
	case !rec.Created.Equal(e.created) || !bytes.Equal(fingerprint, e.fingerprint[:]) || e.unreported || !e.owedFrom.IsZero():
		return persist.Record{}, fmt.Errorf("%w: %q would change its identity, or is owed", persist.ErrInvalid, rec.Key)
	}
	standing, err := e.record()
	if err != nil {
		return persist.Record{}, err
	}
	// A record that is erased already has its new ID, whichever the caller knows.
	if next.ID = e.id; !standing.Erased {
		j.rename(e, &next)
	}
	next.ExtendSendUntil(e.sendUntil)
	e.begin(&next)
	j.tally.count(e, next.HoldReason)
	return next.Clone(), nil
}

// rename gives an entry and its record the ID that the record has once it is erased: digests of its account and key. rec brings the fingerprint of the
// erased record. The caller holds mu.
func (j *Journal) rename(e *entry, rec *persist.Record) {
	delete(j.byID, e.id)
	rec.ID = persist.ErasedID(j.secret[:], e.id)
	e.id, j.erased = rec.ID, true
	j.byID[e.id] = e
	e.fingerprint = [32]byte(rec.Fingerprint)
}

// find returns the entry of an ID, or nil. An erased record is found by the ID that it had before, too (j.erased: there may be one). The caller holds mu.
func (j *Journal) find(id persist.ID) *entry {
	e := j.byID[id]
	if e == nil && j.erased {
		e = j.byID[persist.ErasedID(j.secret[:], id)]
	}
	return e
}

package bolt

import (
	"context"
	"errors"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// MarkReported implements [persist.Journal]: it clears Unreported of an ended record. The change waits in the queue, as that of a Finish does. It
// begins anew if the record changes between its read and the change.
func (j *Journal) MarkReported(ctx context.Context, id persist.ID) error {
	if err := j.startWrite(ctx); err != nil {
		return err
	}
	for {
		if none, err := j.noneUnreported(id); none || err != nil {
			return err
		}
		rec, err := j.lookup(id)
		switch {
		case errors.Is(err, persist.ErrNotFound):
			return nil
		case err != nil || !rec.Unreported:
			return err
		}
		rec.Unreported = false
		if done, err := j.replaceFinal(&rec); done || err != nil {
			return err
		}
	}
}

// MarkDelivered implements [persist.Results]: the state of the record at this revision was handed to Config.OnResult, and OwedFrom is cleared. It returns
// false if the record has another revision, has gone, or owes nothing. For a final record the change waits in the queue, as that of a Finish does; for a held
// one the call returns when it is durable.
func (j *Journal) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	if err := j.startWrite(ctx); err != nil {
		return false, err
	}
	rec, err := j.lookup(id)
	switch {
	case errors.Is(err, persist.ErrNotFound):
		return false, nil
	case err != nil || rec.Revision != revision || !rec.Owed():
		return false, err
	}
	rec.OwedFrom = time.Time{}
	if !rec.State.Final() {
		_, err := j.Update(ctx, rec)
		if errors.Is(err, persist.ErrStale) || errors.Is(err, persist.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}
	for { // until nothing of it is queued
		marked := rec
		if done, err := j.replaceFinal(&marked); done || err != nil {
			return done && err == nil, err
		}
		if now, err := j.lookup(id); err != nil || now.Revision != revision {
			if errors.Is(err, persist.ErrNotFound) {
				err = nil
			}
			return false, err
		}
	}
}

// noneUnreported reports whether memory alone proves that no record of this ID is Unreported (ended, and no caller was told of the end). Then
// MarkReported has nothing to do, and reads nothing. That is the usual case. false proves nothing: another record may have the same hash.
func (j *Journal) noneUnreported(id persist.ID) (bool, error) {
	hash := j.hash.id(id.Account, id.Key)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return false, err
	}
	seq := j.ids.find(hash, nil)
	s, _ := j.slots.get(seq)
	return seq == 0 || j.ids.only(hash, seq) && !s.is(slotUnreported), nil
}

// replaceFinal queues a new progress (the changeable part of a record) for the final record with rec's ID and revision. Nobody waits for its commit. rec was
// just read by the caller: its memory is not shared. done is false if nothing is changed: the record has another revision by now, or a change of it was
// queued. replaceFinal has waited for that one. Without an error the caller must read the record again then.
func (j *Journal) replaceFinal(rec *persist.Record) (done bool, err error) {
	read := rec.Revision
	rec.Revision++
	c := change{seq: rec.Seq, progress: encodeProgress(rec), lazy: true, keys: j.hash.keys(rec)}
	if a := rec.Answer; a != nil && len(a.Body) > inlineMax {
		c.answer = a.Body
	}
	j.mu.Lock()
	if b := j.unsettled(rec.Seq); b != nil { // a Sweep's; this change must not go with it if it fails
		_ = j.unlockAndAwait(b)
		return false, nil
	}
	s, found := j.slots.get(rec.Seq)
	if err := j.usable(); err != nil || !found || uint64(s.rev) != read {
		j.mu.Unlock()
		return false, err
	}
	// The same as change does for an unfinished record.
	c.before = s
	s.rev++
	s.progressSum = sealSum(c.progress, kindProgress, c.seq)
	s.mark(slotChanged, true)
	s.mark(slotUnreported, rec.Unreported)
	s.mark(slotOwed, rec.Owed())
	j.index(c.keys, c.seq, c.before.unresolved(), s.unresolved()) // whether a caller without a key may still have to hear its end
	j.slots.set(c.seq, s)
	return true, j.queueLazy(c, s)
}

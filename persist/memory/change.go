package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// Update implements [persist.Journal]: it replaces an unfinished record at its revision.
func (j *Journal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := ready(ctx, &rec, false); err != nil {
		return persist.Record{}, err
	}
	if err := j.change(&rec, j.current); err != nil {
		return persist.Record{}, err
	}
	return rec, nil
}

// Finish implements [persist.Journal]: it ends an unfinished record at its revision.
func (j *Journal) Finish(ctx context.Context, rec persist.Record) error {
	if err := ready(ctx, &rec, true); err != nil {
		return err
	}
	return j.change(&rec, j.current)
}

// Amend implements [persist.Journal]: it replaces a record that has ended.
func (j *Journal) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := cmp.Or(ctx.Err(), rec.ReadyToAmend()); err != nil {
		return persist.Record{}, err
	}
	if err := j.change(&rec, j.ended); err != nil {
		return persist.Record{}, err
	}
	return rec, nil
}

// change replaces the progress, the changeable part, of the record that find returns (current: an unfinished one, or ended), and increases rec's revision. rec
// must not differ in what Begin has frozen. Of both SendUntil the later stays, and is in rec.
// Errors: those of find, and persist.ErrInvalid.
func (j *Journal) change(rec *persist.Record, find func(*persist.Record) (*entry, error)) error {
	next := *rec
	next.Revision++
	var scratch [scratchMax]byte
	progress := codec.AppendProgress(sized(&scratch, codec.ProgressSize(&next, codec.Inline)), &next, codec.Inline)

	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := find(rec)
	if err != nil {
		return err
	}
	if !rec.Created.Equal(e.created) || !bytes.Equal(rec.Fingerprint, e.fingerprint[:]) {
		return fmt.Errorf("%w: %q would change its identity", persist.ErrInvalid, rec.Key)
	}
	if e.sendUntil.After(next.SendUntil) {
		next.SendUntil, rec.SendUntil = e.sendUntil, e.sendUntil
		progress = codec.AppendProgress(nil, &next, codec.Inline)
	}
	rec.Revision = next.Revision
	j.replace(e, &next, progress)
	return nil
}

// replace gives the entry a new progress, the changeable part of its record, and updates the indexes and the counts. A record that has lost its request is
// encoded whole. The index of unresolved records has those whose end a caller without a key may still have to hear. The caller holds mu.
func (j *Journal) replace(e *entry, rec *persist.Record, progress []byte) {
	was := e.unresolved()
	if rec.RequestDropped {
		e.begin(rec) // into its room again, without the request
	} else {
		e.set(rec, progress)
	}
	switch is := e.unresolved(); {
	case was && !is:
		j.unlink(e)
	case is && !was:
		j.link(e)
	}
	j.noteOwed(e)
	j.tally.count(e, rec.HoldReason)
}

// Assign implements [persist.Journal]: it gives a record to another account, and so another ID. It fails if that account has a record of the key, or if the
// record has changed since it was read.
func (j *Journal) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	if err := ctx.Err(); err != nil {
		return persist.Record{}, err
	}
	if err := rec.Validate(); err != nil {
		return persist.Record{}, err
	}
	next := rec
	next.Account = account
	next.Revision++

	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := j.standing(&rec)
	switch {
	case err != nil:
		return persist.Record{}, err
	case !rec.Created.Equal(e.created) || !bytes.Equal(rec.Fingerprint, e.fingerprint[:]):
		return persist.Record{}, fmt.Errorf("%w: %q would change its identity", persist.ErrInvalid, rec.Key)
	case j.find(next.ID) != nil:
		return persist.Record{}, fmt.Errorf("%w: account %q, key %q", persist.ErrExists, account, rec.Key)
	}
	delete(j.byID, e.id)
	e.id = next.ID
	j.byID[e.id] = e
	e.begin(&next)
	j.tally.count(e, next.HoldReason)
	return next.Clone(), nil
}

// Forget implements [persist.Journal]: it deletes an unfinished record at its revision.
func (j *Journal) Forget(ctx context.Context, rec persist.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	e, err := j.current(&rec)
	if err == nil {
		j.drop(e)
	}
	return err
}

// current returns the entry of an unfinished record, if it is still as the caller read it. The caller holds mu.
// Errors: persist.ErrNotFound, persist.ErrStale if it has changed or ended, persist.ErrClosed.
func (j *Journal) current(rec *persist.Record) (*entry, error) {
	e, err := j.standing(rec)
	if err == nil && e.state.Final() {
		return nil, stale(rec, e)
	}
	return e, err
}

// ended returns the entry of a final record, if it is still as the caller read it. The caller holds mu. Errors: as current.
func (j *Journal) ended(rec *persist.Record) (*entry, error) {
	e, err := j.standing(rec)
	if err == nil && !e.state.Final() {
		return nil, stale(rec, e)
	}
	return e, err
}

// standing returns the entry of a record in any state, if it is still as the caller read it: the same number (Seq) and revision. The caller holds mu.
// Errors: persist.ErrNotFound, persist.ErrStale if it has changed, persist.ErrClosed.
func (j *Journal) standing(rec *persist.Record) (*entry, error) {
	if !j.open {
		return nil, errClosed()
	}
	e := j.find(rec.ID)
	switch {
	case e == nil:
		return nil, notFound(rec.ID)
	case e.seq != rec.Seq || e.rev != rec.Revision:
		return nil, stale(rec, e)
	}
	return e, nil
}

// ready makes the checks of Begin, Update and Finish before they look at the journal: the context has not ended, and the record is valid, and final
// or not as the method needs it.
func ready(ctx context.Context, rec *persist.Record, final bool) error {
	if err := ctx.Err(); err != nil {
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

package run

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/alike"
	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// writer writes the records of operations that a client begins, has leased, or gives back. It is safe for concurrent use.
type writer struct {
	cfg     *Config
	journal persist.Journal
	holder  *holder           // stamps the leases
	now     func() time.Time  // by the journal's clock
	form    *form             // makes the journal hold its form before the first record
	notes   *known.Notes      // of records missing in the journal
	begins  *known.Begins     // of all operations
	doubts  *doubts           // make room for a note
	alike   *alike.Lookalikes // learn of operations in doubt
}

// intent returns the record of a new operation as it must be before its first send: stamped with the present time, marked as maybe sent unless a token comes
// first, and leased to this client on a shared journal. It writes nothing, and does not change op. Drives counts the runs that have set out to send it.
func (w *writer) intent(op *preparedRequest) persist.Record {
	rec, now := *op.rec, w.now().Round(0)
	rec.Created, rec.Drives = now, 1
	begun := operation.OpOf(&rec, 0).Begun(w.holder.firstSent(), w.sendUntil(), w.cfg.drives.LatestFirstSend(now, rec.Window))
	rec.MaybeSent, rec.FirstSent, rec.SendUntil, rec.SendBefore = begun.MaybeSent, begun.FirstSent, begun.SendUntil, begun.SendBefore
	w.holder.stamp(&rec)
	return rec
}

// sendUntil returns the time stamp of a write before a send. Until then, one of its sends may still be on its way.
func (w *writer) sendUntil() time.Time { return w.now().Round(0).Add(w.cfg.Retry.sending()) }

// begin begins a record in the journal. If one exists, it is returned as it is, and created is false. After persist.ErrUncertain the record may appear later:
// it is noted, and its request then counts as unresolved; with too many such notes nothing more is begun. intent.FailedBegin decides on the meaning of an
// error. Calls that watch the key hear of it (begins). Before the begin, the journal holds the origin of credentials, see package authorized.
func (w *writer) begin(ctx context.Context, rec persist.Record) (existing persist.Record, created bool, err error) {
	if err := w.form.begin(ctx, w.journal); err != nil {
		return persist.Record{}, false, err
	}
	if err := w.cfg.authorized.HoldBegun(ctx, rec.Origin); err != nil {
		return persist.Record{}, false, err
	}
	if w.notes.Full(rec.ID) && !w.doubts.makesRoom(ctx, rec.ID) {
		return persist.Record{}, false, errTooManyNotes
	}
	w.begins.Enter(rec.ID)
	defer func() { w.begins.Leave(rec.ID, err == nil) }()
	existing, created, err = w.journal.Begin(ctx, rec)
	switch {
	case err == nil:
		w.notes.Shown(rec.ID)
		// Else the call that begins it tells its callers the end, and stops no other call.
		if !w.alike.RunsUndoubted(&rec) { // begun by a Rekey
			w.alike.Doubted(&rec)
		}
	case errors.Is(err, persist.ErrUncertain):
		w.notes.Lost(&rec, mayBeSentUntil(&rec))
		w.alike.Doubted(&rec) // the note ends once the record shows, and the looks find it then
	}
	return existing, created, err
}

// promise writes that an Enqueue has promised the send of an existing operation. A call in progress with the operation keeps its lease.
func (w *writer) promise(ctx context.Context, rec persist.Record, promised operation.Op) error {
	rec.State, rec.HoldReason, rec.NextAttempt = promised.State, promised.Hold, promised.NextAttempt
	rec.Enqueued, rec.SendBefore = promised.Enqueued, promised.SendBefore
	if !promised.Answered {
		rec.Answer = nil
	}
	w.holder.leases.Keep(&rec)
	_, err := w.journal.Update(ctx, rec)
	return err
}

// giveBack gives up the lease of a claimed record, not run by this client, so that another client can run it. The
// record is not due before again; if again is zero, it stays due as before. If the record has changed since,
// giveBack does nothing. An error is logged, and the lease then ends by itself. claims.Drop must follow.
func (w *writer) giveBack(ctx context.Context, rec persist.Record, again time.Time) {
	w.logUnreleased(ctx, &rec, w.release(ctx, rec, again))
}

// release gives up the lease of a claimed record, as giveBack does, and returns the journal's error. again is the next due time, zero for that of before.
// Without a lease of this client, or after the operation's end, there is nothing to give up. It does not end with ctx.
func (w *writer) release(ctx context.Context, rec persist.Record, again time.Time) error {
	if rec.LeaseOwner != w.holder.owner || rec.State.Final() {
		return nil
	}
	op := operation.OpOf(&rec, 0)
	rec.NextAttempt = op.DueAgain(again.Round(0), w.now())
	w.holder.unstamp(&rec)
	_, err := w.journal.Update(context.WithoutCancel(ctx), rec)
	return err
}

// logUnreleased logs an error of release, unless another has changed or ended the record since.
func (w *writer) logUnreleased(ctx context.Context, rec *persist.Record, err error) {
	if err != nil && !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrNotFound) {
		w.cfg.log(ctx, slog.LevelError, "a lease could not be released", rec.Key, err)
	}
}

// logUnrecorded logs an error of the write of an unfinished operation at the end of a run. err may be nil.
func (w *writer) logUnrecorded(ctx context.Context, rec *persist.Record, err error) {
	if err != nil {
		w.cfg.log(ctx, slog.LevelError, "the state could not be recorded", rec.Key, err)
	}
}

// change calls write to change the record in the journal. If write returns ErrStale, and the record differs only by the mark of an Enqueue or a claim of this
// very client during the run, change updates rec from the journal and calls write once more. If it also differs by the evidence of an event, ErrStale is
// returned: the caller did not know the event, and write does not take account of it (false).
func (w *writer) change(ctx context.Context, rec *persist.Record, write func() error) error {
	err := w.rewrite(ctx, rec, false, write)
	if err == nil {
		w.holder.leases.Changed(rec)
	}
	return err
}

// rewrite does the work of change, without a note for the leases. It first gives rec the latest revision that the leases know. After an error other than a
// changed or missing record, no mark of a claim counts any more (Unwritten): such a mark lets a send go without a write of its own. If heeds is true, write
// takes account of an event's evidence: then a record with new evidence is written, too.
func (w *writer) rewrite(ctx context.Context, rec *persist.Record, heeds bool, write func() error) error {
	w.holder.leases.Latest(rec)
	err := write()
	if errors.Is(err, persist.ErrStale) {
		now, getErr := w.journal.Get(ctx, rec.ID)
		if getErr != nil || !acts.MayRewrite(rec, &now, w.holder.owner, heeds) {
			return err
		}
		rec.Revision, rec.Drives, rec.Enqueued, rec.SendBefore = now.Revision, now.Drives, now.Enqueued, now.SendBefore
		rec.Evidence = now.Evidence
		err = write()
	}
	if err != nil && !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrNotFound) {
		w.holder.claims.Unwritten()
	}
	return err
}

// finishNow is Finish, durable on return, since its success is told to a person. before is the record as it was read; rec is the same with its end. A delivery
// of its hold since then does not stand in the way; any other change is persist.ErrStale (after a delivery it tries again, three times). The key may have been
// told to the caller helped by this person. The lease goes with the end: its caller has it, or it has ended.
func (w *writer) finishNow(ctx context.Context, before, rec persist.Record) error {
	cfg := w.cfg
	op := operation.OpOf(&before, 0)
	// The key is in the hands of a person, who may have told it.
	rec.KeyTold = op.EndsKeyTold(true)
	rec.ExtendKeeping(cfg.KeepAnswer, cfg.KeepKey, cfg.KeepText)
	w.holder.unstamp(&rec)
	for tries := 0; ; tries++ {
		op = operation.OpOf(&before, 0)
		rec.Revision, rec.OwedFrom = before.Revision, operation.OwedAs(&op, rec.State, rec.HoldReason, 0, rec.Finished)
		err := cfg.Journal.Finish(ctx, withoutRequest(rec))
		if err == nil {
			return cfg.Journal.Flush(ctx)
		}
		if !errors.Is(err, persist.ErrStale) || tries == 3 || !onlyDelivered(ctx, cfg.Journal, &before) {
			return err
		}
	}
}

package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file handles a record after the last attempt of a run, and makes the result for callers.

// ending is the end of a run: it records the outcome, and makes the result. Its methods are called after the
// last attempt, or in place of all attempts.
type ending struct {
	task    *task
	replies *replies // the answer to be recorded

	owed     uint64    // result.owed; zero: nothing is owed
	handed   *handover // result.handed; nil: no caller has the answer before its record
	resolved bool      // the record says that the operation has ended, and that its callers know the end
	watched  keyWatch  // over the key forgotten by this run
}

// conclude writes the end of a run, which is the work of one call on an operation. The drive, the operation's state machine, names each step: a
// write, a flush, a search. finish writes the end of an operation with an answer. The error tells why such an end is not recorded, or not durable. It
// is called once, after the last attempt or in place of all (operation.Overdue, operation.EndedBy). After it, result may be called.
func (d *ending) conclude(finish func(context.Context, persist.Record) error) (err error) {
	t := d.task
	ctx := t.call.Values()
	for {
		switch t.drive.Step() {
		case operation.LookForPlace:
			// With a second place beside it, the record must not be forgotten: see place.Places.IsKept.
			keeps, err := t.engine.places.IsKept(ctx, &t.rec)
			d.replies.note(err)
			t.drive.PlaceFound(keeps, err == nil)
		case operation.Write:
			err = d.write(ctx, finish)
		case operation.Flush:
			err = d.flush(ctx)
		case operation.LookForOther:
			d.lookForOther(ctx)
		default:
			return err
		}
	}
}

// write makes the one write that ends a run and gives up its lease, as the step Write. finish is used only for a confirmed answer: it alone may be
// written after the callers have it. After a failed write the drive decides about the error, and about another step.
func (d *ending) write(ctx context.Context, finish func(context.Context, persist.Record) error) error {
	t := d.task
	w := operation.WriteNothing
	var written persist.Record
	var earlier time.Time // until then, another process may hand over an earlier state
	// Others may have changed the record between two tries, within the bounds of acts.MayRewrite: so the
	// drive sees it first, and decides by it.
	err := t.lastChange(ctx, &t.rec, func() (err error) {
		// The write is of what the record is now, not of what the drive began with.
		t.drive.Moved(t.op())
		now := t.engine.now()
		earlier = t.rec.OwedFrom
		switch w = t.drive.Writing(); w {
		case operation.Forget:
			// A Do may begin the key anew at once: whoever is told of "no effect" must know of that.
			d.watched.begin(&t.engine.shared.begins, t.rec.ID)
			return t.journal.Forget(ctx, t.rec)
		case operation.EndConfirmed:
			// finish may be FinishLate: callers have the answer then.
			written, err = d.finish(ctx, now, finish)
		case operation.EndMismatched, operation.EndAbsent, operation.EndHappened:
			written, err = d.finish(ctx, now, t.journal.Finish)
		default:
			err = d.leaveUnfinished(now)
		}
		return err
	})
	switch w {
	case operation.Forget:
		if err != nil {
			t.cfg.log(ctx, slog.LevelError, "an operation without effect could not be forgotten", t.rec.Key, err)
		}
	case operation.LeaveOpen, operation.LeaveUnsent:
		t.engine.writer.logUnrecorded(ctx, &t.rec, err)
		t.engine.wake() // a Run of this client may go on with it once it is due
	default:
		err = d.noteEnd(ctx, &written, err)
		// An event of the API has come during the run, and says otherwise.
		if op := operation.OpOf(&written, 0); err == nil && op.IsContradicted() {
			t.engine.witness.contradicted(ctx, &written, written.Evidence)
		}
	}
	// The error of LeaveOpen names the reason for the stop of the drive.
	if w != operation.LeaveOpen {
		d.replies.note(err)
	}
	d.noteOwed(w, &written, earlier, err)
	d.noteUnowed(w, &written, err)
	// The drive decides by it whether a flush follows, and what callers are told.
	t.drive.Written(err == nil, written.Finished)
	return err
}

// flush makes the written end durable, as the step Flush. If it fails, the callers get an error instead of the answer, and this process counts the
// operation as unresolved.
func (d *ending) flush(ctx context.Context) error {
	t := d.task
	err := t.journal.Flush(ctx)
	if err != nil && t.drive.Writing() != operation.WriteNothing {
		d.resolved = false
		t.cfg.log(ctx, slog.LevelError, "the outcome could not be recorded", t.rec.Key, err)
	}
	d.replies.note(err)
	t.drive.Flushed(err == nil)
	return err
}

// finish writes the record as ended, and returns the written record. write is the journal's Finish or FinishLate: it gets the record without the request,
// unless that is to be kept. The returned record still has the request. Two facts keep a key of one call longer: a caller has left before the end (Left), or
// the lease ended meanwhile (Broken), so that others may know the key.
func (d *ending) finish(ctx context.Context, now time.Time, write func(context.Context, persist.Record) error) (persist.Record, error) {
	t := d.task
	// At the last moment, since a caller may leave until then.
	m := d.meanwhile()
	if t.rec.KeyOfOneCall() { // its caller, who alone can know the key, stays from now on
		m.Left, m.Broken = t.call.Recording(), !t.engine.leases.Unbroken(t.rec.ID)
	}
	c := t.drive.Change(m, now)
	rec := d.changed(&c, now)
	rec.Finished = now.Round(0)
	rec.Unreported, rec.KeyTold, rec.Told, rec.Effect = c.Unreported, c.KeyTold, c.Told, c.Effect
	// The longer of the two counts: that of the client that began it, or of this one.
	rec.ExtendKeeping(t.cfg.KeepAnswer, t.cfg.KeepKey, t.cfg.KeepText)
	err := writeSmaller(ctx, t.cfg, &rec, func() error { return write(ctx, withoutRequest(rec)) })
	return rec, err
}

// withoutRequest returns an ended record as it is written: without its request, if that is not to be kept. A
// sealed record, whose key is missing here, stays as it is.
func withoutRequest(rec persist.Record) persist.Record {
	if rec.Sealed() == nil {
		rec.DropRequest(rec.Finished)
	}
	return rec
}

// leaveUnfinished writes the record of an operation that has not ended: pending with the time of the next attempt, or held, and without a lease. Any client
// that can serve it may take it then. aside names operations that this client leaves alone for a while, since it alone could not send them.
func (d *ending) leaveUnfinished(now time.Time) error {
	t := d.task
	c := t.drive.Change(d.meanwhile(), now)
	rec := d.changed(&c, now)
	// Provably nothing was sent: the record is again one that was never sent.
	if c.Unmark {
		rec.MaybeSent, rec.FirstSent = false, time.Time{}
	}
	rec.NextAttempt, rec.SendBefore = c.NextAttempt, c.SendBefore
	if c.Hold != "" {
		rec.Note = d.replies.holdNote()
	}
	switch c.Aside {
	case operation.AsideTaken:
		t.engine.aside.Drop(rec.ID)
	case operation.AsideLeft:
		t.engine.aside.Note(rec.ID, t.engine.now(), t.cfg.Retry.MaxDelay, t.cfg.Retry.MaxPause)
	}
	return t.update(rec)
}

// meanwhile returns what has happened during the run beside its attempts, and changes how it ends: a caller has left, or has the answer
// already. It is read as late as possible, just before the write.
func (d *ending) meanwhile() operation.Meanwhile {
	t := d.task
	_, shown := t.call.PlainHTTP()
	return operation.Meanwhile{GivenUp: stopCause(t.call) != nil, Shown: shown, Taken: d.handed.isTaken(), Delivers: delivers(t), LatestFirst: t.cfg.drives.LatestFirstSend(t.rec.Created, t.rec.Window)}
}

// changed returns the record with the last change of the run, as package operation has decided it, without a lease. The caller writes it.
// t.rec stays as it is, so that a second try of the write begins with the same. In any other case of c.Answer the record keeps the answer that it has.
func (d *ending) changed(c *operation.Change, now time.Time) persist.Record {
	rec := d.task.rec
	rec.State, rec.HoldReason, rec.Attempts, rec.Sends = c.State, c.Hold, c.Attempts, c.Sends
	// leaveUnfinished sets the next attempt of those that have one.
	rec.NextAttempt, rec.OwedFrom = time.Time{}, c.OwedFrom
	d.task.engine.holder.unstamp(&rec)
	switch c.Answer {
	case operation.KeepNone:
		rec.Answer = nil
	case operation.KeepAnswer:
		rec.Answer = d.replies.answerForRecord(now.Round(0))
	case operation.KeepFlawed:
		rec.Answer = d.replies.flawedForRecord()
	}
	return rec
}

// noteEnd notes the result of the write at the operation's end, and logs its error. It returns err; for ErrStale it adds the record's present state.
// If no caller knows the end yet, the operation counts as unresolved in this process, so that callers without a key find it.
func (d *ending) noteEnd(ctx context.Context, written *persist.Record, err error) error {
	t := d.task
	if errors.Is(err, persist.ErrStale) {
		if now, getErr := t.journal.Get(ctx, t.rec.ID); getErr == nil {
			err = fmt.Errorf("%w: it is %v", err, now.State)
		}
	}
	if err != nil {
		t.cfg.log(ctx, slog.LevelError, "the outcome could not be recorded", t.rec.Key, err)
	}
	d.resolved = err == nil && !written.Unreported
	return err
}

// result makes the result of a run after its end: an answer, or an error, which has the answer beside it for callers of plain HTTP. Any other answer is read to
// its end and closed. A caller that has joined the run of a pass must first note in the record that it is told (untold).
func (d *ending) result() *result {
	t := d.task
	report := t.drive.Report()
	// The watch goes on if the call is told that nothing happened: it has to stay true.
	d.watched.endUnless(report.Standing == operation.None && !report.Answered)
	if report.Answered {
		return &result{answer: d.replies.answered(), unreported: report.Unreported, owed: d.owed, untold: t.given.Pass}
	}
	// A caller of plain HTTP may get an answer beside it.
	failed := d.error(&report)
	res := &result{err: failed, unreported: report.Unreported, owed: d.owed, untold: t.given.Pass}
	if plain, _ := t.call.PlainHTTP(); plain && d.replies.last.Answer != nil && report.MayShow {
		res.answer = d.replies.answered()
		res.answer.result.Effect = failed.Effect()
	} else {
		d.replies.last.Drain()
	}
	return res
}

// writeSmaller calls write, to write the record. While the record is too large for the journal, it calls write
// again: without the body of the record's answer, and then also without the header. It changes rec.Answer to a
// new value, not the old answer. As after an answer over MaxResponseBytes, the server is asked again then. It
// returns the last error of write.
func writeSmaller(ctx context.Context, c *Config, rec *persist.Record, write func() error) error {
	err := write()
	for errors.Is(err, persist.ErrTooLarge) && rec.Answer != nil && !(rec.Answer.BodyDropped && rec.Answer.Header == nil) {
		c.log(ctx, slog.LevelWarn, "an answer is not kept whole", rec.Key, err)
		smaller := *rec.Answer
		if smaller.BodyDropped {
			smaller.Header = nil
		}
		smaller.Body, smaller.BodyDropped = nil, true
		rec.Answer = &smaller
		err = write()
	}
	return err
}

// error makes the error of a run from the report of its end. The report says what is certain about the effect; the counts and the last error are the
// run's. If the call has waited for its limiter without the operation, it counts the attempts of all its runs.
func (d *ending) error(report *operation.Report) *Error {
	t := d.task
	about := subject{
		key: t.rec.Key, state: t.rec.State, standing: report.Standing, known: operation.Same,
		sent: t.drive.InDoubt() || t.rec.Sends+t.sends() > 0,
	}
	e := newError(t.name, about, d.replies.stopped(), sentinels(report.Why)...)
	if e.Said.verdict != operation.Final { // else the record says more than the run
		e.Outcome = t.known()
	}
	op := operation.OpOf(&t.rec, 0)
	// A hold for its caller ends once a call with the key goes on: the error says so.
	e.Said.goesOn = op.IsForCaller()
	e.Attempts, e.Sends, e.Last = t.drive.Spent().Attempts, t.given.Spent.Sends+t.sends(), d.replies.last.Err
	e.Answer = d.replies.answerForRecord(t.engine.now().Round(0))
	if e.Answer != nil {
		e.Answer.Header, e.Answer.Body = e.Answer.Header.Clone(), slices.Clone(e.Answer.Body) // a copy: the response may share this body
	}
	if e.NextAttempt = report.Due; report.AsRecorded {
		// By the record: another process may have put it off.
		e.NextAttempt = t.rec.NextAttempt
	}
	return e
}

// noteOwed notes that the written end has to be delivered to Config.OnResult (owed). written is the record as handed to the journal, earlier its OwedFrom
// before, err the journal's answer. After an error nothing is owed by this run. A pass delivers at once: own is the revision that only this process may deliver
// for now, zero if any may; a Do leaves its result to its caller for a while.
func (d *ending) noteOwed(w operation.Writing, written *persist.Record, earlier time.Time, err error) {
	t := d.task
	owedFrom := written.OwedFrom
	switch {
	case err != nil || w == operation.Forget:
		return
	case w == operation.LeaveOpen || w == operation.LeaveUnsent:
		d.owed, owedFrom = owedAt(&t.rec), t.rec.OwedFrom
	case written.Owed():
		d.owed = written.Revision + 1 // by the Finish
	}
	if d.owed == 0 || !t.given.Pass { // a Do has its grace: a look finds its result
		return
	}
	var own uint64
	if acts.IsReserved(owedFrom, earlier, t.engine.now()) {
		own = d.owed
	}
	t.engine.shared.results.note(t.rec.ID, own)
	t.engine.owes()
}

// noteUnowed counts an end or a hold without a result to deliver, though this Run has an OnResult: a client without OnResult began the operation. The
// logger is told of it later. After a failed write it does nothing.
func (d *ending) noteUnowed(w operation.Writing, written *persist.Record, err error) {
	t := d.task
	state := written.State
	if w == operation.LeaveOpen || w == operation.LeaveUnsent {
		state = t.rec.State
	}
	// Results: the client that began it asked for its result.
	if err == nil && w != operation.Forget && state != persist.StatePending && t.given.Pass && t.cfg.OnResult != nil && !t.rec.Results {
		t.engine.unowed.note(t.rec.Key)
	}
}

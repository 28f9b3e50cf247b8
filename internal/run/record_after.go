package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file handles a record after the last attempt of a run, and makes the result for callers.

// ending is a run after the end of its loop. It records the outcome and makes the result.
type ending struct{ *run }

// conclude does the steps of the drive after its last attempt. finish ends an operation with an answer. The error tells why such an end is
// not recorded, or not durable.
func (d ending) conclude(finish func(context.Context, persist.Record) error) (err error) {
	ctx := d.call.Values()
	for {
		switch d.drive.Step() {
		case operation.LookForPlace:
			keeps, err := d.places.IsKept(ctx, &d.rec)
			d.note(err)
			d.drive.PlaceFound(keeps, err == nil)
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

// note notes why a step failed, if it did.
func (d ending) note(err error) {
	if err != nil {
		d.failed = err
	}
}

// write does the step Write.
func (d ending) write(ctx context.Context, finish func(context.Context, persist.Record) error) error {
	w := operation.WriteNothing
	var written persist.Record
	var earlier time.Time // until then, another process may hand over an earlier state
	err := d.lastChange(ctx, &d.rec, func() (err error) {
		d.drive.Moved(d.op())
		now := d.now()
		earlier = d.rec.OwedFrom
		switch w = d.drive.Writing(); w {
		case operation.Forget:
			d.watch()
			return d.journal.Forget(ctx, d.rec)
		case operation.EndConfirmed:
			written, err = d.finish(ctx, now, finish)
		case operation.EndMismatched, operation.EndAbsent, operation.EndHappened:
			written, err = d.finish(ctx, now, d.journal.Finish)
		default:
			err = d.leaveUnfinished(now)
		}
		return err
	})
	switch w {
	case operation.Forget:
		if err != nil {
			d.cfg.log(ctx, slog.LevelError, "an operation without effect could not be forgotten", d.rec.Key, err)
		}
	case operation.LeaveOpen, operation.LeaveUnsent:
		d.logUnrecorded(ctx, err)
		d.wake()
	default:
		err = d.noteEnd(ctx, &written, err)
		if op := operation.OpOf(&written, 0); err == nil && op.IsContradicted() {
			d.witness.contradicted(ctx, &written, written.Evidence)
		}
	}
	// The error of LeaveOpen names the reason for the stop of the drive.
	if w != operation.LeaveOpen {
		d.note(err)
	}
	d.noteOwed(w, &written, earlier, err)
	d.noteUnowed(w, &written, err)
	d.drive.Written(err == nil, written.Finished)
	return err
}

// flush does the step Flush.
func (d ending) flush(ctx context.Context) error {
	err := d.journal.Flush(ctx)
	if err != nil && d.drive.Writing() != operation.WriteNothing {
		d.resolved = false
		d.cfg.log(ctx, slog.LevelError, "the outcome could not be recorded", d.rec.Key, err)
	}
	d.note(err)
	d.drive.Flushed(err == nil)
	return err
}

// finish writes the record as ended, and returns the written record.
func (d ending) finish(ctx context.Context, now time.Time, write func(context.Context, persist.Record) error) (persist.Record, error) {
	m := d.meanwhile()
	if d.rec.KeyOfOneCall() { // its caller, who alone can know the key, stays from now on
		m.Left, m.Broken = d.call.Recording(), !d.leases.Unbroken(d.rec.ID)
	}
	c := d.drive.Change(m, now)
	rec := d.changed(&c, now)
	rec.Finished = now.Round(0)
	rec.Unreported, rec.KeyTold, rec.Told, rec.Effect = c.Unreported, c.KeyTold, c.Told, c.Effect
	rec.ExtendKeeping(d.cfg.KeepAnswer, d.cfg.KeepKey, d.cfg.KeepText)
	err := d.cfg.writeSmaller(ctx, &rec, func() error { return write(ctx, withoutRequest(rec)) })
	return rec, err
}

// withoutRequest returns an ended record as it is written: without its request, if that is not to be kept. A sealed record, whose key is
// missing here, stays as it is.
func withoutRequest(rec persist.Record) persist.Record {
	if rec.Sealed() == nil {
		rec.DropRequest(rec.Finished)
	}
	return rec
}

// leaveUnfinished writes the record as pending or held.
func (d ending) leaveUnfinished(now time.Time) error {
	c := d.drive.Change(d.meanwhile(), now)
	rec := d.changed(&c, now)
	if c.Unmark {
		rec.MaybeSent, rec.FirstSent = false, time.Time{}
	}
	rec.NextAttempt, rec.SendBefore = c.NextAttempt, c.SendBefore
	if c.Hold != "" {
		rec.Note = d.holdNote()
	}
	switch c.Aside {
	case operation.AsideTaken:
		d.aside.Drop(rec.ID)
	case operation.AsideLeft:
		d.aside.Note(rec.ID, d.now(), d.cfg.Retry.MaxDelay, d.cfg.Retry.MaxPause)
	}
	return d.update(rec)
}

// meanwhile returns the events during the drive.
func (d ending) meanwhile() operation.Meanwhile {
	_, shown := d.call.PlainHTTP()
	return operation.Meanwhile{GivenUp: d.stopCause() != nil, Shown: shown, Taken: d.handed.isTaken(), Delivers: d.delivers(), LatestFirst: d.latestFirstSend(&d.rec)}
}

// changed returns the record with a change, and without a lease.
func (d ending) changed(c *operation.Change, now time.Time) persist.Record {
	rec := d.rec
	rec.State, rec.HoldReason, rec.Attempts, rec.Sends = c.State, c.Hold, c.Attempts, c.Sends
	rec.NextAttempt, rec.OwedFrom = time.Time{}, c.OwedFrom
	d.holder.unstamp(&rec)
	switch c.Answer {
	case operation.KeepNone:
		rec.Answer = nil
	case operation.KeepAnswer:
		rec.Answer = d.answerForRecord(now.Round(0))
	case operation.KeepFlawed:
		rec.Answer = d.flawedForRecord()
	}
	return rec
}

// noteEnd notes the result of the write at the operation's end, and logs its error. It returns err; to ErrStale it adds the record's
// present state.
func (d ending) noteEnd(ctx context.Context, written *persist.Record, err error) error {
	if errors.Is(err, persist.ErrStale) {
		if now, getErr := d.journal.Get(ctx, d.rec.ID); getErr == nil {
			err = fmt.Errorf("%w: it is %v", err, now.State)
		}
	}
	if err != nil {
		d.cfg.log(ctx, slog.LevelError, "the outcome could not be recorded", d.rec.Key, err)
	}
	d.resolved = err == nil && !written.Unreported
	return err
}

// result makes the result of a drive after its end.
func (d ending) result() *result {
	report := d.drive.Report()
	d.endWatch(report.Standing == operation.None && !report.Answered)
	if report.Answered {
		return &result{answer: d.answered(), unreported: report.Unreported, owed: d.owed, untold: d.given.Pass}
	}
	failed := d.error(&report)
	res := &result{err: failed, unreported: report.Unreported, owed: d.owed, untold: d.given.Pass}
	if plain, _ := d.call.PlainHTTP(); plain && d.last.Answer != nil && report.MayShow {
		res.answer = d.answered()
		res.answer.result.Effect = failed.Effect()
	} else {
		d.last.Drain()
	}
	return res
}

// leave is the last act of a run. over is false if a function of the Config panicked, or ended the goroutine: then nobody gets the run's
// answer. From here on its operation counts for callers without a key, unless it is resolved.
func (r *run) leave(over bool) {
	if !over {
		e := r.event(EventLeft)
		e.Err = errCrashed
		r.ends(e)
		r.last.Drain()
		if r.turn != nil {
			r.turn.stop(errCrashed)
		}
	}
	if !r.resolved {
		r.call.SetInDoubt(true)
		r.alike.Doubted(&r.rec)
	}
}

// holdNote names the holder of the operation and the reason of the hold, for anyone settling it.
func (d ending) holdNote() string {
	cause := cmp.Or(d.last.Err, d.stopped())
	switch {
	case cause == nil && d.last.Answer != nil:
		cause = fmt.Errorf("answered %d", d.last.Answer.Head.StatusCode)
	case cause == nil:
		proof := d.drive.Proof()
		cause = cmp.Or(troubles[proof.Trouble()], errors.New("nothing more may be sent"))
	}
	note := fmt.Sprintf("held by the client %.8s: %v", d.owner, cause)
	return strings.ToValidUTF8(note[:min(len(note), persist.NoteBytesMax)], "")
}

// lastChange is writer.change for the last change of a run: after it, the run has no lease, even if the write failed. The record may differ by an
// event's evidence, too: the drive heeds it.
func (d ending) lastChange(ctx context.Context, rec *persist.Record, write func() error) error {
	defer d.leases.End(rec.ID)
	return d.writer.rewrite(ctx, rec, true, write)
}

// update writes an unfinished record. The run's own counts are written, but not kept in d.rec: the drive adds them.
func (d ending) update(rec persist.Record) error {
	var updated persist.Record
	err := d.cfg.writeSmaller(d.call.Values(), &rec, func() (err error) {
		updated, err = d.journal.Update(d.call.Values(), rec)
		return err
	})
	if err == nil {
		updated.Attempts, updated.Sends = d.rec.Attempts, d.rec.Sends
		d.rec = updated
	}
	return err
}

// logUnrecorded logs an error of the write of an unfinished operation.
func (d ending) logUnrecorded(ctx context.Context, err error) {
	if err != nil {
		d.cfg.log(ctx, slog.LevelError, "the state could not be recorded", d.rec.Key, err)
	}
}

// answered returns the last answer, as callers get it.
func (d ending) answered() *answer {
	proof, source := d.drive.Proof(), SourceServer
	if proof.Replayed {
		source = SourceReplay
	}
	a := d.last.Answer
	how := d.resultWith(d.known(), source)
	how.AlreadyDone = proof.AlreadyDone
	how.Effect = d.drive.Standing().Effect()
	answered := &answer{
		head: a.Head, status: a.Head.StatusCode, header: a.Head.Header, body: a.Body, partial: !a.Whole, rest: a.Rest, result: how,
	}
	if a.Hopped {
		answered.from = a.From
	}
	return answered
}

// answerForRecord returns the last answer as it is recorded and as errors hold it, with the time now; nil if there is
// none. It shares header lines and body with the answer.
func (d ending) answerForRecord(now time.Time) *persist.Answer {
	a := d.last.Answer
	if a == nil {
		return nil
	}
	proof := d.drive.Proof()
	recorded := &persist.Answer{
		Status: a.Head.StatusCode, Header: a.Head.Header, Body: a.Body, BodyDropped: !a.Whole,
		Dropped: a.Dropped, Replayed: proof.Replayed, AlreadyDone: proof.AlreadyDone, Stored: d.drive.Stored(), At: now,
	}
	d.keepAnswer(recorded)
	return recorded
}

// resultWith returns the Result of the operation, with the counts of its whole life.
func (r *run) resultWith(outcome Outcome, source Source) Result {
	return Result{
		Key: r.rec.Key, Outcome: outcome, Source: source,
		Attempts: r.rec.Attempts + r.drive.Attempts(), Sends: r.rec.Sends + r.sends(), FirstSent: r.rec.FirstSent,
	}
}

// writeSmaller calls write, to write the record. While the record is too large for the journal, it calls write
// again: without the body of the record's answer, and then also without the header. It changes rec.Answer to a new
// value, not the old answer. As after an answer over MaxResponseBytes, the server is asked again then. It returns
// the last error of write.
func (c *Config) writeSmaller(ctx context.Context, rec *persist.Record, write func() error) error {
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

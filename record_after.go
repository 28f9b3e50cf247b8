package oncehttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/pauses"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds what happens to a record after the last attempt of a run, and the result that callers get.

// ending is a run whose loop is over. It records the outcome and makes the result.
type ending struct{ *run }

// writeOutcome writes what is known of the operation into the journal. It is called once, when the loop is over.
func (d ending) writeOutcome() *result {
	switch v := &d.verdict; {
	case d.askedAgain:
		return d.repeated()
	case v.final:
		return d.confirm()
	case v.outcome == OutcomeMismatch && v.hold == "":
		return d.mismatch()
	case (v.outcome == OutcomeNotSent || v.outcome == OutcomeRefused) && !d.history.InDoubt():
		return d.withdraw()
	}
	return d.leaveOpen()
}

// repeated makes the result where a confirmed operation was asked again for its answer. The record does not change. A refusal is flushed
// before an error says that it is final: the one that was handed out may not be durable yet.
func (d ending) repeated() *result {
	if d.verdict.final && sameEnd(d.rec.Answer.Status, d.last.Answer.Head.StatusCode) {
		return &result{answer: d.answered(), unreported: d.rec.Unreported}
	}
	d.last.Drain()
	about, err := d.durable(d.call.Values(), &d.rec, operation.Same)
	if err != nil {
		d.stop = err
	}
	return &result{err: d.failed(about.standing, ErrAnswerGone), unreported: d.rec.Unreported}
}

// sameEnd reports whether two final answers of these statuses can be the same answer, given twice: a repeat of a success may
// have another success's status.
func sameEnd(a, b int) bool { return a == b || a < 300 && b < 300 }

// confirm records the answer. If that fails the answer is returned all the same: the record stays pending, and the
// same key finds the answer again. Except for a 4xx that the server does not store: it is not returned, since the next
// answer may differ.
func (d ending) confirm() *result {
	err := d.finish(persist.StateConfirmed, d.journal.Finish)
	if err != nil && d.mayChange() {
		d.stop, d.verdict.outcome, d.verdict.final = err, OutcomeUnknown, false
		d.last.Drain()
		return &result{err: d.failed(operation.Unclear)}
	}
	d.engine.answered(&d.rec, err)
	return &result{answer: d.answered(), unreported: d.unreported(persist.StateConfirmed)}
}

// mismatch ends an operation whose key the server keeps for another request; record calls it only if no attempt was in
// doubt. If the end is not durable, the outcome is unknown.
func (d ending) mismatch() *result {
	if err := d.finish(persist.StateMismatched, d.journal.Finish); err != nil {
		d.stop = err
		return d.fail(operation.Unclear, ErrKeyReused)
	}
	return d.fail(operation.Ended, ErrKeyReused)
}

// finish moves the record to a final state with write, and flushes it where mustFlush says so. If it returns an error,
// which it has logged, the record is unchanged or its final state is not durable.
func (d ending) finish(state persist.State, write func(context.Context, persist.Record) error) error {
	ctx := d.call.Values()
	var rec persist.Record
	err := d.change(ctx, &d.rec, func() error {
		rec = d.counted()
		rec.State, rec.HoldReason = state, ""
		rec.Finished = d.now().Round(0)
		rec.Answer = d.answerForRecord(rec.Finished)
		switch state {
		case persist.StateConfirmed:
			rec.Effect = rec.Answer.Effect()
		case persist.StateSettled:
			rec.Effect, rec.Answer = persist.EffectAbsent, nil
		}
		rec.Unreported, rec.KeyTold = d.unreported(state), rec.Generated && (rec.Business || d.keyTold())
		rec.ExtendKeeping(d.cfg.KeepAnswer, d.cfg.KeepKey)
		return d.cfg.writeSmaller(ctx, &rec, func() error { return write(ctx, rec) })
	})
	if err == nil && d.mustFlush(state, rec.Finished) {
		err = d.journal.Flush(ctx)
	}
	if errors.Is(err, persist.ErrStale) {
		if now, getErr := d.journal.Get(ctx, rec.ID); getErr == nil {
			err = fmt.Errorf("%w: it is %v", err, now.State)
		}
	}
	if err != nil {
		d.cfg.log(ctx, slog.LevelError, "the outcome could not be recorded", rec.Key, err)
	}
	d.resolved = err == nil && !rec.Unreported
	return err
}

// leave is what a run does last. It is not over if a function of the Config panicked, or ended the goroutine: then nobody gets its
// answer. From here on its operation counts for callers without a key, unless it is resolved.
func (r *run) leave(over bool) {
	if !over {
		r.last.Drain()
	}
	if !r.resolved {
		r.call.SetInDoubt(true)
		r.doubted(&r.rec)
	}
}

// mustFlush reports whether the final record must be flushed now: it is not Confirmed, or the same key does not find the
// answer again, or not for long, since the window is nearly over or the clock went back. Other ends may be lost in a crash.
func (d ending) mustFlush(state persist.State, finished time.Time) bool {
	age, window := finished.Sub(d.rec.FirstSent), d.window()
	return state != persist.StateConfirmed || !d.stored() || age < 0 || age > window-window/10
}

// stored is persist.Answer.Stored of the last answer. It decides whether the server may be asked for the answer again,
// whether the record is flushed, and whether the answer may be given before the record.
func (d ending) stored() bool { return d.verdict.stored && d.rec.Protected }

// mayChange reports whether the answer is a final 4xx that the server does not store, so that it might answer
// otherwise if it were asked again.
func (d ending) mayChange() bool {
	status := d.last.Answer.Head.StatusCode
	return status >= 400 && status < 500 && !d.stored()
}

// unreported reports whether the record that ends in this state must be marked Unreported: a pass ends it, so that no
// caller learns of it, and a caller without a key might send the same request again.
func (d ending) unreported(state persist.State) bool {
	return d.fromResume && d.rec.Generated && state == persist.StateConfirmed
}

// keyTold reports whether an error may have told the operation's key to a caller: the call that made it does not record the end,
// or its caller has left before, or another process could take the operation for one that was left.
func (d ending) keyTold() bool {
	return d.call.Recording() || !d.created || !d.leases.unbroken(d.rec.ID)
}

// leaveOpen leaves an operation unfinished: pending, or held where another send cannot help or might do harm.
func (d ending) leaveOpen() *result {
	var hold persist.HoldReason
	logUnrecorded(d, d.change(d.call.Values(), &d.rec, func() error {
		rec := d.counted()
		rec.State, rec.HoldReason, rec.Answer = persist.StatePending, "", nil
		if !d.history.InDoubt() && d.verdict.outcome == OutcomeExpired { // nothing was ever sent, and now it may not be: take back the mark
			rec.MaybeSent, rec.FirstSent = false, time.Time{}
		}
		if hold = d.holdReason(); hold != "" {
			rec.State, rec.HoldReason = persist.StateHeld, hold
			rec.Note = d.holdNote()
			rec.Answer = d.answerForRecord(d.now().Round(0)) // for whoever has to settle it
		} else {
			rec.NextAttempt, rec.Answer = d.notBefore(&rec), d.flawedForRecord()
			d.leaveAside()
		}
		return d.update(rec)
	}))
	d.wake()
	if hold == "" {
		return d.fail(operation.Open, d.verdict.why)
	}
	return d.fail(operation.Open, ErrHeld, d.verdict.why)
}

// holdReason returns why nothing more may be sent; empty if more may. A caller that sees plain HTTP may act on the answer
// that it got, so that Resume must not send after it. An enqueued operation is sent all the same, as Enqueue promised.
func (d ending) holdReason() persist.HoldReason {
	if _, shown := d.call.PlainHTTP(); d.verdict.hold == "" && shown && !d.rec.Enqueued {
		return persist.HoldCaller
	}
	return d.verdict.hold
}

// holdNote says who holds the operation and why, for whoever has to settle it.
func (d ending) holdNote() string {
	cause := cmp.Or(d.last.Err, d.stop)
	switch {
	case cause == nil && d.last.Answer != nil:
		cause = fmt.Errorf("answered %d", d.last.Answer.Head.StatusCode)
	case cause == nil:
		cause = cmp.Or(d.verdict.why, errors.New("nothing more may be sent"))
	}
	note := fmt.Sprintf("held by the client %.8s: %v", d.owner, cause)
	return strings.ToValidUTF8(note[:min(len(note), persist.NoteBytesMax)], "")
}

// change calls write, which changes the record in the journal. If write returns ErrStale only because an Enqueue marked
// the record meanwhile, or a claim of this very client took it while it was run, rec becomes what it is now and write is
// called once more.
func (e *engine) change(ctx context.Context, rec *persist.Record, write func() error) error {
	err := e.rewrite(ctx, rec, write)
	if err == nil {
		e.leases.changed(rec)
	}
	return err
}

// change is as that of engine, for the last change of a run: that has no lease any more, also where the write failed.
func (d ending) change(ctx context.Context, rec *persist.Record, write func() error) error {
	defer d.leases.end(rec.ID)
	return d.rewrite(ctx, rec, write)
}

// rewrite is change, without a word to the leases.
func (e *engine) rewrite(ctx context.Context, rec *persist.Record, write func() error) error {
	e.leases.latest(rec)
	err := write()
	if errors.Is(err, persist.ErrStale) {
		now, getErr := e.journal.Get(ctx, rec.ID)
		if getErr != nil || !e.onlyMarkedOrClaimed(rec, &now) {
			return err
		}
		rec.Revision, rec.Drives, rec.Enqueued, rec.SendBefore = now.Revision, now.Drives, now.Enqueued, now.SendBefore
		err = write()
	}
	if err != nil && !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrNotFound) {
		e.leases.unwritten()
	}
	return err
}

// onlyMarkedOrClaimed reports whether an Enqueue's mark, one claim of this client, or both are all that happened to a record
// between before and now. A claim by another process leaves another owner, and what ends its lease takes a revision more.
func (e *engine) onlyMarkedOrClaimed(before, now *persist.Record) bool {
	known := before.Revision
	if now.Enqueued && !before.Enqueued {
		known++
	}
	if now.Revision == known+1 && now.LeaseOwner == e.owner {
		known++
	}
	return now.Revision == known && known > before.Revision && now.Seq == before.Seq &&
		now.State == before.State && now.HoldReason == before.HoldReason && now.LeaseOwner == before.LeaseOwner &&
		now.MaybeSent == before.MaybeSent && now.Token == before.Token && now.Attempts == before.Attempts && now.Sends == before.Sends
}

// counted returns the record with this run's attempts and sends added, without a lease and without NextAttempt. Attempts that reached
// no server are not counted: it may be this client alone that reaches none.
func (d ending) counted() persist.Record {
	rec := d.rec
	if !d.isLocal() {
		rec.Attempts += d.attempts
	}
	rec.Sends += d.sends
	rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
	rec.NextAttempt = time.Time{}
	return rec
}

// remember adds an attempt to the record's history in memory; the next write of the record stores it. began is by this
// process's own clock.
func (r *run) remember(began time.Time, sent wire.Result) {
	took := time.Since(began)
	attempt := persist.Attempt{At: r.now().Add(-took).Round(0), Took: took, Sent: !sent.Unsent}
	if sent.Answer != nil {
		attempt.Status = sent.Answer.Head.StatusCode
	}
	if sent.Err != nil {
		attempt.Error = oneLine(sent.Err)
	}
	r.rec.AddAttempt(attempt)
}

// update writes an unfinished record. The run's own counts are written, but not kept in d.rec: counted adds them.
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

func logUnrecorded(d ending, err error) {
	if err != nil {
		d.cfg.log(d.call.Values(), slog.LevelError, "the state could not be recorded", d.rec.Key, err)
	}
}

// isLocal reports whether the run has sent nothing: it has reached no server, its limiter, its Authorize or its time limits did not let it.
// That is no fact about the operation: another client may send it. A clock that was set back is the journal's where it has one.
func (d ending) isLocal() bool { return !d.reached && d.sends == 0 && d.stop != errClockBack }

// leaveAside lets this client's passes leave an operation alone that it could not send, and whose origin has no pause.
func (d ending) leaveAside() {
	switch {
	case d.sends > 0:
		d.aside.Drop(d.rec.ID)
	case d.fromResume && d.isLocal() && !d.unreached && d.stopCause() == nil:
		d.aside.Note(d.rec.ID, d.now(), d.cfg.Retry.MaxDelay, d.cfg.Retry.MaxPause)
	}
}

// notBefore returns the earliest time for Resume, for the record as it will be written. If a long Retry-After or a clock that
// was set back stopped the run, or the call was given up or is draining, that is d.next, or the record's first pause from now
// if d.next is zero. Otherwise it is the later one of d.next and a pause that grows with the failed attempts. An operation that
// reached no server is due as before; not at this very moment, so that a pass does not meet it again. It is never later than
// the moment at which the time for sends is over: the next pass then holds the record, and tells so.
func (d ending) notBefore(rec *persist.Record) time.Time {
	now, until := d.now().Round(0), d.sendableUntil(rec)
	at := now.Add(d.pause(now, until))
	if d.isLocal() {
		at = later(d.rec.NextAttempt, now.Add(1))
	} else if d.stop == errRetryAfter || d.stop == errOriginDown || d.stop == errClockBack || d.stopCause() != nil {
		at = cmp.Or(d.next, now.Add(cmp.Or(d.rec.Pauses, usualPauses).First))
	} else if d.next.After(at) {
		at = d.next
	}
	if over := until.Add(time.Millisecond); !until.IsZero() && at.After(over) {
		at = over
	}
	return at.Round(0)
}

// sendableUntil returns the last moment at which a send of the record may start; zero if it has none.
func (d ending) sendableUntil(rec *persist.Record) time.Time {
	if rec.MaybeSent {
		return rec.FirstSent.Add(d.window() - operation.UsualMargin(d.window()))
	}
	return rec.SendBefore
}

// pause returns how long to wait after a failed run. It is at most half of the time that is left for sends, so that
// the last hours are used.
func (d ending) pause(now, until time.Time) time.Duration {
	frozen := cmp.Or(d.rec.Pauses, usualPauses)
	runs := (d.rec.Attempts + d.attempts + frozen.Attempts - 1) / frozen.Attempts
	pause := pauses.After(max(runs, 1), frozen.First, frozen.Most)
	if left := until.Sub(now); left > 0 && !until.IsZero() {
		pause = max(min(pause, left/2), min(frozen.First, defaultMinDelay))
	}
	return pause
}

// answered returns the last answer, as callers get it.
func (d ending) answered() *answer {
	source := SourceServer
	if d.verdict.replayed {
		source = SourceReplay
	}
	a := d.last.Answer
	how := d.resultWith(d.known(), source)
	how.AlreadyDone = d.verdict.alreadyDone
	if d.verdict.final {
		how.Effect = operation.Answered(a.Head.StatusCode, how.AlreadyDone).Effect()
	}
	return &answer{
		head: a.Head, status: a.Head.StatusCode, header: a.Head.Header, body: a.Body, partial: !a.Whole, rest: a.Rest, result: how,
	}
}

// answerForRecord returns the last answer as it is recorded and as errors hold it, with the time now; nil if there is
// none. It shares header lines and body with the answer.
func (d ending) answerForRecord(now time.Time) *persist.Answer {
	a := d.last.Answer
	if a == nil {
		return nil
	}
	recorded := &persist.Answer{
		Status: a.Head.StatusCode, Header: a.Head.Header, Body: a.Body, BodyDropped: !a.Whole,
		Replayed: d.verdict.replayed, AlreadyDone: d.verdict.alreadyDone, Stored: d.stored(), At: now,
	}
	d.keepAnswer(recorded)
	return recorded
}

// resultWith returns the Result of the operation, with the counts of its whole life.
func (r *run) resultWith(outcome Outcome, source Source) Result {
	return Result{
		Key: Key(r.rec.Key), Outcome: outcome, Source: source,
		Attempts: r.rec.Attempts + r.attempts, Sends: r.rec.Sends + r.sends, FirstSent: r.rec.FirstSent,
	}
}

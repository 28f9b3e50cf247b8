package oncehttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/pauses"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds what happens to a record after the last attempt of a run.

// ending records what a run came to, and makes its result.
type ending struct{ *run }

// record writes what is known of the operation into the journal. It is called once, when the loop is over.
func (d ending) record() *result {
	switch v := &d.verdict; {
	case d.askedAgain:
		return d.repeated()
	case v.outcome == OutcomeConfirmed:
		return d.confirm()
	case v.outcome == OutcomeMismatch && v.hold == "":
		return d.mismatch()
	case (v.outcome == OutcomeNotSent || v.outcome == OutcomeRefused) && !d.history.InDoubt():
		return d.withdraw()
	}
	return d.keep()
}

// repeated is the result of asking a confirmed operation again. Nothing that the server says changes the record.
func (d ending) repeated() *result {
	if d.verdict.outcome == OutcomeConfirmed {
		return &result{answer: d.answered(), unreported: d.rec.Unreported}
	}
	d.last.Drain()
	return &result{err: d.failed(ErrOutcomeUnknown, ErrAnswerGone), unreported: d.rec.Unreported}
}

// confirm records the answer. If that fails the answer is returned all the same: the record stays pending, and the
// same key finds the answer again. Only a 4xx that the server does not store might be another then, and is no answer.
func (d ending) confirm() *result {
	if err := d.finish(persist.StateConfirmed); err != nil && d.mayChange() {
		d.stop, d.verdict.outcome = err, OutcomeUnknown
		d.last.Drain()
		return &result{err: d.failed(ErrOutcomeUnknown)}
	}
	return &result{answer: d.answered(), unreported: d.unreported(persist.StateConfirmed)}
}

// mismatch records that the server keeps another request under this key. Nothing of this one was ever in doubt.
func (d ending) mismatch() *result {
	if err := d.finish(persist.StateMismatched); err != nil {
		d.stop = err
		return d.fail(ErrOutcomeUnknown, ErrKeyReused)
	}
	return d.fail(ErrNoEffect, ErrKeyReused)
}

// finish moves the record to a final state. An error was logged; the record is then as it was, or its end may be
// lost in a crash.
func (d ending) finish(state persist.State) error {
	ctx := d.call.Values()
	var rec persist.Record
	err := change(ctx, d.journal, &d.rec, func() error {
		rec = d.counted()
		rec.State, rec.HoldReason = state, ""
		rec.Finished = d.now().Round(0)
		rec.Answer = d.kept(rec.Finished)
		rec.Unreported = d.unreported(state)
		return d.journal.Finish(ctx, rec)
	})
	if err == nil && d.mustFlush(&rec) {
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
	return err
}

// mustFlush reports whether an end may not wait for the next commit: one that proves that nothing happened, a 4xx that
// the server might not give again, and what could not be asked for again, because the key's window is nearly over or
// the clock cannot be trusted.
func (d ending) mustFlush(rec *persist.Record) bool {
	age := rec.Finished.Sub(rec.FirstSent)
	return rec.State != persist.StateConfirmed || age < 0 || age > rec.Window-rec.Window/10 || d.mayChange()
}

// mayChange reports whether the answer is a final 4xx that the server does not store, so that it might answer
// otherwise if it were asked again.
func (d ending) mayChange() bool {
	status := d.last.Answer.Head.StatusCode
	return status >= 400 && status < 500 && !d.verdict.stored
}

// unreported reports whether no caller is told how an operation ends that now ends in this state: a caller without a
// key might make it again.
func (d ending) unreported(state persist.State) bool {
	return d.ofPass && d.rec.Generated && state == persist.StateConfirmed
}

// withdraw takes back an operation that provably had no effect: one that this call began is forgotten, unless it was
// enqueued meanwhile; another stays pending, as never sent.
func (d ending) withdraw() *result {
	why := ErrRefused
	if d.verdict.outcome == OutcomeNotSent {
		why = ErrNotSent
	}
	ctx, forgotten := d.call.Values(), false
	err := change(ctx, d.journal, &d.rec, func() error {
		if forgotten = d.created && !d.rec.Enqueued; forgotten {
			return d.journal.Forget(ctx, d.rec)
		}
		rec := d.counted()
		rec.MaybeSent, rec.FirstSent = false, time.Time{}
		rec.NextAttempt = d.notBefore()
		return d.update(rec)
	})
	switch {
	case !forgotten:
		logUnrecorded(d, err)
		d.wake()
	case err == nil:
		return d.fail(ErrNoEffect, why)
	default:
		d.cfg.log(ctx, slog.LevelError, "an operation without effect could not be forgotten", d.rec.Key, err)
		d.stop = err
	}
	return d.fail(ErrOutcomeUnknown, why)
}

// keep leaves an operation in doubt: pending, or held where another send cannot help or might hurt.
func (d ending) keep() *result {
	var hold persist.HoldReason
	logUnrecorded(d, change(d.call.Values(), d.journal, &d.rec, func() error {
		rec := d.counted()
		rec.State, rec.HoldReason, rec.Answer = persist.StatePending, "", nil
		if !d.history.InDoubt() && d.verdict.outcome == OutcomeExpired { // proved, though it came too late
			rec.MaybeSent, rec.FirstSent = false, time.Time{}
		}
		if hold = d.holdReason(); hold != "" {
			rec.State, rec.HoldReason = persist.StateHeld, hold
			rec.Answer = d.kept(d.now().Round(0)) // for whoever has to settle it
		} else {
			rec.NextAttempt = d.notBefore()
		}
		return d.update(rec)
	}))
	d.wake()
	is := []error{ErrOutcomeUnknown}
	if hold != "" {
		is = append(is, ErrHeld)
	}
	if d.verdict.why != nil {
		is = append(is, d.verdict.why)
	}
	return d.fail(is...)
}

// holdReason is why nothing more may be sent; empty if it may. A caller that sees plain HTTP may act on the answer
// that it was shown; what was enqueued is sent all the same, as that was promised.
func (d ending) holdReason() persist.HoldReason {
	if _, shown := d.call.PlainHTTP(); d.verdict.hold == "" && shown && !d.rec.Enqueued {
		return persist.HoldCaller
	}
	return d.verdict.hold
}

// change makes one change of the record in the journal. Where that meets ErrStale only because an Enqueue marked the
// record meanwhile, rec gets the mark and the change is made again.
func change(ctx context.Context, journal persist.Journal, rec *persist.Record, make func() error) error {
	err := make()
	if !errors.Is(err, persist.ErrStale) {
		return err
	}
	now, getErr := journal.Get(ctx, rec.ID)
	if getErr != nil || !onlyMarked(rec, &now) {
		return err
	}
	rec.Revision, rec.Enqueued, rec.SendBefore = now.Revision, now.Enqueued, now.SendBefore
	return make()
}

// onlyMarked reports whether all that happened to a record is that an Enqueue marked it.
func onlyMarked(before, now *persist.Record) bool {
	return now.Enqueued && !before.Enqueued && now.Revision == before.Revision+1 && now.Seq == before.Seq &&
		now.State == before.State && now.HoldReason == before.HoldReason && now.LeaseOwner == before.LeaseOwner
}

// counted is the record with this run's attempts, and without a lease.
func (d ending) counted() persist.Record {
	rec := d.rec
	rec.Attempts += d.attempts
	rec.Sends += d.sends
	rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
	rec.NextAttempt = time.Time{}
	return rec
}

// remember adds an attempt to the record's history, which is written when the record is.
func (r *run) remember(began time.Time, sent wire.Result) {
	now := r.now()
	attempt := persist.Attempt{At: began.Round(0), Took: now.Sub(began), Sent: !sent.Unsent}
	if sent.Answer != nil {
		attempt.Status = sent.Answer.Head.StatusCode
	}
	if sent.Err != nil {
		attempt.Error = oneLine(sent.Err)
	}
	r.rec.AddAttempt(attempt)
}

// update writes an unfinished record. The run's own counts stay out of d.rec, as they are added when they are needed.
func (d ending) update(rec persist.Record) error {
	updated, err := d.journal.Update(d.call.Values(), rec)
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

// notBefore is when Resume may go on: when the server said, or when the origin is tried again; else after a pause that
// grows with the attempts that were in vain, unless it was not the server that ended this run.
func (d ending) notBefore() time.Time {
	now := d.now().Round(0)
	if d.stop == errRetryAfter || d.stop == errOriginDown || d.stop == errClockBack || d.ended() != nil {
		return cmp.Or(d.next, now.Add(d.cfg.Retry.MaxDelay)).Round(0)
	}
	at := now.Add(d.pause(now))
	if d.next.After(at) {
		at = d.next.Round(0)
	}
	return at
}

// pause is how long an operation rests that was tried in vain: half of what is left of its time at most, so that its
// last hours are used.
func (d ending) pause(now time.Time) time.Duration {
	policy := &d.cfg.Retry
	runs := (d.rec.Attempts + d.attempts + policy.MaxAttempts - 1) / policy.MaxAttempts
	pause := pauses.After(max(runs, 1), policy.MaxDelay, policy.MaxPause)
	until := d.rec.SendBefore
	if d.rec.MaybeSent {
		until = d.rec.FirstSent.Add(d.rec.Window - d.cfg.margin(d.rec.Window))
	}
	if left := until.Sub(now); left > 0 && !until.IsZero() {
		pause = max(min(pause, left/2), policy.MinDelay)
	}
	return pause
}

// fail is a result with an error, and with the answer for callers that see plain HTTP.
func (d ending) fail(is ...error) *result {
	res := &result{err: d.failed(is...)}
	if plain, _ := d.call.PlainHTTP(); plain && d.last.Answer != nil && (is[0] == ErrNoEffect || d.mayShow()) {
		res.answer = d.answered()
	} else {
		d.last.Drain()
	}
	return res
}

// mayShow reports whether a caller that sees plain HTTP may get the last answer as its response although the outcome is
// unknown. After an earlier attempt that may have taken effect, of which that caller saw nothing, an answer that says or
// suggests that nothing happened must not be the only one that it sees. 409 and 5xx claim nothing.
func (d ending) mayShow() bool {
	status := d.last.Answer.Head.StatusCode
	return !d.doubtBefore || status == http.StatusConflict || status >= 500
}

// failed is the error of this run.
func (d ending) failed(is ...error) *Error {
	e := &Error{
		Op: d.name, Key: Key(d.rec.Key), Outcome: d.verdict.outcome, State: d.rec.State, Attempts: d.attempts, Sends: d.sends,
		Cause: d.stop, Last: d.last.Err, Answer: d.kept(d.now().Round(0)), is: is,
	}
	if e.Answer != nil {
		e.Answer.Header, e.Answer.Body = e.Answer.Header.Clone(), slices.Clone(e.Answer.Body) // beside whoever gets the answer as a response
	}
	switch {
	case d.verdict.hold != "":
	case is[0] == ErrOutcomeUnknown:
		e.NextAttempt = d.rec.NextAttempt
	case d.last.Answer != nil: // nothing is left to go on, but the server said when
		e.NextAttempt = d.next
	}
	return e
}

// answered is the last answer, as callers get it.
func (d ending) answered() *answer {
	source := SourceServer
	if d.verdict.replayed {
		source = SourceReplay
	}
	how := d.resultWith(d.verdict.outcome, source)
	how.AlreadyDone = d.verdict.alreadyDone
	a := d.last.Answer
	return &answer{
		head: a.Head, status: a.Head.StatusCode, header: a.Head.Header, body: a.Body, partial: !a.Whole, rest: a.Rest, result: how,
	}
}

// kept is the last answer as it is recorded and reported, at now; nil if there is none.
func (d ending) kept(now time.Time) *persist.Answer {
	a := d.last.Answer
	if a == nil {
		return nil
	}
	kept := &persist.Answer{
		Status: a.Head.StatusCode, Header: a.Head.Header, Body: a.Body, BodyDropped: !a.Whole,
		Replayed: d.verdict.replayed, AlreadyDone: d.verdict.alreadyDone, At: now,
	}
	d.cfg.keepAnswer(kept)
	return kept
}

// resultWith is how the operation came about, over its whole life.
func (r *run) resultWith(outcome Outcome, source Source) Result {
	return Result{
		Key: Key(r.rec.Key), Outcome: outcome, Source: source,
		Attempts: r.rec.Attempts + r.attempts, Sends: r.rec.Sends + r.sends, FirstSent: r.rec.FirstSent,
	}
}

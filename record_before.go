package oncehttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds what happens to a record before the first send of a call: how it begins, what an existing record
// means, and whether a send may still happen.

// intent is the record of an operation that is about to be sent.
func (e *engine) intent(op *preparedRequest) persist.Record {
	rec, now := *op.rec, e.now().Round(0)
	rec.Created = now
	if rec.MaybeSent, rec.FirstSent = true, e.firstSent(); rec.ServerToken { // it is not sent before it has its token
		rec.MaybeSent, rec.FirstSent = false, time.Time{}
		rec.SendBefore = now.Add(rec.Window - e.cfg.margin(rec.Window)) // as late as any other operation's last send
	}
	e.leases.stamp(&rec)
	return rec
}

// firstSent stamps a first send that follows.
func (e *engine) firstSent() time.Time { return e.clock.earliest().Round(0) }

// leasedElsewhere reports whether another process has the record. By the earliest time that it can be: that process takes its lease
// as over at the latest time that it can be, so that never both act on the operation.
func (e *engine) leasedElsewhere(rec *persist.Record) bool {
	return rec.Leased(e.owner, e.clock.earliest())
}

// giveBack gives up the lease of a claimed record that this client does not run, so that another can, at a time at
// which it is due again; zero: as before. If a call changed the record since, this does nothing.
func (e *engine) giveBack(ctx context.Context, rec persist.Record, again time.Time) {
	e.logUnreleased(ctx, &rec, e.release(ctx, rec, again))
}

// release is giveBack, and returns the journal's error.
func (e *engine) release(ctx context.Context, rec persist.Record, again time.Time) error {
	if rec.LeaseOwner != e.owner || rec.State.Final() {
		return nil
	}
	if again = again.Round(0); again.After(rec.NextAttempt) {
		rec.NextAttempt = again
	}
	rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
	_, err := e.journal.Update(context.WithoutCancel(ctx), rec)
	return err
}

// logUnreleased logs an error of release, unless another has changed or ended the record since.
func (e *engine) logUnreleased(ctx context.Context, rec *persist.Record, err error) {
	if err != nil && !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrNotFound) {
		e.cfg.log(ctx, slog.LevelError, "a lease could not be released", rec.Key, err)
	}
}

// missing returns an error if this client may not send the record: it is pinned to something else, or needs credentials that
// are not journaled and there is no Config.Authorize to add them.
func (e *engine) missing(rec *persist.Record) error {
	if err := e.cfg.pinned(rec); err != nil {
		return err
	}
	if len(rec.Omitted) == 0 || e.cfg.Authorize != nil {
		return nil
	}
	return fmt.Errorf("it has credentials that no journal keeps (%s); set Config.Authorize", strings.Join(rec.Omitted, ", "))
}

// existing is a run over a record that was in the journal before this call.
type existing struct{ *run }

// resolve decides what an existing record means for this request. It decides at most three times, and reads the record
// again in between if another process changed it (ErrStale). A result ends the call; nil means that the run goes on.
func (x existing) resolve(op *preparedRequest) *result {
	for tries := 1; ; tries++ {
		res := x.resolveOnce(op)
		if res == nil || tries == 3 || !errors.Is(res.err, persist.ErrStale) {
			return res
		}
		rec, err := x.journal.Get(x.call.Values(), x.rec.ID)
		if err != nil {
			return res
		}
		x.rec = rec
	}
}

// resolveOnce is one try of resolve, on the record as it was last read.
func (x existing) resolveOnce(op *preparedRequest) *result {
	rec := &x.rec
	if err := rec.Sealed(); err != nil {
		return &result{err: journalError(x.name, Key(rec.Key), err)}
	}
	if !op.sameRequest(rec) {
		return x.refuseFinal(x.call.Values(), x.name, rec, nil, outcomeOfReuse(rec), ErrKeyReused)
	}
	switch rec.State {
	case persist.StateConfirmed:
		return x.confirmed()
	case persist.StateMismatched:
		return x.refuseFinal(x.call.Values(), x.name, rec, nil, ErrNoEffect, ErrKeyReused)
	case persist.StateAbandoned:
		return refuse(x.name, rec, nil, ErrOutcomeUnknown, ErrAbandoned)
	case persist.StateSettled:
		return x.settled()
	case persist.StateHeld:
		sentinels := []error{ErrOutcomeUnknown, ErrHeld}
		if rec.HoldReason == persist.HoldDuplicate {
			sentinels = append(sentinels, ErrDuplicate)
		}
		if rec.HoldReason != persist.HoldCaller {
			return refuse(x.name, rec, fmt.Errorf("held: %s", rec.HoldReason), sentinels...)
		}
	}
	return x.adopt()
}

// outcomeOfReuse returns the sentinel for a request whose key belongs to another request: ErrOutcomeUnknown while
// that one is unfinished or abandoned, else ErrNoEffect.
func outcomeOfReuse(rec *persist.Record) error {
	if !rec.State.Final() || rec.State == persist.StateAbandoned {
		return ErrOutcomeUnknown
	}
	return ErrNoEffect
}

// refuse ends a call without a send; the record does not change. sentinels[0] says whether an effect is possible:
// ErrNoEffect, ErrOutcomeUnknown or ErrFinal. If the record's answer was swept, its status may still be known.
func refuse(name string, rec *persist.Record, cause error, sentinels ...error) *result {
	e := &Error{
		Op: name, Key: Key(rec.Key), State: rec.State, Cause: cause, Answer: rec.Answer, is: sentinels,
	}
	if !rec.State.Final() {
		e.NextAttempt = rec.NextAttempt
	}
	if e.Answer == nil && rec.Status != 0 {
		e.Answer = &persist.Answer{Status: rec.Status, BodyDropped: true}
	}
	switch {
	case rec.State == persist.StateMismatched:
		e.Outcome = OutcomeMismatch
	case sentinels[0] == ErrNoEffect:
		e.Outcome = OutcomeNotSent
	case sentinels[0] == ErrFinal:
		e.Outcome = OutcomeConfirmed
	}
	told := slices.Contains(sentinels, ErrAnswerGone) || slices.Contains(sentinels, ErrSettled)
	return &result{err: e, unreported: told && rec.Unreported}
}

// refuseFinal is refuse where a final state may make the verdict "no effect". Such a state is visible before it is
// durable, so that it is flushed first: after a crash the record would be pending, and Resume would send it.
func (e *engine) refuseFinal(ctx context.Context, name string, rec *persist.Record, cause error, sentinels ...error) *result {
	if sentinels[0] == ErrNoEffect {
		if err := e.journal.Flush(ctx); err != nil {
			sentinels[0], cause = ErrOutcomeUnknown, err
		}
	}
	return refuse(name, rec, cause, sentinels...)
}

// confirmed answers from the journal. Where the answer was too large to keep, the server is asked again while it
// still knows the key: the result nil means that the run goes on to do so.
func (x existing) confirmed() *result {
	a := x.rec.Answer
	switch {
	case a == nil:
		return refuse(x.name, &x.rec, nil, ErrOutcomeUnknown, ErrAnswerGone)
	case !a.BodyDropped:
		return x.answerFromJournal()
	}
	x.prof = x.cfg.profileOf(&x.rec)
	if x.prof == nil || x.cfg.window(x.rec.FirstSent, x.now(), x.rec.Window) != windowOpen || !request.Intact(&x.rec) || x.cfg.pinned(&x.rec) != nil {
		return refuse(x.name, &x.rec, nil, ErrOutcomeUnknown, ErrAnswerGone)
	}
	x.askedAgain = true
	x.history.Doubt()
	return nil
}

// settled answers from a settled record.
func (x existing) settled() *result {
	switch a := x.rec.Answer; {
	case x.rec.Effect == persist.EffectAbsent:
		return x.refuseFinal(x.call.Values(), x.name, &x.rec, nil, ErrNoEffect, ErrSettled)
	case a != nil && a.Status != 0 && !a.BodyDropped:
		return x.answerFromJournal()
	}
	return refuse(x.name, &x.rec, nil, ErrOutcomeUnknown, ErrSettled, ErrAnswerGone)
}

// answerFromJournal answers with the recorded answer. A 4xx is flushed first: it may be visible but not durable yet, and
// after a crash the server may answer differently.
func (x existing) answerFromJournal() *result {
	a := x.rec.Answer
	if a.Status >= 400 && a.Status < 500 && !a.Replayed && !a.AlreadyDone {
		if err := x.journal.Flush(x.call.Values()); err != nil {
			return refuse(x.name, &x.rec, err, ErrOutcomeUnknown)
		}
	}
	how := x.resultWith(OutcomeConfirmed, SourceJournal)
	how.AlreadyDone = a.AlreadyDone
	return &result{
		answer: &answer{status: a.Status, header: a.Header, body: a.Body, result: how}, unreported: x.rec.Unreported,
	}
}

// adopt prepares the run of an unfinished record, under its recorded profile, and marks it as maybe sent, durably,
// before the first send. A result ends the call.
func (x existing) adopt() *result {
	rec := &x.rec
	if err := x.clock.notice(x.call.Values(), x.cfg); err != nil {
		return &result{err: journalError(x.name, Key(rec.Key), err)}
	}
	x.prof = x.cfg.profileOf(rec)
	if rec.MaybeSent {
		x.history.Doubt()
	}
	x.call.SetInDoubt(rec.MaybeSent)
	switch {
	case x.prof == nil:
		cause := fmt.Errorf("profile %q version %q, under which it was begun, is not known to this client", rec.Profile, rec.ProfileVersion)
		return refuse(x.name, rec, cause, ErrOutcomeUnknown, ErrConfig)
	case x.cfg.pinned(rec) != nil:
		return refuse(x.name, rec, x.cfg.pinned(rec), ErrOutcomeUnknown, ErrConfig)
	case !request.Intact(rec):
		return refuse(x.name, rec, fmt.Errorf("%w: its request is not what was hashed", persist.ErrCorrupt), ErrOutcomeUnknown)
	case x.leasedElsewhere(rec):
		return refuse(x.name, rec, errElsewhere, ErrOutcomeUnknown, ErrInFlight)
	case !rec.MaybeSent && expiredBeforeSend(rec, x.now()):
		x.verdict, x.stop = expired(), errMaxAge
		return ending(x).writeOutcome()
	}
	if x.lanes != nil && x.leases.marked(rec) {
		return nil
	}
	next := *rec
	next.State, next.HoldReason = persist.StatePending, ""
	if !next.MaybeSent && !wantsToken(rec) {
		next.MaybeSent, next.FirstSent = true, x.firstSent()
	}
	x.leases.stamp(&next)
	// Written even where nothing else changes: another process that has the record at this revision can no longer
	// forget it as never sent.
	updated, err := x.journal.Update(x.call.Values(), next)
	if err != nil {
		return &result{err: journalError(x.name, Key(rec.Key), err)}
	}
	x.rec = updated
	return nil
}

// journalError returns the error for a journal that failed on an operation whose record exists.
func journalError(name string, key Key, err error) *Error {
	return &Error{Op: name, Key: key, Cause: err, is: []error{ErrOutcomeUnknown}}
}

// expiredBeforeSend reports whether the time for an enqueued operation's first send is over.
func expiredBeforeSend(rec *persist.Record, now time.Time) bool {
	return !rec.SendBefore.IsZero() && now.After(rec.SendBefore)
}

// windowState says whether a key may be sent at some moment, by its retention window.
type windowState uint8

const (
	windowOpen   windowState = iota
	windowBefore             // the clock was set back a little: wait until it reaches FirstSent
	windowOver               // too late, or the clock cannot be trusted
)

// window says whether a key first sent at first may be sent at now, by the wall clock: whoever sends next may be
// another process, or this one after a suspend. So first must carry no monotonic reading.
func (c *Config) window(first, now time.Time, window time.Duration) windowState {
	age := now.Round(0).Sub(first)
	switch {
	case age < -c.skew(window), age >= window-c.margin(window):
		return windowOver
	case age < 0:
		return windowBefore
	}
	return windowOpen
}

// skew is how far the clock may be off against this window.
func (c *Config) skew(window time.Duration) time.Duration { return min(c.ClockSkew, window/10) }

// margin is the last part of the window, in which no send may start.
func (c *Config) margin(window time.Duration) time.Duration {
	return c.Retry.AttemptTimeout + c.skew(window)
}

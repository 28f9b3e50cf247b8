package oncehttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/pace"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// begin is the record as Do begins it: about to be sent.
func (c *Client) begin(op *operation) persist.Record {
	rec := op.rec
	now := c.now().Round(0)
	rec.MaybeSent, rec.FirstSent = true, now
	if c.leases {
		rec.LeaseOwner, rec.LeaseUntil = c.owner, now.Add(c.leaseTime(op.prof))
	}
	return rec
}

// leaseTime outlasts one run of an operation under p, so that no lease needs
// renewing: the last attempt may begin when MaxElapsed is over and takes
// AnswerTimeout, with Authorize, redirects and body; so does each lookup.
func (c *Client) leaseTime(p *profile.Profile) time.Duration {
	policy := &c.cfg.Retry
	lease := policy.MaxElapsed + policy.AttemptTimeout + policy.AnswerTimeout
	if p != nil && p.Lookup != nil {
		lease += lookupTries * policy.AnswerTimeout
	}
	return lease
}

// takeOver is standing, again where another process changed the record in
// between.
func (d *drive) takeOver(name string, op *operation) (land landing, over bool) {
	for range 3 {
		land, over = d.standing(name, op)
		if !over || !errors.Is(land.err, persist.ErrStale) {
			break
		}
		rec, err := d.c.journal.Get(d.f.values, d.rec.ID)
		if err != nil {
			break
		}
		d.rec = rec
	}
	return land, over
}

// standing decides what a record that was there before means for this request:
// over with a landing, or the drive goes on from where it stood.
func (d *drive) standing(name string, op *operation) (landing, bool) {
	rec := &d.rec
	if !op.sameRequest(rec) {
		return d.refuseFinal(d.f.values, name, nil, doubt(rec), ErrKeyReused), true
	}
	switch rec.State {
	case persist.StateConfirmed:
		return d.confirmed(name)
	case persist.StateMismatched:
		return d.refuseFinal(d.f.values, name, nil, ErrNoEffect, ErrKeyReused), true
	case persist.StateAbandoned:
		return d.refuse(name, nil, ErrOutcomeUnknown, ErrAbandoned), true
	case persist.StateSettled:
		return d.settled(name), true
	case persist.StateHeld:
		if rec.HoldReason != persist.HoldCaller {
			return d.refuse(name, fmt.Errorf("held: %s", rec.HoldReason), ErrOutcomeUnknown, ErrHeld), true
		}
	}
	return d.takeUp(name)
}

// doubt is how an operation stands that another request's bytes collide with.
func doubt(rec *persist.Record) error {
	if !rec.State.Final() || rec.State == persist.StateAbandoned {
		return ErrOutcomeUnknown
	}
	return ErrNoEffect
}

// refuse is a landing without a send: what stands is left as it stands.
func (d *drive) refuse(name string, cause error, is ...error) landing {
	e := &Error{
		Op: name, Key: Key(d.rec.Key), State: d.rec.State, NextAttempt: d.rec.NextAttempt,
		Cause: cause, Answer: d.rec.Answer, is: is,
	}
	switch {
	case d.rec.State == persist.StateMismatched:
		e.Outcome = OutcomeMismatch
	case is[0] == ErrNoEffect:
		e.Outcome = OutcomeNotSent
	case is[0] == ErrFinal:
		e.Outcome = OutcomeConfirmed
	}
	told := slices.Contains(is, ErrAnswerGone) || slices.Contains(is, ErrSettled)
	return landing{err: e, unreported: told && d.rec.Unreported}
}

// refuseFinal is refuse where the verdict may be "no effect", because of a state
// that is final. Such a state may be seen before it is durable, and then it is
// not proved yet: what a crash leaves would be sent by a later Resume.
func (d *drive) refuseFinal(ctx context.Context, name string, cause error, is ...error) landing {
	if is[0] == ErrNoEffect {
		if err := d.c.flush(ctx); err != nil {
			is[0] = ErrOutcomeUnknown
			return d.refuse(name, err, is...)
		}
	}
	return d.refuse(name, cause, is...)
}

// flush waits until every Finish that returned before is durable.
func (c *Client) flush(ctx context.Context) error {
	return c.journal.Flush(ctx)
}

// confirmed answers from the journal. Where the answer was too large to keep,
// the server is asked again while it still knows the key.
func (d *drive) confirmed(name string) (landing, bool) {
	a := d.rec.Answer
	switch {
	case a == nil:
		return d.refuse(name, nil, ErrOutcomeUnknown, ErrAnswerGone), true
	case !a.BodyDropped:
		return d.fromJournal(name), true
	}
	d.prof = d.c.cfg.profileOf(&d.rec)
	if d.prof == nil || d.c.cfg.window(d.rec.FirstSent, d.c.now(), d.rec.Window) != windowOpen || !intact(&d.rec) {
		return d.refuse(name, nil, ErrOutcomeUnknown, ErrAnswerGone), true
	}
	d.reask = true
	d.history.Doubt()
	return landing{}, false
}

func (d *drive) settled(name string) landing {
	switch {
	case d.rec.Effect == persist.EffectAbsent:
		return d.refuseFinal(d.f.values, name, nil, ErrNoEffect, ErrSettled)
	case d.rec.Answer != nil && d.rec.Answer.Status != 0 && !d.rec.Answer.BodyDropped:
		return d.fromJournal(name)
	}
	return d.refuse(name, nil, ErrOutcomeUnknown, ErrSettled, ErrAnswerGone)
}

// fromJournal answers with the recorded answer. A 4xx may be visible and not durable
// yet, and not be the server's to give again.
func (d *drive) fromJournal(name string) landing {
	a := d.rec.Answer
	if a.Status >= 400 && a.Status < 500 && !a.Replayed && !a.AlreadyDone {
		if err := d.c.flush(d.f.values); err != nil {
			return d.refuse(name, err, ErrOutcomeUnknown)
		}
	}
	result := d.result(OutcomeConfirmed, SourceJournal)
	result.AlreadyDone = a.AlreadyDone
	return landing{answer: &landed{status: a.Status, header: a.Header, body: a.Body, result: result}, unreported: d.rec.Unreported}
}

func (d *drive) result(o Outcome, s Source) Result {
	return Result{
		Key: Key(d.rec.Key), Outcome: o, Source: s,
		Attempts: d.rec.Attempts + d.attempts, Sends: d.rec.Sends + d.sends, FirstSent: d.rec.FirstSent,
	}
}

// takeUp goes on with an unfinished record, by the profile that it recorded, and
// marks it, durably, before its first send.
func (d *drive) takeUp(name string) (landing, bool) {
	rec, now := &d.rec, d.c.now().Round(0)
	d.prof = d.c.cfg.profileOf(rec)
	if rec.MaybeSent {
		d.history.Doubt()
	}
	d.f.table.mark(d.f, rec.MaybeSent)
	switch {
	case d.prof == nil:
		cause := fmt.Errorf("profile %q version %q, under which it was begun, is not known to this client", rec.Profile, rec.ProfileVersion)
		return d.refuse(name, cause, ErrOutcomeUnknown, ErrConfig), true
	case !intact(rec):
		return d.refuse(name, fmt.Errorf("%w: its request is not what was hashed", persist.ErrCorrupt), ErrOutcomeUnknown), true
	case d.c.foreign(rec, now):
		return d.refuse(name, errors.New("another process has it"), ErrOutcomeUnknown, ErrInFlight), true
	case !rec.MaybeSent && tooOld(rec, now):
		d.reading, d.stop = expired(), errMaxAge
		return d.settle(name), true
	}
	next := *rec
	next.State, next.HoldReason = persist.StatePending, ""
	if !next.MaybeSent {
		next.MaybeSent, next.FirstSent = true, now
	}
	if d.c.leases {
		next.LeaseOwner, next.LeaseUntil = d.c.owner, now.Add(d.c.leaseTime(d.prof))
	}
	if !next.FirstSent.Equal(rec.FirstSent) || next.State != rec.State || d.c.leases {
		updated, err := d.c.journal.Update(d.f.values, next)
		if err != nil {
			return landing{err: journalError(name, Key(rec.Key), err)}, true
		}
		d.rec = updated
	}
	return landing{}, false
}

// foreign reports whether another process holds the record at now.
func (c *Client) foreign(rec *persist.Record, now time.Time) bool {
	return rec.Leased(c.owner, now) && !strings.HasPrefix(rec.LeaseOwner, c.owner+"/")
}

// letGo gives up the lease of a claimed record that is not driven, for somebody
// who can. Whoever drives it meanwhile has changed it, so that this does nothing.
func (c *Client) letGo(ctx context.Context, rec persist.Record) {
	if rec.LeaseOwner == "" || c.foreign(&rec, time.Time{}) || rec.State.Final() {
		return
	}
	rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
	_, err := c.journal.Update(context.WithoutCancel(ctx), rec)
	if err != nil && !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrNotFound) {
		c.log(ctx, slog.LevelError, "a lease could not be released", rec.Key, err)
	}
}

// settle records what a drive came to, and lands.
func (d *drive) settle(name string) landing {
	switch r := &d.reading; {
	case d.reask:
		return d.askedAgain(name)
	case r.outcome == OutcomeConfirmed:
		return d.confirm(name)
	case r.outcome == OutcomeMismatch && r.hold == "":
		return d.conflict(name)
	case (r.outcome == OutcomeNotSent || r.outcome == OutcomeRefused) && !d.history.InDoubt():
		return d.withdraw(name)
	}
	return d.keep(name)
}

// askedAgain lands a second answer to a confirmed operation. Nothing that it
// says changes the record.
func (d *drive) askedAgain(name string) landing {
	if d.reading.outcome == OutcomeConfirmed {
		return landing{answer: d.landed(), unreported: d.rec.Unreported}
	}
	d.last.Drain()
	land := d.fail(name, ErrOutcomeUnknown, ErrAnswerGone)
	land.unreported = d.rec.Unreported
	land.answer = nil
	return land
}

// landed is the last answer, for the waiters.
func (d *drive) landed() *landed {
	source := SourceServer
	if d.reading.replayed {
		source = SourceReplay
	}
	result := d.result(d.reading.outcome, source)
	result.AlreadyDone = d.reading.done
	a := d.last.Answer
	return &landed{
		head: a.Head, status: a.Head.StatusCode, header: a.Head.Header, body: a.Body, partial: !a.Whole, rest: a.Rest, result: result,
	}
}

// kept is the last answer as it is recorded and reported, at now; nil if there is
// none.
func (d *drive) kept(now time.Time) *persist.Answer {
	a := d.last.Answer
	if a == nil {
		return nil
	}
	kept := &persist.Answer{
		Status: a.Head.StatusCode, Header: a.Head.Header, Body: a.Body, BodyDropped: !a.Whole,
		Replayed: d.reading.replayed, AlreadyDone: d.reading.done, At: now,
	}
	d.c.cfg.keepAnswer(kept)
	return kept
}

// counted is the record with this drive's attempts, and without a lease.
func (d *drive) counted() persist.Record {
	rec := d.rec
	rec.Attempts += d.attempts
	rec.Sends += d.sends
	rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
	rec.NextAttempt = time.Time{}
	return rec
}

// confirm records the answer. If that fails the answer is returned all the same:
// the record stays pending, and the same key finds the answer again. Only a 4xx that
// the server does not store might be another then, and is no answer.
func (d *drive) confirm(name string) landing {
	if err := d.finish(persist.StateConfirmed); err != nil && d.mayChange() {
		d.stop, d.reading.outcome = err, OutcomeUnknown
		land := d.fail(name, ErrOutcomeUnknown)
		land.answer = nil
		return land
	}
	return landing{answer: d.landed(), unreported: d.unreported(persist.StateConfirmed)}
}

// unreported reports whether an operation that now ends in this state has nobody
// who is told: a caller without a key might make it again.
func (d *drive) unreported(state persist.State) bool {
	return d.f.ofPass && d.rec.Generated && state == persist.StateConfirmed
}

// conflict: the server keeps another request under this key, and nothing of this
// one was ever in doubt.
func (d *drive) conflict(name string) landing {
	if err := d.finish(persist.StateMismatched); err != nil {
		d.stop = err
		return d.fail(name, ErrOutcomeUnknown, ErrKeyReused)
	}
	return d.fail(name, ErrNoEffect, ErrKeyReused)
}

// mustFlush reports whether an end may not wait for the next commit: one that
// proves that nothing happened, a 4xx that the server does not store and might not
// give again, and what could not be asked for again, because the key's window is
// nearly over or the clock cannot be trusted.
func (d *drive) mustFlush(rec *persist.Record) bool {
	age := rec.Finished.Sub(rec.FirstSent)
	if rec.State != persist.StateConfirmed || age < 0 || age > rec.Window-rec.Window/10 {
		return true
	}
	return d.mayChange()
}

// mayChange reports whether the answer is a final 4xx that the server does not store,
// so that it might answer otherwise if it were asked again.
func (d *drive) mayChange() bool {
	status := d.last.Answer.Head.StatusCode
	return status >= 400 && status < 500 && !d.reading.stored
}

// finish records how the operation ended. An error was logged; the record then
// stands as it stood, or the end may be lost in a crash.
func (d *drive) finish(state persist.State) error {
	ctx := d.f.values
	var rec persist.Record
	err := d.change(func() error {
		rec = d.counted()
		rec.State, rec.HoldReason = state, ""
		rec.Finished = d.c.now().Round(0)
		rec.Answer = d.kept(rec.Finished)
		rec.Unreported = d.unreported(state)
		return d.c.journal.Finish(ctx, rec)
	})
	if err == nil && d.mustFlush(&rec) {
		err = d.c.flush(ctx)
	}
	if err != nil {
		if errors.Is(err, persist.ErrStale) {
			if standing, getErr := d.c.journal.Get(ctx, rec.ID); getErr == nil {
				err = fmt.Errorf("%w: it stands as %v", err, standing.State)
			}
		}
		d.c.log(ctx, slog.LevelError, "the outcome could not be recorded", rec.Key, err)
	}
	return err
}

// withdraw takes back an operation that provably had no effect: one that this
// call began is forgotten, another stays pending, as never sent.
func (d *drive) withdraw(name string) landing {
	why := ErrRefused
	if d.reading.outcome == OutcomeNotSent {
		why = ErrNotSent
	}
	forgotten := false
	err := d.change(func() error {
		if forgotten = d.created && !d.rec.Enqueued; forgotten {
			return d.c.journal.Forget(d.f.values, d.rec)
		}
		rec := d.counted()
		rec.MaybeSent, rec.FirstSent = false, time.Time{}
		rec.NextAttempt = d.notBefore()
		return d.update(rec)
	})
	switch {
	case !forgotten:
		d.unrecorded(err)
		d.c.wake()
	case err == nil:
		return d.fail(name, ErrNoEffect, why)
	default:
		d.c.log(d.f.values, slog.LevelError, "an operation without effect could not be forgotten", d.rec.Key, err)
		d.stop = err
	}
	return d.fail(name, ErrOutcomeUnknown, why)
}

// change makes one change of the journal. Where that meets ErrStale only because an
// Enqueue marked the record meanwhile, it is made again of the marked record.
func (d *drive) change(make func() error) error {
	err := make()
	if !errors.Is(err, persist.ErrStale) {
		return err
	}
	now, getErr := d.c.journal.Get(d.f.values, d.rec.ID)
	if getErr != nil || !onlyMarked(&d.rec, &now) {
		return err
	}
	d.rec.Revision, d.rec.Enqueued, d.rec.SendBefore = now.Revision, now.Enqueued, now.SendBefore
	return make()
}

// onlyMarked reports whether all that happened to a record is that an Enqueue
// marked it.
func onlyMarked(before, now *persist.Record) bool {
	return now.Enqueued && !before.Enqueued && now.Revision == before.Revision+1 && now.Seq == before.Seq &&
		now.State == before.State && now.HoldReason == before.HoldReason && now.LeaseOwner == before.LeaseOwner
}

// keep leaves an operation in doubt: pending, or held where another send cannot
// help or might hurt.
func (d *drive) keep(name string) landing {
	var hold persist.HoldReason
	d.unrecorded(d.change(func() error {
		rec := d.counted()
		rec.State, rec.HoldReason, rec.Answer = persist.StatePending, "", nil
		if !d.history.InDoubt() && d.reading.outcome == OutcomeExpired { // proved, though it came too late
			rec.MaybeSent, rec.FirstSent = false, time.Time{}
		}
		if hold = d.holdReason(); hold != "" {
			rec.State, rec.HoldReason = persist.StateHeld, hold
			rec.Answer = d.kept(d.c.now().Round(0)) // for whoever has to settle it
		} else {
			rec.NextAttempt = d.notBefore()
		}
		return d.update(rec)
	}))
	d.c.wake()
	is := []error{ErrOutcomeUnknown}
	if hold != "" {
		is = append(is, ErrHeld)
	}
	if why := d.reading.why; why != nil {
		is = append(is, why)
	}
	return d.fail(name, is...)
}

// holdReason is why nothing more may be sent; empty if it may. A caller that sees
// plain HTTP may act on the answer that it was shown; what was enqueued is sent all
// the same, as that was promised.
func (d *drive) holdReason() persist.HoldReason {
	if _, shown := d.f.plain(); d.reading.hold == "" && shown && !d.rec.Enqueued {
		return persist.HoldCaller
	}
	return d.reading.hold
}

func (d *drive) update(rec persist.Record) error {
	updated, err := d.c.journal.Update(d.f.values, rec)
	if err == nil {
		d.rec = updated
		d.rec.Attempts, d.rec.Sends = d.rec.Attempts-d.attempts, d.rec.Sends-d.sends
	}
	return err
}

// unrecorded logs that a state could not be recorded, unless err is nil.
func (d *drive) unrecorded(err error) {
	if err != nil {
		d.c.log(d.f.values, slog.LevelError, "the state could not be recorded", d.rec.Key, err)
	}
}

// notBefore is when Resume may go on: when the server said, or when the origin is
// tried again; else after a pause that grows with the attempts that were in vain,
// unless it was not the server that ended this drive.
func (d *drive) notBefore() time.Time {
	now := d.c.now().Round(0)
	if d.stop == errRetryAfter || d.stop == errOriginDown || d.stop == errClockBack || d.f.givenUp() != nil || d.f.draining.Err() != nil {
		return cmp.Or(d.next, now.Add(d.c.cfg.Retry.MaxDelay)).Round(0)
	}
	at := now.Add(d.pause(now))
	if d.next.After(at) {
		at = d.next.Round(0)
	}
	return at
}

// pause is how long an operation rests that was tried in vain: half of what is
// left of its time at most, so that its last hours are used.
func (d *drive) pause(now time.Time) time.Duration {
	policy := &d.c.cfg.Retry
	drives := (d.rec.Attempts + d.attempts + policy.MaxAttempts - 1) / policy.MaxAttempts
	pause := pace.Pause(max(drives, 1), policy.MaxDelay, policy.MaxPause)
	until := d.rec.SendBefore
	if d.rec.MaybeSent {
		until = d.rec.FirstSent.Add(d.rec.Window - d.c.cfg.margin(d.rec.Window))
	}
	if left := until.Sub(now); left > 0 && !until.IsZero() {
		pause = max(min(pause, left/2), policy.MinDelay)
	}
	return pause
}

// fail is a landing with an error, and with the answer for plain-HTTP callers.
func (d *drive) fail(name string, is ...error) landing {
	e := &Error{
		Op: name, Key: Key(d.rec.Key), Outcome: d.reading.outcome, State: d.rec.State,
		Attempts: d.attempts, Sends: d.sends, Cause: d.stop, Last: d.last.Err, Answer: d.kept(d.c.now().Round(0)), is: is,
	}
	switch {
	case d.reading.hold != "":
	case is[0] == ErrOutcomeUnknown:
		e.NextAttempt = d.rec.NextAttempt
	case d.last.Answer != nil: // nothing is left to go on, but the server said when
		e.NextAttempt = d.next
	}
	land := landing{err: e}
	if plain, _ := d.f.plain(); plain && d.last.Answer != nil {
		land.answer = d.landed()
	} else {
		d.last.Drain()
	}
	return land
}

// journalError is what a journal that failed means for an operation that stands.
func journalError(name string, key Key, err error) *Error {
	return &Error{Op: name, Key: key, Cause: err, is: []error{ErrOutcomeUnknown}}
}

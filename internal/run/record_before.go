package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file handles a record before the first send of a call: it begins records, interprets existing ones, and checks if a send may still
// happen.

// intent returns the record of a new operation before its first send.
func (e *engine) intent(op *preparedRequest) persist.Record {
	rec, now := *op.rec, e.now().Round(0)
	rec.Created, rec.Drives = now, 1
	begun := operation.OpOf(&rec, 0).Begun(e.firstSent(), e.sendUntil(), e.cfg.drives.LatestFirstSend(now, rec.Window))
	rec.MaybeSent, rec.FirstSent, rec.SendUntil, rec.SendBefore = begun.MaybeSent, begun.FirstSent, begun.SendUntil, begun.SendBefore
	e.stamp(&rec)
	return rec
}

// stamp writes a new lease into a record.
func (e *engine) stamp(rec *persist.Record) {
	if owner, until := e.leases.Stamp(); owner != "" {
		rec.TakeLease(owner, until)
	}
}

// unstamp takes the lease off a record. Another's lease, if there is one, has ended by itself.
func (e *engine) unstamp(rec *persist.Record) {
	rec.TakeLease(e.owner, time.Time{})
	rec.LeaseOwner = ""
}

// firstSent returns the time stamp of a first send about to follow.
func (e *engine) firstSent() time.Time { return e.clock.Earliest().Round(0) }

// sendUntil returns the time stamp of a write before a send. Until then, one of its sends may still be on its way.
func (e *engine) sendUntil() time.Time { return e.now().Round(0).Add(e.cfg.Retry.sending()) }

// leasedElsewhere reports whether another process has the record. It judges the lease by the earliest possible present time. The other
// process judges its own lease by the latest possible present time, so the two never act on the operation at once.
func (e *engine) leasedElsewhere(rec *persist.Record) bool {
	return rec.Leased(e.owner, e.clock.Earliest())
}

// giveBack gives up the lease of a claimed record, not run by this client, so that another client can run it. The record is not due before
// again; if again is zero, the record stays due as before. If a call changed the record since, giveBack does nothing.
func (e *engine) giveBack(ctx context.Context, rec persist.Record, again time.Time) {
	e.logUnreleased(ctx, &rec, e.release(ctx, rec, again))
}

// release is giveBack, and returns the journal's error.
func (e *engine) release(ctx context.Context, rec persist.Record, again time.Time) error {
	if rec.LeaseOwner != e.owner || rec.State.Final() {
		return nil
	}
	op := operation.OpOf(&rec, 0)
	rec.NextAttempt = op.DueAgain(again.Round(0), e.now())
	e.unstamp(&rec)
	_, err := e.journal.Update(context.WithoutCancel(ctx), rec)
	return err
}

// logUnreleased logs an error of release, unless another has changed or ended the record since.
func (e *engine) logUnreleased(ctx context.Context, rec *persist.Record, err error) {
	if err != nil && !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrNotFound) {
		e.cfg.log(ctx, slog.LevelError, "a lease could not be released", rec.Key, err)
	}
}

// lacks returns the first need of the run's record not met by the client. Outside a pass, the request of the call has its credentials.
func (r *run) lacks() operation.Lack {
	lack := r.engine.lacks(r.call, &r.rec, r.prof, !r.given.Pass)
	if lack.Need == operation.Nothing && !r.given.Pass {
		lack = r.cfg.lacksCredentials(r.rec.Origin, &r.credentials)
	}
	return lack
}

// existing is a run over a record already in the journal before this call.
type existing struct{ *run }

// resolve decides how the call goes on when its operation has a record already. It decides at most three times, and reads the record again
// in between if another process changed it (ErrStale). A result ends the call; if it is nil, the run goes on.
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
	rec, o := &x.rec, x.op()
	says := o.Open(x.known(op))
	if says.Tells() {
		if err := x.noteTold(x.call.Values(), rec); err != nil {
			return &result{err: journalError(x.name, rec, err)}
		}
	}
	switch says {
	case operation.SaysUnreadable:
		return &result{err: journalError(x.name, rec, rec.Sealed())}
	case operation.SaysElsewhere:
		return &result{err: newError(x.name, unclear(rec.Key), errElsewherePlace, ErrConfig), notShared: true, elsewhere: true}
	case operation.SaysStranger:
		return x.refuseStranger(x.call.Values(), x.name, rec.ID)
	case operation.SaysIncomparable, operation.SaysOther:
		return x.notSame(x.call.Values(), x.name, rec, op)
	case operation.SaysInFlight:
		return &result{err: newError(x.name, unclear(""), errSending, ErrInFlight)}
	case operation.SaysHeld:
		return x.refuseHeld()
	case operation.ReadsAgain:
		if res := x.endUnread(); res != nil {
			return res
		}
		return x.refuseHeld()
	case operation.GivesAnswer:
		return x.answerFromJournal()
	case operation.AsksAgain:
		return x.askAgain()
	case operation.Adopts:
		return x.adopt()
	case operation.SaysGone:
		return x.refuseSame(nil, ErrAnswerGone)
	case operation.SaysHappened:
		return x.refuseSame(nil, ErrSettled, ErrAnswerGone)
	default:
		return x.refuseSame(nil, whyFinal(rec)...)
	}
}

// noteTold writes that a caller is told how the operation ended, before it is, where a person must know that later. It changes rec.
func (e *engine) noteTold(ctx context.Context, rec *persist.Record) error {
	if !operation.NotesTold(rec) {
		return nil
	}
	told := *rec
	told.Told = true
	told, err := e.journal.Amend(ctx, told)
	if err == nil {
		*rec = told
	}
	return err
}

// marks notes that a caller gets a result, where the journal must know that.
func (e *engine) marks(ctx context.Context, id persist.ID, res *result) error {
	if res.unreported {
		e.markReported(ctx, id)
	}
	if res.untold {
		return e.noteJoined(ctx, id)
	}
	return nil
}

// noteJoined is noteTold for a caller that has joined a pass.
func (e *engine) noteJoined(ctx context.Context, id persist.ID) error {
	for tries := 1; ; tries++ {
		rec, err := e.journal.Get(ctx, id)
		if errors.Is(err, persist.ErrNotFound) {
			return nil
		}
		if err == nil {
			err = e.noteTold(ctx, &rec)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, persist.ErrStale) || tries == amendTries {
			return journalError("do", &persist.Record{ID: id, MaybeSent: true}, err)
		}
	}
}

// known returns the facts known to the call about the record.
func (x existing) known(op *preparedRequest) (c operation.Call) {
	if c.Unreadable = x.rec.Sealed() != nil; c.Unreadable {
		return c
	}
	c.Elsewhere, c.Strange = op.elsewhere(&x.rec), op.strange(&x.rec)
	switch op.read.Compare(&x.rec) {
	case request.SameRequest:
		c.Request = operation.Same
	case request.CannotTell:
		c.Request = operation.Incomparable
	default:
		c.Request = operation.Other
	}
	c.Keyless = op.named.Keyless && x.sentElsewhere(&x.rec)
	return c
}

// refuseSame ends a call of the record's own request without a send.
func (x existing) refuseSame(cause error, why ...error) *result {
	return x.refuse(x.call.Values(), x.name, &x.rec, operation.Same, cause, why...)
}

// refuseHeld ends a call whose operation is held.
func (x existing) refuseHeld() *result {
	return x.refuseSame(fmt.Errorf("held: %s", x.rec.HoldReason), whyHeld(&x.rec)...)
}

// errElsewherePlace is seen by nobody: the call goes on at another place.
var errElsewherePlace = errors.New("the key is that of another scope")

// notSame refuses a request if its key belongs to another one, or may belong to one.
func (e *engine) notSame(ctx context.Context, name string, rec *persist.Record, op *preparedRequest) *result {
	if op.read.Compare(rec) == request.CannotTell {
		// Without the answer: it may be another request's.
		failed := newError(name, subjectOf(rec, operation.Incomparable), incomparable(op, rec), ErrConfig)
		return &result{err: failed}
	}
	return e.otherRequest(ctx, name, rec, op.prof)
}

// otherRequest refuses a request if its key belongs to another one. If that one was refused, or settled as absent, the error names the key
// of the next try, if the API takes it.
func (e *engine) otherRequest(ctx context.Context, name string, rec *persist.Record, prof *profile.Profile) *result {
	why := []error{ErrKeyReused}
	if rec.State == persist.StateAbandoned {
		why = append(why, ErrAbandoned)
	}
	var cause error
	next := request.NextGeneration(rec.Key)
	switch operation.StandingOf(rec) {
	case operation.Refused, operation.Absent:
		if _, err := request.SpellKey(prof, next); err == nil && (!rec.Generated || rec.Business) && !rec.ServerToken {
			cause = fmt.Errorf("a new try needs a new key, such as %q (Key.Generation)", next)
		}
	}
	return e.refuse(ctx, name, rec, operation.Other, cause, why...)
}

// whyFinal returns the sentinels for the end of a final operation.
func whyFinal(rec *persist.Record) []error {
	switch rec.State {
	case persist.StateMismatched:
		return []error{ErrKeyReused}
	case persist.StateAbandoned:
		return []error{ErrAbandoned}
	case persist.StateSettled:
		return []error{ErrSettled}
	}
	return nil
}

// whyHeld returns the sentinels for the reason of a hold.
func whyHeld(rec *persist.Record) []error {
	if rec.HoldReason == persist.HoldDuplicate {
		return []error{ErrHeld, ErrDuplicate}
	}
	return []error{ErrHeld}
}

// durable returns the subject of the record. A final state is visible before it is durable. So durable flushes it first, unless a send
// after a crash would only ask the server for the answer once more. If the flush fails, the operation's standing is unclear.
func (e *engine) durable(ctx context.Context, rec *persist.Record, known operation.Knowledge) (subject, error) {
	about := subjectOf(rec, known)
	if op := operation.OpOf(rec, 0); !op.FlushesFirst() {
		return about, nil
	}
	err := e.journal.Flush(ctx)
	if err != nil {
		about.standing = operation.Unclear
	}
	return about, err
}

// refuse ends a call without a send; the record does not change. known is the call's knowledge of the record's request. If the record's
// answer was swept, its status may still be known.
func (e *engine) refuse(ctx context.Context, name string, rec *persist.Record, known operation.Knowledge, cause error, why ...error) *result {
	about, err := e.durable(ctx, rec, known)
	if err != nil {
		cause = err
	}
	failed := newError(name, about, cause, why...)
	if failed.Answer = rec.Answer; rec.Answer == nil && rec.Status != 0 {
		failed.Answer = &persist.Answer{Status: rec.Status, BodyDropped: true}
	}
	if !rec.State.Final() {
		failed.NextAttempt = rec.NextAttempt
	}
	told := slices.Contains(why, ErrAnswerGone) || slices.Contains(why, ErrSettled)
	return &result{err: failed, unreported: told && rec.Unreported}
}

// askAgain prepares a run to ask the server again for an answer too large to keep, while the server still knows the key. If the result is
// nil, the run goes on to ask.
func (x existing) askAgain() *result {
	x.readBy(x.profileOf(x.call, &x.rec))
	able := x.prof != nil && request.Intact(&x.rec) && x.lacks().Need == operation.Nothing
	if op := x.op(); !x.cfg.drives.AsksAgain(&op, x.now(), able) {
		return x.refuseSame(nil, ErrAnswerGone)
	}
	x.given.AskedAgain = true
	return nil
}

// answerFromJournal answers with the recorded answer. If the server does not give it again, it is flushed first: it may be visible but not
// durable yet.
func (x existing) answerFromJournal() *result {
	a := x.rec.Answer
	if !a.Stored {
		if err := x.journal.Flush(x.call.Values()); err != nil {
			return &result{err: journalError(x.name, &x.rec, err)}
		}
	}
	how := x.resultWith(OutcomeOf(&x.rec), SourceJournal)
	how.AlreadyDone, how.Effect = a.AlreadyDone, x.rec.FinalEffect()
	return &result{
		answer: &answer{status: a.Status, header: a.Header, body: a.Body, result: how}, unreported: x.rec.Unreported, owed: owedAt(&x.rec),
	}
}

// adopt prepares the run of an unfinished record, under its recorded profile, and marks it as maybe sent, durably,
// before the first send. A result ends the call.
func (x existing) adopt() *result {
	rec := &x.rec
	if err := x.clock.Notice(x.call.Values(), x.host); err != nil {
		return &result{err: journalError(x.name, rec, err), unwritten: true}
	}
	x.readBy(x.profileOf(x.call, rec))
	op := x.op()
	x.given = op.Begins(x.given)
	if x.call.SetInDoubt(rec.MaybeSent); rec.MaybeSent {
		x.doubted(rec)
	}
	lack := x.lacks()
	switch {
	case lack.Need != operation.Nothing:
		return x.refuseSame(lack.Err(), ErrConfig)
	case !request.Intact(rec):
		return x.refuseSame(fmt.Errorf("%w: its request is not what was hashed", persist.ErrCorrupt))
	case x.leasedElsewhere(rec):
		return x.refuseSame(lease.ErrElsewhere, ErrInFlight)
	}
	switch op.Adopt(x.now(), x.fair && x.leases.Marked(rec)) {
	case operation.IsProven:
		return x.endProven()
	case operation.IsLate:
		x.drive = operation.Overdue(op, x.cfg.drives, x.givenNow())
		_ = ending(x).conclude(x.journal.Finish)
		x.tellHeld()
		return ending(x).result()
	case operation.MarkedBy:
		return nil
	}
	return x.mark(op.Marked(x.firstSent(), x.sendUntil()))
}

// mark writes the record with the marks of the drive to come. It writes even if nothing else changes: another process with this revision of
// the record can then no longer forget it as never sent.
func (x existing) mark(marked operation.Op) *result {
	if before := x.rec; x.returns {
		x.before = &before
	}
	next := x.rec
	next.State, next.HoldReason, next.MaybeSent, next.FirstSent = marked.State, marked.Hold, marked.MaybeSent, marked.FirstSent
	next.Drives++
	x.stamp(&next) // before SendUntil is this drive's
	next.ExtendSendUntil(marked.SendUntil)
	updated, err := x.journal.Update(x.call.Values(), next)
	if err != nil {
		return &result{err: journalError(x.name, &x.rec, err), unwritten: true}
	}
	x.rec = updated
	return nil
}

// journalError returns the error for a failure of the journal on an operation with a record. The operation's standing is then not known.
func journalError(name string, rec *persist.Record, err error) *Error {
	about := subjectOf(rec, operation.KeyOnly)
	about.standing = operation.Unclear
	return newError(name, about, err)
}

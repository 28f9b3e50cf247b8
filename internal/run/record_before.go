package run

import (
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file handles a record before the first send of a call: it begins records, interprets existing ones, and
// checks if a send may still happen.

// existing is a run over a record already in the journal before this call. It has the parts of the run that are
// used before its attempts. Its methods decide by operation.Call.Open, before any drive. A result of them ends
// the call without a send of the operation.
type existing struct {
	task    *task
	replies *replies // hear a recorded answer once more
	report  *report  // tells of an end without a drive
	permit  *permit  // whether the claim may mark the record
	ending  *ending  // writes the end, if no send is needed
}

// resolve decides how a call goes on if its operation has a record. A result ends the call. With nil the run executes the operation, and the record
// is marked as maybe sent. If another process changes the record meanwhile (ErrStale), resolve reads it again and decides anew, at most three times
// in all.
func (x existing) resolve(op *preparedRequest) *result {
	t := x.task
	for tries := 1; ; tries++ {
		res := x.resolveOnce(op)
		if res == nil || tries == 3 || !errors.Is(res.err, persist.ErrStale) {
			return res
		}
		rec, err := t.journal.Get(t.call.Values(), t.rec.ID)
		if err != nil {
			return res
		}
		t.rec = rec
	}
}

// keptAnswer returns the recorded answer of an operation ended before, and nil if the journal shows none, or
// intent.CallKey.TakesKept says no. It is called after a failed begin, and sends nothing: giving an answer needs no
// write (a full disk, a server in a failover). A begin with an unknown outcome changes nothing in an ended record.
func (x existing) keptAnswer(op *preparedRequest) *result {
	t := x.task
	key := callKey(t.cfg, &op.named)
	if !key.TakesKept(operation.GivesAnswer) { // nor anything else
		return nil
	}
	rec, err := t.journal.Get(t.call.Values(), op.rec.ID)
	if err != nil {
		return nil
	}
	// As after a begin that found the record.
	t.rec, t.prof, t.target = rec, op.prof, op.target
	t.credentials = op.read.CredentialsFor(&rec)
	x.permit.returns = !op.rec.PlainHTTP && !op.rec.KeyOfOneCall()
	known, _, err := x.known(op)
	if o := t.op(); err != nil || !key.TakesKept(known.Open(&o)) {
		return nil
	}
	res := x.resolveOnce(op)
	// The begin has failed, so that nobody else tells of this end.
	x.report.tellOpened(res)
	return res
}

// resolveOnce decides, on the record as it was last read, how a call goes on with its existing operation. A result ends the call; nil: the run sends
// the operation (adopt), or asks for its answer again (askAgain). What a caller is told about an end is noted in the record first, where a person
// must know that later (marks).
func (x existing) resolveOnce(op *preparedRequest) *result {
	t := x.task
	rec, o := &t.rec, t.op()
	known, by, err := x.known(op)
	if err != nil {
		return &result{err: journalError(t.name, rec, err)}
	}
	says := known.Open(&o)
	if says.Tells() {
		if err := t.engine.marks.note(t.call.Values(), rec); err != nil {
			return &result{err: journalError(t.name, rec, err)}
		}
	}
	switch says {
	case operation.ReadsAgain:
		// This client may have the facts that the client with the answer lacked.
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
	}
	return x.refuseOpening(op, says, &by)
}

// refuseOpening ends a call by an error that says what the record is. by is what has replaced it, for
// SaysReplaced. The error of a record of somebody else, or of another request, tells no more of it than its
// caller may know (refusals).
func (x existing) refuseOpening(op *preparedRequest, says operation.Opening, by *replacement) *result {
	t := x.task
	rec := &t.rec
	switch says {
	case operation.SaysUnreadable:
		return &result{err: journalError(t.name, rec, rec.Sealed())}
	case operation.SaysElsewhere:
		return &result{err: newError(t.name, unclear(rec.Key), errElsewherePlace, ErrConfig), notShared: true, elsewhere: true}
	case operation.SaysErased:
		return t.engine.refusals.refuse(t.call.Values(), t.name, rec, operation.Other, errErased)
	case operation.SaysStranger:
		return t.engine.refusals.refuseStranger(t.call.Values(), t.name, rec.ID)
	case operation.SaysIncomparable, operation.SaysOther:
		return t.engine.refusals.notSame(t.call.Values(), t.name, rec, op)
	case operation.SaysReplaced:
		return t.engine.refusals.refuseReplaced(t.call.Values(), t.name, rec, by)
	case operation.SaysSkipped:
		return t.engine.refusals.refuseSkipped(t.call.Values(), t.name, rec)
	case operation.SaysInFlight:
		return &result{err: newError(t.name, unclear(op.keyInFlight()), errSending, ErrInFlight)}
	case operation.SaysHeld:
		return x.refuseHeld()
	case operation.SaysContradicted:
		return x.refuseSame(contradictedBy(rec))
	case operation.SaysGone:
		return x.refuseSame(nil, ErrAnswerGone)
	case operation.SaysHappened:
		return x.refuseSame(nil, ErrSettled, ErrAnswerGone)
	default:
		// It has ended in another way, named by the error: mismatched, abandoned, or settled as absent.
		return x.refuseSame(nil, whyFinal(rec))
	}
}

// known returns what a call knows of the record found under its key, for the decision of operation.Call.Open, and the operation that a person has begun in its
// place, if any. Keyless: the call names no key, and another process sends the operation; the call must not join that. Errors: the journal's.
func (x existing) known(op *preparedRequest) (c operation.Call, by replacement, err error) {
	t := x.task
	c = op.known(&t.rec)
	c.Keyless = op.named.Keyless && t.engine.holder.sentElsewhere(&t.rec)
	by, c.Replaced, err = t.engine.admission.unbegun.replacement(t.call.Values(), &t.rec)
	return c, by, err
}

// refuseSame ends a call of the record's own request without a send. cause may be nil; why are the sentinels of
// the error.
func (x existing) refuseSame(cause error, why ...error) *result {
	t := x.task
	return t.engine.refusals.refuse(t.call.Values(), t.name, &t.rec, operation.Same, cause, why...)
}

// refuseHeld ends a call whose operation is held. A person settles it, or Config.Reconcile; no call sends it
// meanwhile.
func (x existing) refuseHeld() *result {
	return x.refuseSame(fmt.Errorf("held: %s", x.task.rec.HoldReason), whyHeld(&x.task.rec)...)
}

// errElsewherePlace is seen by nobody: the call goes on at another place.
var errElsewherePlace = errors.New("the key is that of another scope")

// whyFinal returns the error that programs match for an operation that has ended, such as ErrSettled; nil: its answer says more.
func whyFinal(rec *persist.Record) error {
	op := operation.OpOf(rec, 0)
	return troubles[op.WhyFinal()]
}

// whyHeld returns the errors that programs match for a held operation: ErrHeld and, for some reasons of a hold, a second one.
func whyHeld(rec *persist.Record) []error {
	op := operation.OpOf(rec, 0)
	return sentinels(op.WhyHeld())
}

// askAgain prepares a run to ask the server again for an answer too large to keep, while the server still knows
// the key. With a nil result the run goes on to ask: it needs no lease and writes nothing, since the record is
// final.
func (x existing) askAgain() *result {
	t := x.task
	t.readBy(t.engine.profileOf(t.call, &t.rec))
	// Nothing is sent without the recorded request: it would be another one.
	able := t.prof != nil && request.Intact(&t.rec) && t.lacks().Need == acts.Nothing
	if op := t.op(); !t.cfg.drives.AsksAgain(&op, t.engine.now(), able) {
		return x.refuseSame(nil, ErrAnswerGone)
	}
	// The drive asks for the answer alone: the effect is certain, whatever the server says.
	t.given.AskedAgain = true
	return nil
}

// answerFromJournal returns a result with the recorded answer; rec.Answer must be set. If the server would not give the answer again, it flushes the
// journal first: the answer may not be durable yet, and a crash must not lose what the caller was told. After a failed flush the result is an error.
func (x existing) answerFromJournal() *result {
	t := x.task
	a, op := t.rec.Answer, t.op()
	// Else the server gives the same answer again, and a flush for each repeat would cost a sync.
	if !op.GivesAgain(a.Stored, t.engine.now()) {
		if err := t.journal.Flush(t.call.Values()); err != nil {
			return &result{err: journalError(t.name, &t.rec, err)}
		}
	}
	how := t.resultWith(OutcomeOf(&t.rec), SourceJournal)
	how.AlreadyDone, how.Effect, how.Dropped = a.AlreadyDone, t.rec.FinalEffect(), a.Dropped
	return &result{
		answer: &answer{status: a.Status, header: a.Header, body: a.Body, result: how}, unreported: t.rec.Unreported, owed: owedAt(&t.rec),
	}
}

// adopt takes over an unfinished record for a run, under its recorded profile, and marks it as maybe sent,
// durably, before the first send. After nil the record is this run's: execute, or a give-back, must follow. A
// result ends the call: the record may not be sent by this client now, was ended without a send, or the journal
// failed (unwritten).
func (x existing) adopt() *result {
	t := x.task
	rec := &t.rec
	if err := t.notice(); err != nil {
		return &result{err: journalError(t.name, rec, err), unwritten: true}
	}
	// By the recorded profile, not by the one of the caller: the operation began under it.
	t.readBy(t.engine.profileOf(t.call, rec))
	op := t.op()
	// Earlier runs count: a send of theirs may have taken effect.
	t.given = t.given.After(&op.Sending)
	// From now on a call of the same request without a key looks for it, and begins no other one.
	if t.call.SetInDoubt(rec.MaybeSent); rec.MaybeSent {
		t.engine.alike.Doubted(rec)
	}
	// Asked before the write: a client that cannot send leaves the record to one that can.
	lack := t.lacks()
	switch acts.MayTake(lack.Need, request.Intact(rec), t.engine.holder.leasedElsewhere(rec)) {
	case acts.LacksNeed:
		return x.refuseSame(lack.Err(), ErrConfig)
	case acts.IsDamaged:
		return x.refuseSame(fmt.Errorf("%w: its request is not what was hashed", persist.ErrCorrupt))
	case acts.HasOwner:
		return x.refuseSame(lease.ErrElsewhere, ErrInFlight)
	}
	// Without the mark of a claim first: most runs have none to ask for.
	mark := operation.Adopt(&op, t.engine.now(), false)
	if mark == operation.Marks && x.permit.fair && t.engine.claims.Marked(rec) { // it begins the run of the lease, and so is asked only where a drive follows
		mark = operation.Adopt(&op, t.engine.now(), true)
	}
	switch mark {
	case operation.IsProven:
		return x.endProven()
	case operation.IsLate:
		t.drive = operation.Overdue(op, t.cfg.drives, t.givenNow())
		// Its error is in the result.
		_ = x.ending.conclude(t.journal.Finish)
		x.report.tellHeld()
		return x.ending.result()
	case operation.MarkedBy:
		return nil
	}
	return x.mark(op.Marked(t.engine.holder.firstSent(), t.engine.writer.sendUntil()))
}

// mark writes the record as it must be before the first send: maybe sent, and leased to this client. It writes even if nothing else changes: another process
// with the revision before can then no longer forget the record as never sent. A run that may give its operation back (returns) keeps the record before. A
// result is the journal's error; nothing may be sent then, since a crash after the send would leave a record that says "never sent".
func (x existing) mark(marked operation.Op) *result {
	t := x.task
	if before := t.rec; x.permit.returns {
		t.before = &before
	}
	next := t.rec
	next.State, next.HoldReason, next.MaybeSent, next.FirstSent = marked.State, marked.Hold, marked.MaybeSent, marked.FirstSent
	// So the record changes in any case.
	next.Drives++
	t.engine.holder.stamp(&next) // before ExtendSendUntil: it keeps the SendUntil of an owner that lost its lease
	next.ExtendSendUntil(marked.SendUntil)
	updated, err := t.journal.Update(t.call.Values(), next)
	if err != nil {
		return &result{err: journalError(t.name, &t.rec, err), unwritten: true}
	}
	t.rec = updated
	return nil
}

// journalError returns the error for a failure of the journal on an operation with a record. The operation's
// standing is then not known, so the outcome is unclear. rec may hold only an ID and MaybeSent.
func journalError(name string, rec *persist.Record, err error) *Error {
	about := subjectOf(rec, operation.KeyOnly)
	about.standing = operation.Unclear
	return newError(name, about, err)
}

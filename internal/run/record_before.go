package run

import (
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file handles a record before the first send of a call: it begins records, interprets existing ones, and checks if a send may still
// happen.

// lacks returns the first need of the run's record not met by the client; Need is operation.Nothing if there is
// none. Outside a pass, the credentials of the call's own request count.
func (r *run) lacks() operation.Lack {
	lack := r.engine.lacks(r.call, &r.rec, r.prof, !r.given.Pass)
	if lack.Need == operation.Nothing && !r.given.Pass {
		lack = r.cfg.lacksCredentials(r.rec.Origin, &r.credentials)
	}
	return lack
}

// existing is a run over a record already in the journal before this call.
type existing struct{ *run }

// resolve decides how the call goes on when its operation has a record already. A result ends the call; with nil
// the run goes on to execute, and the record is marked. If another process changes the record meanwhile
// (ErrStale), resolve reads it again and decides anew, three times in all.
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

// keptAnswer returns the recorded answer of an operation ended before, and nil if the journal shows none. It is called
// after a failed begin, and sends nothing: giving an answer needs no write (a full disk, a server in a failover). A
// begin with an unknown outcome changes nothing in an ended record. A call without a key gets nil.
func (x existing) keptAnswer(op *preparedRequest) *result {
	if op.named.Keyless {
		return nil
	}
	rec, err := x.journal.Get(x.call.Values(), op.rec.ID)
	if err != nil {
		return nil
	}
	x.rec, x.prof, x.target = rec, op.prof, op.target
	x.credentials = op.read.CredentialsFor(&rec)
	x.returns = !op.rec.PlainHTTP && !op.rec.KeyOfOneCall()
	known, _, err := x.known(op)
	if o := x.op(); err != nil || o.Open(known) != operation.GivesAnswer {
		return nil
	}
	res := x.resolveOnce(op)
	x.tellOpened(res)
	return res
}

// resolveOnce is one try of resolve, on the record as it was last read. Only adopt allows a send of the operation
// after it; askAgain allows a request for its answer.
func (x existing) resolveOnce(op *preparedRequest) *result {
	rec, o := &x.rec, x.op()
	known, by, err := x.known(op)
	if err != nil {
		return &result{err: journalError(x.name, rec, err)}
	}
	says := o.Open(known)
	if says.Tells() {
		if err := x.marks.note(x.call.Values(), rec); err != nil {
			return &result{err: journalError(x.name, rec, err)}
		}
	}
	switch says {
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
	}
	return x.refuseOpening(op, says, &by)
}

// refuseOpening ends a call by an error that says what the record is. by is what has replaced it, for SaysReplaced.
func (x existing) refuseOpening(op *preparedRequest, says operation.Opening, by *replacement) *result {
	rec := &x.rec
	switch says {
	case operation.SaysUnreadable:
		return &result{err: journalError(x.name, rec, rec.Sealed())}
	case operation.SaysElsewhere:
		return &result{err: newError(x.name, unclear(rec.Key), errElsewherePlace, ErrConfig), notShared: true, elsewhere: true}
	case operation.SaysErased:
		return x.refusals.refuse(x.call.Values(), x.name, rec, operation.Other, errErased)
	case operation.SaysStranger:
		return x.refusals.refuseStranger(x.call.Values(), x.name, rec.ID)
	case operation.SaysIncomparable, operation.SaysOther:
		return x.refusals.notSame(x.call.Values(), x.name, rec, op)
	case operation.SaysReplaced:
		return x.refusals.refuseReplaced(x.call.Values(), x.name, rec, by)
	case operation.SaysInFlight:
		return &result{err: newError(x.name, unclear(op.keyInFlight()), errSending, ErrInFlight)}
	case operation.SaysHeld:
		return x.refuseHeld()
	case operation.SaysGone:
		return x.refuseSame(nil, ErrAnswerGone)
	case operation.SaysHappened:
		return x.refuseSame(nil, ErrSettled, ErrAnswerGone)
	default:
		return x.refuseSame(nil, whyFinal(rec))
	}
}

// known returns the facts known to the call about the record, for the decision of Open, and what was begun in its place. Errors: the journal's.
func (x existing) known(op *preparedRequest) (c operation.Call, by replacement, err error) {
	c = op.known(&x.rec)
	c.Keyless = op.named.Keyless && x.holder.sentElsewhere(&x.rec)
	by, c.Replaced, err = x.admission.unbegun.replacement(x.call.Values(), &x.rec)
	return c, by, err
}

// known returns the facts known to a call from its request about an existing record. Of an unreadable record there are no others.
func (op *preparedRequest) known(rec *persist.Record) (c operation.Call) {
	if c.Unreadable = rec.Sealed() != nil; c.Unreadable {
		return c
	}
	c.Elsewhere, c.Strange = op.elsewhere(rec), op.strange(rec)
	switch op.read.Compare(rec) {
	case request.SameRequest:
		c.Request = operation.Same
	case request.CannotTell:
		c.Request = operation.Incomparable
	default:
		c.Request = operation.Other
	}
	return c
}

// refuseSame ends a call of the record's own request without a send. cause may be nil; why are the sentinels of
// the error.
func (x existing) refuseSame(cause error, why ...error) *result {
	return x.refusals.refuse(x.call.Values(), x.name, &x.rec, operation.Same, cause, why...)
}

// refuseHeld ends a call whose operation is held.
func (x existing) refuseHeld() *result {
	return x.refuseSame(fmt.Errorf("held: %s", x.rec.HoldReason), whyHeld(&x.rec)...)
}

// errElsewherePlace is seen by nobody: the call goes on at another place.
var errElsewherePlace = errors.New("the key is that of another scope")

// whyFinal returns the sentinel for the end of a final operation; nil: its answer says more.
func whyFinal(rec *persist.Record) error {
	op := operation.OpOf(rec, 0)
	return troubles[op.WhyFinal()]
}

// whyHeld returns the sentinels for the reason of a hold.
func whyHeld(rec *persist.Record) []error {
	op := operation.OpOf(rec, 0)
	return sentinels(op.WhyHeld())
}

// askAgain prepares a run to ask the server again for an answer too large to keep, while the server still knows
// the key. With a nil result the run goes on to ask: it needs no lease and writes nothing, since the record is
// final.
func (x existing) askAgain() *result {
	x.readBy(x.profileOf(x.call, &x.rec))
	able := x.prof != nil && request.Intact(&x.rec) && x.lacks().Need == operation.Nothing
	if op := x.op(); !x.cfg.drives.AsksAgain(&op, x.now(), able) {
		return x.refuseSame(nil, ErrAnswerGone)
	}
	x.given.AskedAgain = true
	return nil
}

// answerFromJournal answers with the recorded answer; rec.Answer must be set. If the server does not give it
// again, it is flushed first: it may be visible but not durable yet. After a failed flush the result is an error.
func (x existing) answerFromJournal() *result {
	a, op := x.rec.Answer, x.op()
	if !op.GivesAgain(a.Stored, x.now()) {
		if err := x.journal.Flush(x.call.Values()); err != nil {
			return &result{err: journalError(x.name, &x.rec, err)}
		}
	}
	how := x.resultWith(OutcomeOf(&x.rec), SourceJournal)
	how.AlreadyDone, how.Effect, how.Dropped = a.AlreadyDone, x.rec.FinalEffect(), a.Dropped
	return &result{
		answer: &answer{status: a.Status, header: a.Header, body: a.Body, result: how}, unreported: x.rec.Unreported, owed: owedAt(&x.rec),
	}
}

// adopt takes over an unfinished record for a run, under its recorded profile, and marks it as maybe sent,
// durably, before the first send. After nil the record is this run's: execute, or a give-back, must follow. A
// result ends the call: the record may not be sent by this client now, was ended without a send, or the journal
// failed (unwritten).
func (x existing) adopt() *result {
	rec := &x.rec
	if err := x.clock.Notice(x.call.Values(), x.host); err != nil {
		return &result{err: journalError(x.name, rec, err), unwritten: true}
	}
	x.readBy(x.profileOf(x.call, rec))
	op := x.op()
	x.given = op.Begins(x.given)
	if x.call.SetInDoubt(rec.MaybeSent); rec.MaybeSent {
		x.alike.Doubted(rec)
	}
	lack := x.lacks()
	switch {
	case lack.Need != operation.Nothing:
		return x.refuseSame(lack.Err(), ErrConfig)
	case !request.Intact(rec):
		return x.refuseSame(fmt.Errorf("%w: its request is not what was hashed", persist.ErrCorrupt))
	case x.holder.leasedElsewhere(rec):
		return x.refuseSame(lease.ErrElsewhere, ErrInFlight)
	}
	mark := op.Adopt(x.now(), false)
	if mark == operation.Marks && x.fair && x.leases.Marked(rec) { // it begins the run of the lease, and so is asked only where a drive follows
		mark = op.Adopt(x.now(), true)
	}
	switch mark {
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
	return x.mark(op.Marked(x.holder.firstSent(), x.writer.sendUntil()))
}

// mark writes the record with the marks and the lease of the drive to come. It writes even if nothing else
// changes: another process with this revision of the record can then no longer forget it as never sent. A result
// is the journal's error; nothing may be sent then.
func (x existing) mark(marked operation.Op) *result {
	if before := x.rec; x.returns {
		x.before = &before
	}
	next := x.rec
	next.State, next.HoldReason, next.MaybeSent, next.FirstSent = marked.State, marked.Hold, marked.MaybeSent, marked.FirstSent
	next.Drives++
	x.holder.stamp(&next) // before SendUntil is this drive's
	next.ExtendSendUntil(marked.SendUntil)
	updated, err := x.journal.Update(x.call.Values(), next)
	if err != nil {
		return &result{err: journalError(x.name, &x.rec, err), unwritten: true}
	}
	x.rec = updated
	return nil
}

// journalError returns the error for a failure of the journal on an operation with a record. The operation's
// standing is then not known, so the outcome is unclear. rec may hold only an ID and MaybeSent.
func journalError(name string, rec *persist.Record, err error) *Error {
	about := subjectOf(rec, operation.KeyOnly)
	about.standing = operation.Unclear
	return newError(name, about, err)
}

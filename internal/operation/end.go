package operation

import (
	"cmp"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides the end of a drive: the last write, and its failures.

// Writing is the effect of the step Write on the record.
type Writing uint8

// The writings.
const (
	WriteNothing  Writing = iota
	EndConfirmed          // it ends with the counting answer
	EndMismatched         // it ends: the server keeps the key for another request
	EndAbsent             // it is settled as absent
	EndHappened           // it is settled as happened, by its evidence
	LeaveOpen             // it stays unfinished: pending, or held
	LeaveUnsent           // it stays unfinished, as never sent
	Forget                // the record goes
)

// Keep is the choice of a record's answer.
type Keep uint8

// The possible answers of a record.
const (
	KeepOld Keep = iota // its present answer
	KeepNone
	KeepAnswer // the counting answer
	KeepFlawed // the latest success, maybe not the API's own, for the comparison with a later one
)

// Change holds the changes of a record by the step Write. The driver adds answer, note and lease.
type Change struct {
	State       persist.State
	Hold        persist.HoldReason
	Effect      persist.Effect
	Answer      Keep
	Final       bool
	Unreported  bool
	KeyTold     bool
	Told        bool // a caller of the drive is told of the end
	Unmark      bool // MaybeSent and FirstSent are taken back
	Attempts    int  // in all
	Sends       int  // likewise
	NextAttempt time.Time
	SendBefore  time.Time // of an unfinished record
	OwedFrom    time.Time // of the state to Config.OnResult
	Aside       Aside
}

// Aside is the treatment of the operation by this client's later passes.
type Aside uint8

// The treatments.
const (
	AsideAsBefore Aside = iota
	AsideTaken          // it was sent: it rests no longer
	AsideLeft           // this client alone could not send it: they leave it alone for a while
)

// Meanwhile holds events during a drive, told at its end.
type Meanwhile struct {
	GivenUp     bool      // the call was given up, or is draining
	Shown       bool      // a caller of Transport waits, or has waited, for this call
	Left        bool      // a caller has left before, with an error
	Broken      bool      // its lease has ended meanwhile: another process may have taken the operation for an abandoned one
	Taken       bool      // a caller with OnResult has the answer already: the end is not owed
	LatestFirst time.Time // the latest first send of an operation begun to be sent at once (Client.LatestFirstSend)
	// Delivers is the time in which a pass hands the state to its own OnResult; zero: whoever finds it does.
	Delivers time.Duration
}

// Writing returns the effect of the step Write.
func (d *Drive) Writing() Writing { return d.write }

// conclude decides the last write, if no attempt follows. (Invariants 2, 4 and 24.)
func (d *Drive) conclude() {
	switch {
	case d.given.AskedAgain:
		d.concludeRepeat()
	case d.proof.Kind == ProvesEnd:
		d.beginWrite(EndConfirmed)
	case d.proof.Kind == ProvesMismatch && d.proof.Hold == "":
		d.beginWrite(EndMismatched)
	case (d.proof.Kind == ProvesUnsent || d.proof.Kind == ProvesRefusal) && !d.history.InDoubt():
		d.withdraw()
	default:
		d.beginWrite(LeaveOpen)
	}
}

func (d *Drive) beginWrite(w Writing) { d.step, d.write = Write, w }

// concludeRepeat ends a drive after another request for the answer of a confirmed operation. The record does not change. A refusal is flushed before
// an error calls it final: an answer handed out earlier may not be durable yet. (Invariants 13 and 14.)
func (d *Drive) concludeRepeat() {
	if d.proof.Kind == ProvesEnd && !d.proof.Refused && sameEnd(d.op.Status, d.answer.Status) { // a success was asked for again
		d.end(Report{Answered: true, Unreported: d.op.Unreported})
		return
	}
	d.write = WriteNothing
	if d.op.FlushesFirst() {
		d.step = Flush
		return
	}
	d.failRepeat(d.op.Standing)
}

// FlushesFirst reports whether the journal is flushed before an error says how the operation ended: an end is visible before it is durable. After the
// loss of an effect that happened, the server would only be asked for the answer once more. (Invariant 13.)
func (o *Op) FlushesFirst() bool {
	return o.State.Final() && o.Standing.Effect() != persist.EffectHappened
}

// failRepeat ends a drive without the answer of a confirmed operation. (Invariants 9 and 14.)
func (d *Drive) failRepeat(standing Standing) {
	d.fail(standing, AnswerGone)
	d.report.Unreported, d.report.MayShow = d.op.Unreported, false
}

// sameEnd reports whether two final answers of these statuses can be the same answer, given twice: a repeat of a success may have
// another success's status. (Invariant 4.)
func sameEnd(a, b int) bool { return a == b || a < 300 && b < 300 }

// MayAnswerFirst reports whether callers may have the answer before the step Write: the same key finds it again if this process dies in
// between. (Invariant 30.)
func (d *Drive) MayAnswerFirst(now time.Time) bool {
	return d.step == Write && d.given.Late && !d.given.Pass && !d.mustFlush(now)
}

// Change returns the changes of the step Write. It may be asked for more than once; the last counts. (Invariant 53.)
func (d *Drive) Change(m Meanwhile, now time.Time) Change {
	c := d.change(m, now)
	if !m.Taken {
		grace := ResultGrace
		if d.given.Pass {
			grace = m.Delivers
		}
		c.OwedFrom = d.op.OwedAs(c.State, c.Hold, grace, now)
	}
	d.hold = c.Hold
	return c
}

// change is Change without OwedFrom. (Invariants 9 and 17.)
func (d *Drive) change(m Meanwhile, now time.Time) Change {
	c := Change{Attempts: d.op.Attempts, Sends: d.op.Sends + d.sends}
	if !d.isLocal() {
		c.Attempts += d.attempts
	}
	switch d.write {
	case EndConfirmed:
		c.State, c.Effect, c.Answer = persist.StateConfirmed, d.Standing().Effect(), KeepAnswer
	case EndMismatched:
		c.State, c.Answer = persist.StateMismatched, KeepAnswer
	case EndAbsent:
		c.State, c.Effect, c.Answer = persist.StateSettled, persist.EffectAbsent, KeepNone
	case EndHappened:
		c.State, c.Effect, c.Answer = persist.StateSettled, persist.EffectHappened, KeepNone
	default:
		d.changeOpen(&c, m, now)
		return c
	}
	c.Final = true
	c.Unreported, c.Told = d.unreported(), !d.given.Pass
	c.KeyTold = d.op.EndsKeyTold(m.Left || m.Broken || !d.given.Created)
	return c
}

// changeOpen is Change for an operation left unfinished. One that its call may go on with gets an end for its first send. (Invariants 7, 8, 24 and 43.)
func (d *Drive) changeOpen(c *Change, m Meanwhile, now time.Time) {
	c.State = persist.StatePending
	c.Unmark = d.write == LeaveUnsent || !d.history.InDoubt() && d.proof.Kind == ProvesExpiry // nothing was ever sent, and now it may not be
	marked := d.op.MaybeSent && !c.Unmark
	if c.SendBefore = d.op.SendBefore; d.Leaves() {
		c.SendBefore = d.op.firstSendBy(marked, m.LatestFirst)
	}
	if c.Hold = d.holdReason(m); c.Hold != "" {
		c.State, c.Answer = persist.StateHeld, KeepAnswer // for the person who settles it
		return
	}
	if d.write == LeaveOpen {
		c.Answer = KeepFlawed
	}
	c.NextAttempt = d.notBefore(m, now, marked)
	switch {
	case d.sends > 0:
		c.Aside = AsideTaken
	case d.given.Pass && d.isLocal() && !d.unreached && !m.GivenUp: // no pause of its origin holds it back
		c.Aside = AsideLeft
	}
}

// holdReason returns the reason against further sends; empty if there is none. A caller of plain HTTP may act on its answer: no pass may send
// after that. An enqueued operation is sent all the same, as promised. (Invariants 18 and 29.)
func (d *Drive) holdReason(m Meanwhile) persist.HoldReason {
	if d.proof.Hold == "" && m.Shown && !d.op.Enqueued {
		return persist.HoldCaller
	}
	return d.proof.Hold
}

// unreported reports whether the drive's end counts as unreported. (Invariant 17.)
func (d *Drive) unreported() bool {
	return d.op.EndsUnreported(!d.given.Pass) && (d.write == EndConfirmed || d.write == EndHappened)
}

// EndsUnreported reports whether an end of the operation counts as unreported: no caller is told of it, and one without a key might send the same request
// again. Only an end with an answer or with an effect counts. (Invariant 17.)
func (o *Op) EndsUnreported(told bool) bool { return o.Generated && !told }

// EndsKeyTold reports whether the key of an ended operation is kept as if a caller had chosen it. told: an error may have named the key to a caller, who
// may come back with it. A key of the business comes back with its request. (Invariant 17.)
func (o *Op) EndsKeyTold(told bool) bool { return o.Generated && (o.Business || told) }

// isLocal reports whether the drive has sent nothing: it has reached no server, or its limiter, its Authorize or its time limits stopped it. Such
// a failure is no fact about the operation: another client may send it. A clock set back is not local: it may be the journal's. (Invariant 43.)
func (d *Drive) isLocal() bool { return !d.reached && d.sends == 0 && d.stop != ClockBack }

// notBefore returns the earliest time of the next drive:
//   - d.next, or the operation's first pause from now if d.next is zero, after a long Retry-After, a clock set back, or a call given up or draining;
//   - the time as before, but not this very moment, if no server was reached, or the limiter was slow before the first send;
//   - the later one of d.next and a pause in all other cases. The pause grows with the failed attempts.
//
// It is never later than the end of the time for sends: the next pass then holds the record, and tells of it. (Invariants 16 and 28.)
func (d *Drive) notBefore(m Meanwhile, now time.Time, marked bool) time.Time {
	now = now.Round(0)
	until := d.op.sendableUntil(marked)
	at := now.Add(d.op.pause(d.attempts, now, until))
	switch {
	case d.isLocal(), d.limited && d.attempts == 0:
		at = d.op.NextAttempt
		if soon := now.Add(1); at.Before(soon) {
			at = soon
		}
	case d.stop == LongRetryAfter, d.stop == OriginDown, d.stop == ClockBack, m.GivenUp:
		at = cmp.Or(d.next, now.Add(d.op.Pauses.First))
	case d.next.After(at):
		at = d.next
	}
	if over := until.Add(time.Millisecond); !until.IsZero() && at.After(over) {
		at = over
	}
	return at.Round(0)
}

// mustFlush reports whether the final record must be flushed now: it is not confirmed, or the same key does not find the answer again, or not
// for long, since the window is nearly over or the clock went back. Other ends may be lost in a crash. (Invariant 14.)
func (d *Drive) mustFlush(now time.Time) bool {
	return d.write != EndConfirmed || !d.op.GivesAgain(d.Stored(), now)
}

// GivesAgain reports whether the same key finds the answer of a confirmed operation again after a crash, and for long enough. stored: the server keeps
// the answer. It is false near the end of the window, and after a clock that went back. (Invariant 14.)
func (o *Op) GivesAgain(stored bool, now time.Time) bool {
	age := now.Sub(o.FirstSent)
	return stored && age >= 0 && age <= o.Window-o.Window/10
}

// Stored reports whether the server gives the answer again for the same key (persist.Answer.Stored). Three decisions hang on it: another request for
// the answer, the flush of the record, and an answer before the record. (Invariant 14.)
func (d *Drive) Stored() bool { return d.proof.Stored && d.op.Protected }

// Written takes the result of the step Write. ok: the journal has the change. (Invariants 2, 13 and 14.)
func (d *Drive) Written(ok bool, now time.Time) {
	switch d.write {
	case EndConfirmed, EndMismatched, EndAbsent, EndHappened:
		if ok && d.mustFlush(now) {
			d.step = Flush
			return
		}
		d.ended(ok)
	case LeaveOpen:
		d.report.Left = d.goesOn() && d.mayGoOn()
		d.failOpen(d.proof.Trouble())
	case LeaveUnsent:
		d.report.Left = d.goesOn()
		d.failOpen(d.Withdrawn())
	case Forget:
		d.forgotten(ok)
	}
}

// Flushed takes the result of the step Flush. ok: all earlier writes are durable. (Invariant 13.)
func (d *Drive) Flushed(ok bool) {
	if d.write != WriteNothing {
		d.ended(ok)
		return
	}
	standing := d.op.Standing
	if !ok {
		standing, d.stop = Unclear, JournalFailed
	}
	d.failRepeat(standing)
}

// ended ends the drive of an ended operation. ok: the end is written and, if it must be, durable. Without ok callers get the answer all the same: the
// record stays pending, and the same key finds the answer again. A final 4xx not stored by the server is the exception: the next answer may
// differ, so that the outcome is unknown. (Invariant 14.)
func (d *Drive) ended(ok bool) {
	switch d.write {
	case EndConfirmed:
		if ok || !d.mayChange() {
			d.end(Report{Answered: true, Unreported: d.unreported()})
			return
		}
		d.stop, d.proof.Kind = JournalFailed, ProvesNothing
		d.fail(Unclear)
		d.report.MayShow = false
	case EndMismatched:
		d.fail(d.unlessFailed(ok, Ended), IsMismatch)
	case EndAbsent:
		d.fail(d.unlessFailed(ok, Absent), d.Withdrawn())
	case EndHappened:
		d.fail(d.unlessFailed(ok, Happened), AnswerGone, IsSettled)
	}
}

// unlessFailed returns standing, or Unclear if the journal does not have the end. (Invariant 13.)
func (d *Drive) unlessFailed(ok bool, standing Standing) Standing {
	if !ok {
		d.stop = JournalFailed
		return Unclear
	}
	return standing
}

// mayChange reports whether the answer is a final refusal not stored by the server: asked again, it might answer otherwise. (Invariant 14.)
func (d *Drive) mayChange() bool {
	return (d.proof.Refused || d.answer.Status >= 400 && d.answer.Status < 500) && !d.Stored()
}

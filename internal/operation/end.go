package operation

import (
	"cmp"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides how a drive ends: what is written, and what its callers are told.

// Writing is what the step Write does to the record.
type Writing uint8

// The writings. All but the last two end the operation, or leave it as it may be sent.
const (
	WriteNothing  Writing = iota
	EndConfirmed          // it ends with the answer that counts
	EndMismatched         // it ends: the server keeps the key for another request
	EndAbsent             // it is settled as absent
	LeaveOpen             // it stays unfinished: pending, or held
	LeaveUnsent           // it stays pending, as never sent
	Forget                // the record goes
)

// Keep says which answer a record gets.
type Keep uint8

// The answers that a record can get.
const (
	KeepOld Keep = iota // the one that it has
	KeepNone
	KeepAnswer // the one that counts
	KeepFlawed // the latest success that may not be the API's own, with which a later one is compared
)

// Change is what the step Write changes of a record. The driver adds answer, note and lease.
type Change struct {
	State       persist.State
	Hold        persist.HoldReason
	Effect      persist.Effect
	Answer      Keep
	Final       bool
	Unreported  bool
	KeyTold     bool
	Unmark      bool // MaybeSent and FirstSent are taken back
	Attempts    int  // in all
	Sends       int  // likewise
	NextAttempt time.Time
	Aside       Aside
}

// Aside says what this client's passes do with the operation afterwards.
type Aside uint8

// The ways in which passes treat it.
const (
	AsideAsBefore Aside = iota
	AsideTaken          // it was sent: it rests no longer
	AsideLeft           // this client alone could not send it: they leave it alone for a while
)

// Meanwhile holds events during a drive that it was not told of.
type Meanwhile struct {
	GivenUp bool // the call was given up, or is draining
	Shown   bool // a caller of Transport waits, or has waited, for this call
	KeyTold bool // an error may have told the key to a caller
}

// Report is the end of a drive.
type Report struct {
	Answered bool // callers get the answer; else an error
	// Standing is the state of the operation, for the error.
	Standing Standing
	Why      [2]Trouble // that the error names
	// Unreported: the record says that no caller with the key has learnt of the end.
	Unreported bool
	// MayShow: a caller that sees plain HTTP may have the answer beside the error.
	MayShow bool
	// Due is when it is worth going on; zero: that is not known, or as the record says, if AsRecorded is set.
	Due        time.Time
	AsRecorded bool
}

// Report returns how the drive has ended, after the step Over.
func (d *Drive) Report() Report { return d.report }

// Writing returns what the step Write does.
func (d *Drive) Writing() Writing { return d.write }

// conclude decides what is written, once no attempt follows.
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

// concludeRepeat ends a drive that asked again for the answer of a confirmed operation. The record does not change. A refusal is flushed before
// an error says that it is final: the one that was handed out may not be durable yet.
func (d *Drive) concludeRepeat() {
	if d.proof.Kind == ProvesEnd && !d.proof.Refused && sameEnd(d.op.Status, d.answer.Status) { // a success was asked for again
		d.end(Report{Answered: true, Unreported: d.op.Unreported})
		return
	}
	d.write = WriteNothing
	if d.op.State.Final() && d.op.Standing.Effect() != persist.EffectHappened {
		d.step = Flush
		return
	}
	d.failRepeat(d.op.Standing)
}

// failRepeat ends a drive that cannot have the answer of a confirmed operation.
func (d *Drive) failRepeat(standing Standing) {
	d.fail(standing, AnswerGone)
	d.report.Unreported, d.report.MayShow = d.op.Unreported, false
}

// sameEnd reports whether two final answers of these statuses can be the same answer, given twice: a repeat of a success may have
// another success's status.
func sameEnd(a, b int) bool { return a == b || a < 300 && b < 300 }

// withdraw ends a drive that provably had no effect. It forgets an operation that this drive has begun, unless a send of it was promised
// meanwhile. Any other stays pending, as never sent: a pass will send it.
func (d *Drive) withdraw() {
	if d.given.Created && !d.op.Enqueued {
		d.step = LookForPlace
		return
	}
	d.beginWrite(LeaveUnsent)
}

// withdrawn returns the trouble of an operation that provably had no effect.
func (d *Drive) withdrawn() Trouble {
	if d.proof.Kind == ProvesUnsent {
		return IsNotSent
	}
	return IsRefused
}

// PlaceFound takes whether the record keeps the first place of its key, and whether the journal said so. Such a record is settled as absent.
func (d *Drive) PlaceFound(keeps, ok bool) {
	switch {
	case !ok:
		d.stop = JournalFailed
		d.fail(Unclear, d.withdrawn())
	case keeps:
		d.beginWrite(EndAbsent)
	default:
		d.beginWrite(Forget)
	}
}

// MayAnswerFirst reports whether those who wait may have the answer before the step Write: the same key finds it again if this process dies
// in between.
func (d *Drive) MayAnswerFirst(now time.Time) bool {
	return d.step == Write && d.write == EndConfirmed && d.given.Late && !d.given.Pass && !d.mustFlush(now)
}

// Change returns what the step Write changes. It may be asked for more than once; the last counts.
func (d *Drive) Change(m Meanwhile, now time.Time) Change {
	c := d.change(m, now)
	d.hold = c.Hold
	return c
}

func (d *Drive) change(m Meanwhile, now time.Time) Change {
	c := Change{Attempts: d.op.Attempts, Sends: d.op.Sends + d.sends}
	if !d.isLocal() {
		c.Attempts += d.attempts
	}
	switch d.write {
	case EndConfirmed:
		c.State, c.Answer = persist.StateConfirmed, KeepAnswer
	case EndMismatched:
		c.State, c.Answer = persist.StateMismatched, KeepAnswer
	case EndAbsent:
		c.State, c.Effect, c.Answer = persist.StateSettled, persist.EffectAbsent, KeepNone
	default:
		d.changeOpen(&c, m, now)
		return c
	}
	c.Final = true
	c.Unreported = d.unreported()
	c.KeyTold = d.op.Generated && (d.op.Business || m.KeyTold)
	return c
}

// changeOpen is Change where the operation stays unfinished.
func (d *Drive) changeOpen(c *Change, m Meanwhile, now time.Time) {
	c.State = persist.StatePending
	c.Unmark = d.write == LeaveUnsent || !d.history.InDoubt() && d.proof.Kind == ProvesExpiry // nothing was ever sent, and now it may not be
	if d.write == LeaveOpen {
		if c.Hold = d.holdReason(m); c.Hold != "" {
			c.State, c.Answer = persist.StateHeld, KeepAnswer // for whoever has to settle it
			return
		}
		c.Answer = KeepFlawed
	}
	c.NextAttempt = d.notBefore(m, now, d.op.MaybeSent && !c.Unmark)
	switch {
	case d.sends > 0:
		c.Aside = AsideTaken
	case d.given.Pass && d.isLocal() && !d.unreached && !m.GivenUp: // no pause of its origin holds it back
		c.Aside = AsideLeft
	}
}

// holdReason returns why nothing more may be sent; empty if more may. A caller that sees plain HTTP may act on the answer that it got, so
// that no pass may send after it. An enqueued operation is sent all the same, as was promised.
func (d *Drive) holdReason(m Meanwhile) persist.HoldReason {
	if d.proof.Hold == "" && m.Shown && !d.op.Enqueued {
		return persist.HoldCaller
	}
	return d.proof.Hold
}

// unreported reports whether the record that ends now must say that no caller knows of it: a pass ends it, and a caller without a key might
// send the same request again.
func (d *Drive) unreported() bool {
	return d.given.Pass && d.op.Generated && d.write == EndConfirmed
}

// isLocal reports whether the drive has sent nothing: it has reached no server, or its limiter, its Authorize or its time limits did not let it.
// That is no fact about the operation: another client may send it. A clock that was set back is the journal's where it has one.
func (d *Drive) isLocal() bool { return !d.reached && d.sends == 0 && d.stop != ClockBack }

// notBefore returns the earliest time of the next drive. If a long Retry-After or a clock that was set back stopped this one, or the call was
// given up or is draining, that is d.next, or the operation's first pause from now if that is zero. Otherwise it is the later one of d.next and
// a pause that grows with the failed attempts. An operation that reached no server is due as before; not at this very moment, so that a pass
// does not meet it again. It is never later than the moment at which the time for sends is over: the next pass then holds the record, and
// tells so.
func (d *Drive) notBefore(m Meanwhile, now time.Time, marked bool) time.Time {
	now = now.Round(0)
	until := d.op.sendableUntil(marked)
	at := now.Add(d.op.pause(d.attempts, now, until))
	switch {
	case d.isLocal():
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
// for long, since the window is nearly over or the clock went back. Other ends may be lost in a crash.
func (d *Drive) mustFlush(now time.Time) bool {
	age := now.Sub(d.op.FirstSent)
	return d.write != EndConfirmed || !d.Stored() || age < 0 || age > d.op.Window-d.op.Window/10
}

// Stored reports whether the server gives the answer again for the same key (persist.Answer.Stored). It decides whether the server may be asked
// for the answer again, whether the record is flushed, and whether the answer may be given before the record.
func (d *Drive) Stored() bool { return d.proof.Stored && d.op.Protected }

// Written takes whether the journal took the change.
func (d *Drive) Written(ok bool, now time.Time) {
	switch d.write {
	case EndConfirmed, EndMismatched, EndAbsent:
		if ok && d.mustFlush(now) {
			d.step = Flush
			return
		}
		d.ended(ok)
	case LeaveOpen:
		if d.hold == "" {
			d.fail(Open, d.proof.Trouble())
			return
		}
		d.fail(Open, IsHeld, d.proof.Trouble())
	case LeaveUnsent:
		d.fail(Open, d.withdrawn())
	case Forget:
		d.forgotten(ok)
	}
}

// Flushed takes whether all that was written is durable.
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

// ended ends the drive of an operation that has ended, if ok, durably. If it has not, an answer is returned all the same: the record stays pending,
// and the same key finds the answer again. Except for a final 4xx that the server does not store: the next answer may differ.
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
		d.fail(d.unlessFailed(ok, Absent), d.withdrawn())
	}
}

// unlessFailed returns the standing of an operation that has ended, if ok, durably.
func (d *Drive) unlessFailed(ok bool, standing Standing) Standing {
	if !ok {
		d.stop = JournalFailed
		return Unclear
	}
	return standing
}

// mayChange reports whether the answer is a final refusal that the server does not store, so that it might answer otherwise if it were asked again.
func (d *Drive) mayChange() bool {
	return (d.proof.Refused || d.answer.Status >= 400 && d.answer.Status < 500) && !d.Stored()
}

// forgotten ends the drive of an operation whose record is gone, if ok.
func (d *Drive) forgotten(ok bool) {
	switch {
	case !ok:
		d.stop = JournalFailed
		d.fail(Open, d.withdrawn())
	case d.given.OwnKey:
		d.fail(None, d.withdrawn())
	default:
		d.step = LookForOther
	}
}

// OtherFound takes whether somebody has begun the operation anew since its record was forgotten, or may have. If its record was read, Moved
// comes first.
func (d *Drive) OtherFound(found bool) {
	why := d.withdrawn()
	switch {
	case !found:
		d.fail(None, why)
	case d.op.MaybeSent || why == IsRefused: // by whoever has begun it anew
		d.fail(Unclear)
	default:
		d.fail(Unclear, why)
	}
}

// fail ends the drive with an error about an operation that stands so.
func (d *Drive) fail(standing Standing, why ...Trouble) {
	r := Report{Standing: standing, MayShow: standing == None || standing == Ended || d.mayShow()}
	copy(r.Why[:], why)
	switch {
	case d.proof.Hold != "":
	case standing == Open, standing == Unclear:
		r.AsRecorded = true
	case d.answer.ID != 0: // no record is left
		r.Due = d.next
	}
	d.end(r)
}

func (d *Drive) end(r Report) { d.step, d.report = Over, r }

// mayShow reports whether a caller that sees plain HTTP may get the last answer as its response although the outcome is unknown. 409 and 5xx
// claim nothing. A 2xx claims more than is known. Any other answer says or suggests that nothing happened, and must not be the only one that
// such a caller sees where something may have: after an earlier attempt in doubt, or where the record could not be taken back, maybe because
// another process went on with it.
func (d *Drive) mayShow() bool {
	status := d.answer.Status
	if status == 409 || status >= 500 {
		return true
	}
	return status >= 300 && !d.doubtBefore && d.proof.Kind == ProvesNothing
}

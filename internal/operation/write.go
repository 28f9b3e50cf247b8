package operation

import (
	"cmp"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

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

// closing is the course of a drive, with its last write.
type closing struct {
	course
	write Writing
	hold  persist.HoldReason // of the last Change
	told  bool               // callers have the answer before the record
}

// Writing returns the kind of the last write about the operation, for the step Write.
func (d *closing) Writing() Writing { return d.write }

// beginWrite makes Write the next step: the caller writes w.
func (d *closing) beginWrite(w Writing) { d.step, d.write = Write, w }

// Standing returns the operation's state after these attempts: by an event that proves it, or by the counting answer; Unclear if open. (Invariants 2, 9 and 56.)
func (d *closing) Standing() Standing {
	switch {
	case d.write == EndHappened:
		return Happened
	case d.proof.Kind == ProvesEnd && d.answer.ID != 0:
		return Answered(d.answer.Status, d.proof.AlreadyDone, d.proof.Refused)
	}
	return Unclear
}

// MayAnswerFirst reports whether callers may have the answer before it is written (Config allows it: Late). If this process dies in between, the same key finds it again at
// the server. A pass has no caller who waits, and an end that must be flushed is told after that. (Invariant 30.)
func (d *closing) MayAnswerFirst(now time.Time) bool {
	return d.step == Write && d.given.Late && !d.given.Pass && !d.mustFlush(now)
}

// AnswersFirst notes that callers have the answer before it is written: later evidence must not contradict it. (Invariant 30.)
func (d *closing) AnswersFirst() { d.told = true }

// Moved takes the record as it is now, before each write. An Enqueue may have promised a send meanwhile: then the record is not forgotten, and an operation never sent
// and too late is not held, but waits for that send. (Invariant 18.)
func (d *closing) Moved(op Op) {
	promised := op.Enqueued && op.SendBefore.After(d.op.SendBefore)
	d.op = op
	switch {
	case d.step != Write:
	case (d.write == Forget || d.write == EndAbsent) && op.Enqueued:
		d.write = LeaveUnsent
	case promised && d.proof.Kind == ProvesExpiry && !d.history.InDoubt():
		d.write, d.proof = LeaveUnsent, Proof{Kind: ProvesUnsent}
	}
	d.heedEvidence()
}

// heedEvidence settles the operation as happened if an event of the API has proved that during the attempts, also without a success of their own. A refusal that callers
// were told already stays in the record, so that it does not contradict them. (Invariants 30 and 56.)
func (d *closing) heedEvidence() {
	succeeds := d.write == EndConfirmed && d.Standing() != Refused
	if d.step == Write && d.op.EndsByEvidence() && !d.told && !succeeds {
		d.write = EndHappened
	}
}

// mustFlush reports whether the written end must be made durable before callers hear of it. Only a confirmed end that the same key finds again at the server, and for
// long enough, may be lost in a crash. (Invariants 13 and 14.)
func (d *closing) mustFlush(now time.Time) bool {
	return d.write != EndConfirmed || !d.op.GivesAgain(d.Stored(), now)
}

// mayChange reports whether the answer is a refusal that the server does not store: sent again, the same key might get another answer. (Invariant 14.)
func (d *closing) mayChange() bool {
	return (d.proof.Refused || d.answer.Status >= 400 && d.answer.Status < 500) && !d.Stored()
}

// unreported reports whether the record says that no caller knows of this end (Record.Unreported): a pass ends it, and its key was generated. (Invariant 17.)
func (d *closing) unreported() bool {
	return d.op.EndsUnreported(!d.given.Pass) && (d.write == EndConfirmed || d.write == EndHappened)
}

// Leaves reports whether the step Write leaves an unfinished operation to other processes while its call waits for its rate limiter, and goes on later. (Invariant 43.)
func (d *closing) Leaves() bool {
	return d.goesOn() && d.step == Write && (d.write == LeaveOpen || d.write == LeaveUnsent)
}

// mayGoOn reports whether a call with the key may send later: the last write did not hold the operation, or holds it for just such a call. (Invariant 43.)
func (d *closing) mayGoOn() bool { return d.hold == "" || d.hold == persist.HoldCaller }

// Change returns the fields of the record after the step Write. m tells what happened beside the attempts. From the time OwedFrom the result is owed to OnResult,
// unless a caller has it already (m.Taken). The driver may ask again before a repeated write; the last one counts. (Invariant 53.)
func (d *closing) Change(m Meanwhile, now time.Time) Change {
	c := draft{d, m, now}.change()
	if !m.Taken {
		grace := ResultGrace
		if d.given.Pass {
			grace = m.Delivers
		}
		c.OwedFrom = OwedAs(&d.op, c.State, c.Hold, grace, now)
	}
	d.hold = c.Hold
	return c
}

// ResultGrace is the time in which a call may take the result that it has recorded. After it the result is owed: the process has died, or its caller has left.
const ResultGrace = time.Minute

// OwedAs returns Record.OwedFrom for the write of a state: from then on, any process hands the state to OnResult; zero: none does. grace is the time for the writer to
// deliver it first, to its caller or its own OnResult. Each end and each new hold is owed, also if a client without OnResult writes it; the same hold again is owed as
// before. The state before may be under delivery until o.OwedFrom (persist.SharedResults): this one comes after it, and a pending record keeps a later time for that. Without
// o.Results nobody asked for results, and none is owed. (Invariant 53.)
func OwedAs(o *Op, state persist.State, hold persist.HoldReason, grace time.Duration, now time.Time) time.Time {
	from := now.Round(0).Add(grace)
	switch {
	case !o.Results || state == persist.StatePending && !o.OwedFrom.After(now):
		return time.Time{}
	case hold != "" && o.Hold == hold:
		return o.OwedFrom
	case state == persist.StatePending || o.OwedFrom.After(from):
		return o.OwedFrom
	}
	return from
}

// draft is a Change in the making.
type draft struct {
	*closing
	m   Meanwhile
	now time.Time
}

// change returns the record's fields after the last write, without OwedFrom: counts added; state, effect and answer by the chosen write. (Invariants 2, 9, 17 and 55.)
func (d draft) change() Change {
	c := Change{Attempts: d.op.Attempts, Sends: d.given.SendsBefore(d.op.Sends) + d.sends}
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
		d.changeOpen(&c)
		return c
	}
	c.Final = true
	c.Unreported, c.Told = d.unreported(), !d.given.Pass
	c.KeyTold = d.op.EndsKeyTold(d.m.Left || d.m.Broken || !d.given.Created)
	return c
}

// changeOpen fills c for an operation that stays unfinished: held, or pending with the time of its next attempt. If its call goes on with it later, c bounds its first send,
// too. Aside: this client leaves it alone for a while, or no longer. (Invariants 7, 8, 24 and 43.)
func (d draft) changeOpen(c *Change) {
	c.State = persist.StatePending
	c.Unmark = d.write == LeaveUnsent || !d.history.InDoubt() && d.proof.Kind == ProvesExpiry // nothing was ever sent, and now it may not be
	marked := d.op.MaybeSent && !c.Unmark
	if c.SendBefore = d.op.SendBefore; d.Leaves() {
		c.SendBefore = d.op.firstSendBy(marked, d.m.LatestFirst)
	}
	if c.Hold = d.holdReason(); c.Hold != "" {
		c.State, c.Answer = persist.StateHeld, KeepAnswer // for the person who settles it
		return
	}
	if d.write == LeaveOpen {
		c.Answer = KeepFlawed
	}
	c.NextAttempt = d.notBefore(marked)
	switch {
	case d.sends > 0:
		c.Aside = AsideTaken
	case d.given.Pass && d.isLocal() && !d.unreached && !d.m.GivenUp: // no pause of its origin holds it back
		c.Aside = AsideLeft
	}
}

// holdReason returns the reason to hold the operation; empty: a later pass (Resume or Run) may send it. A caller of plain HTTP may act on its answer, so no pass sends
// after it. An enqueued operation is sent all the same, as promised. (Invariants 18 and 29.)
func (d draft) holdReason() persist.HoldReason {
	if d.proof.Hold == "" && d.m.Shown && !d.op.Enqueued {
		return persist.HoldCaller
	}
	return d.proof.Hold
}

// notBefore returns the earliest time of the next drive (marked: the operation may have been sent):
//   - d.next, or the operation's first pause from now if d.next is zero, after a long Retry-After, a clock set back, or a call given up or draining;
//   - the time as before, but not this very moment, if no server was reached, or the limiter was slow before the first send;
//   - the later one of d.next and a pause in all other cases. The pause grows with the failed attempts.
//
// It is never later than the end of the time for sends: the next pass then holds the record, and tells of it. (Invariants 16 and 28.)
func (d draft) notBefore(marked bool) time.Time {
	now := d.now.Round(0)
	until := d.op.sendableUntil(marked)
	at := now.Add(d.op.pause(d.attempts, now, until))
	switch {
	case d.isLocal(), d.limited && d.attempts == 0:
		at = d.op.NextAttempt
		if soon := now.Add(1); at.Before(soon) {
			at = soon
		}
	case d.stop == LongRetryAfter, d.stop == OriginDown, d.stop == ClockBack, d.m.GivenUp:
		at = cmp.Or(d.next, now.Add(d.op.Pauses.First))
	case d.next.After(at):
		at = d.next
	}
	if over := until.Add(time.Millisecond); !until.IsZero() && at.After(over) {
		at = over
	}
	return at.Round(0)
}

package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides the steps of an attempt, from its begin to the wait for the next one.

// attempting is the end of a drive, with the attempts before it.
type attempting struct {
	ending
	after  Step // the step behind Check
	looked bool // the attempt has asked by the business reference, and found nothing
}

// beginAttempt decides the first step of an attempt. (Invariants 1 and 50.)
func (d *attempting) beginAttempt() {
	d.looked = false
	if d.given.AsksFirst(d.history.InDoubt()) {
		d.step = AskFirst
		return
	}
	d.beginSend()
}

// AsksFirst reports whether a lookup comes before the next send. inDoubt: an attempt of this drive may have had an effect. (Invariants 1 and 50.)
func (g Given) AsksFirst(inDoubt bool) bool {
	return g.AskFirst && !g.AskedAgain && (g.Doubted || inDoubt)
}

// beginSend decides the first step toward a send, after any question to the API. (Invariant 7.)
func (d *attempting) beginSend() {
	if WantsToken(&d.op) {
		d.step = CheckToken
		return
	}
	d.step, d.after = Check, Send
}

// judgeFirst takes the verdict of a lookup before a send. It counts as an attempt. (Invariants 42 and 50.)
func (d *attempting) judgeFirst(v classify.Verdict, sent Sent, halted bool) {
	same := v.Kind == classify.KindFinal
	if d.given.OtherFacts {
		v, _ = UnderOtherFacts(v, 0, false)
		same = false
	}
	d.attempts++
	known, _ := d.history.Add(v)
	d.proof = ProofOf(known)
	d.proof.Again = d.proof.Again && !halted
	d.answer = Answer{}
	if same { // no other answer of a lookup is the operation's
		d.answer = sent.Answer
	}
	d.goOn()
}

// Checked takes the result of a check. sure: the journal told the time, and the lease is this client's. (Invariants 7, 8, 10 and 35.)
func (d *attempting) Checked(sure bool, now time.Time) {
	if d.step == CheckToken {
		d.step = FetchToken
		if sure && d.op.TooOld(now) {
			d.halt(TooOld, d.late())
		}
		return
	}
	switch bar := d.client.barTo(&d.op, d.history.InDoubt(), now); {
	case !sure:
		d.halt(Unsure, Proof{})
	case bar == isTooOld:
		d.halt(TooOld, d.late())
	case bar == hasNoKey:
		d.skip(Proof{Hold: persist.HoldNoKey})
	case bar == isOverHere:
		d.halt(WindowHere, Proof{Kind: ProvesUnsent})
	case bar == isExpired:
		d.skip(expired())
	case bar == isBeforeFirst:
		d.next = d.op.FirstSent
		d.halt(ClockBack, Proof{})
	case d.after == AskFirst:
		d.judgeFirst(classify.Verdict{Kind: classify.KindUnknown, Again: true}, Sent{}, d.stop == OriginDown)
	default:
		d.attempts++
		d.step = Send
	}
}

// KeyTaken takes the finding, at the step Check, of another operation with the same key on the wire. Nothing is sent: the API would take the two for one.
// (Invariant 46.)
func (d *attempting) KeyTaken() {
	d.halt(TakenKey, Proof{Hold: persist.HoldMismatch})
}

// OldFound takes the finding, at the step Check, that the operation in whose place this one stands stops it (intent.Successor). Nothing is sent before a person
// has decided. (Invariants 54 and 56.)
func (d *attempting) OldFound() {
	d.halt(OldHappened, Proof{Hold: persist.HoldPredecessor})
}

// MayLeave returns the reason against a send at this moment, or GoesOn. It is asked after Limiter, turn and Authorize; first: nothing of this
// attempt was sent yet. (Invariant 8.)
func (d *attempting) MayLeave(now time.Time, first bool) Stop {
	switch {
	case first && !d.history.InDoubt() && d.op.TooOld(now):
		return TooOld
	case d.client.ClockOf(&d.op, now) != InWindow:
		return WindowNear
	}
	return GoesOn
}

// halt is skip with a reason.
func (d *attempting) halt(why Stop, fallback Proof) {
	d.stop = why
	d.skip(fallback)
}

// skip ends the drive before its next attempt: with fallback, unless an earlier final answer counts. (Invariant 24.)
func (d *attempting) skip(fallback Proof) {
	known, earlierCounts := d.history.Add(classify.Verdict{Kind: classify.KindNotSent})
	if known.Kind == classify.KindFinal {
		d.proof = ProofOf(known)
		d.goOn()
		return
	}
	if earlierCounts && fallback.Kind == ProvesUnsent { // not true of the refused attempt
		fallback.Kind = ProvesRefusal
	}
	d.answer, d.proof = Answer{}, fallback
	d.goOn()
}

// goOn decides the step after an attempt. (Invariants 16 and 28.)
func (d *attempting) goOn() {
	if d.proof.Again {
		d.step = Draw
		return
	}
	d.conclude()
}

// Drawn holds everything behind a wait, beside the drive itself.
type Drawn struct {
	Scheduled time.Duration // drawn by the policy's schedule
	Elapsed   time.Duration // since the drive began
	Deadline  time.Time     // of the caller, by the clock of now; zero: none
	GivenUp   bool          // the call was given up, or is draining
}

// Drawn takes everything behind a wait, and decides on wait or stop. (Invariants 16, 28 and 48.)
func (d *attempting) Drawn(drawn Drawn, now time.Time) {
	p := Plan{
		Client: &d.client, Now: now, Started: now.Add(-drawn.Elapsed), Deadline: drawn.Deadline,
		WindowEnd: d.op.FirstSent.Add(d.op.Window - d.client.Margin(d.op.Window)),
		Attempts:  d.Spent().Attempts, InFlight: d.Spent().InFlight, Errors: d.equal, Hint: d.hint,
		Scheduled: ClampDelay(drawn.Scheduled, d.given.LeastDelay, d.client.MaxDelay),
	}
	if !d.op.MaybeSent { // it still waits for its token
		p.WindowEnd = d.op.SendBefore
	}
	if d.history.InDoubt() {
		p.LastAsk = lastAsk(now, d.op.NextAttempt, p.WindowEnd, d.op.Window)
	}
	if d.atOnce {
		d.atOnce, p.Scheduled = false, ClampDelay(0, d.given.LeastDelay, d.client.MaxDelay)
	}
	d.wait, d.next, d.stop = p.Next()
	if d.stop == GoesOn && drawn.GivenUp {
		d.stop = GivenUp
	}
	if d.stop == GoesOn {
		d.step = Wait
		return
	}
	if d.next.IsZero() {
		d.next = now.Add(d.wait)
	}
	d.conclude()
}

// Waited takes the result of the step Wait. over is false if the wait was cut: the call was given up, or is draining. (Invariant 40.)
func (d *attempting) Waited(over bool) {
	if over {
		d.beginAttempt()
		return
	}
	d.stop = GivenUp
	d.conclude()
}

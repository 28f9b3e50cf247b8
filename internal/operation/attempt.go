package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// attempting is the end of a drive, with the attempts before it.
type attempting struct {
	ending
	after  Step // the step behind Check
	looked bool // the attempt has asked by the business reference, and found nothing
}

// beginAttempt decides the first step of an attempt: a lookup if the effect is in doubt and the policy asks first; else the way to a send. (Invariants 1 and 50.)
func (d *attempting) beginAttempt() {
	d.looked = false
	if d.given.AsksFirst(d.history.InDoubt()) {
		d.step = AskFirst
		return
	}
	d.beginSend()
}

// AsksFirst reports whether a lookup by the business reference (such as an order number) comes before the next send: the policy wants it, and an attempt may have had an
// effect. g.Doubted says so of earlier attempts, inDoubt of this series. A confirmed operation, sent again for its answer alone, needs none. (Invariants 1 and 50.)
func (g Given) AsksFirst(inDoubt bool) bool {
	return g.AskFirst && !g.AskedAgain && (g.Doubted || inDoubt)
}

// beginSend decides the first step toward a send: the way to a token if the server hands out the key, else Check, a look at clock and lease, then Send. (Invariant 7.)
func (d *attempting) beginSend() {
	if WantsToken(&d.op) {
		d.step = CheckToken
		return
	}
	d.step, d.after = Check, Send
}

// judgeFirst takes the verdict v of a lookup made in place of a send. It counts as an attempt, and may end the operation. By other facts (the client's profile has
// changed since the begin) it proves less. halted: the origin takes no connections, so no other attempt follows. (Invariants 42 and 50.)
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

// Checked takes the result of the step Check or CheckToken, a look at clock and lease just before a request. sure: the journal told the time, now, and the lease is this
// client's. A bar to the send ends the series of attempts with its reason; else the send follows, or (d.after) an attempt without it. (Invariants 7, 8, 10 and 35.)
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

// KeyTaken ends the series of attempts, and holds the operation for a person: the driver has found, at the step Check, that another operation with the same key is being
// sent. The API would take the two for one. (Invariant 46.)
func (d *attempting) KeyTaken() {
	d.halt(TakenKey, Proof{Hold: persist.HoldMismatch})
}

// OldFound ends the series of attempts, and holds the operation for a person: the driver has found, at the step Check, that the operation which this one replaces forbids
// a send of it (intent.Successor): it may have taken effect, for example. (Invariants 54 and 56.)
func (d *attempting) OldFound() {
	d.halt(OldHappened, Proof{Hold: persist.HoldPredecessor})
}

// MayLeave returns the reason against the send at the last moment before its bytes leave, or GoesOn. Waits for the limiter and for Authorize are over then, and may have
// taken all the time. first: nothing of this attempt was sent before, so it is no hop of a redirect. (Invariant 8.)
func (d *attempting) MayLeave(now time.Time, first bool) Stop {
	switch {
	case first && !d.history.InDoubt() && d.op.TooOld(now):
		return TooOld
	case d.client.ClockOf(&d.op, now) != InWindow:
		return WindowNear
	}
	return GoesOn
}

// halt ends the series of attempts before the next one, for the reason why. fallback is the proof then, unless an earlier answer is final: see skip.
func (d *attempting) halt(why Stop, fallback Proof) {
	d.stop = why
	d.skip(fallback)
}

// skip ends the attempts before another send, unless fallback.Again. fallback is the proof then, unless an earlier answer is final: that one counts. An unsent attempt is
// added, to learn that; after a refused one, "unsent" would not be true. (Invariant 24.)
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

// goOn decides the step after an attempt: Draw, the choice of a wait, if another attempt may help; else the last write of the series. (Invariants 16 and 28.)
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

// Drawn takes the result of the step Draw: all that the wait for the next attempt depends on. It decides on that wait, or on the end of the attempts if a bound of
// the policy, the caller or the key's window is reached. atOnce: the next attempt has other credentials, and need not wait. (Invariants 16, 28 and 48.)
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

// Waited takes the result of the step Wait, the wait for the next attempt. over is false if the wait was cut, since the call was given up or its client is
// closing: then the attempts end, and the operation is left as it is. (Invariant 40.)
func (d *attempting) Waited(over bool) {
	if over {
		d.beginAttempt()
		return
	}
	d.stop = GivenUp
	d.conclude()
}

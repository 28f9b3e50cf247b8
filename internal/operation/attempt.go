package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides the steps of an attempt, and the consequences of its result.

// Sent is the result of a request: a send of the operation, a lookup, or a request for a token.
type Sent struct {
	Answer Answer        // zero: there is none
	Sends  int           // with those of redirects; a request for a token is none
	Unsent bool          // nothing was sent, by proof, or there was no request
	TooOld bool          // it was not sent: the time for the first send was over just before
	Hint   time.Duration // the answer's wait (Retry-After)
	Error  uint64        // stands for what a 500 says that the API may keep under the key; zero: it is none
	Down   time.Time     // the origin takes no connections before this time; zero: it does, or it is not known
	Source bool          // its credentials came from a source that can be asked again
}

// beginAttempt decides the first step of an attempt. (Invariant 1.)
func (d *Drive) beginAttempt() {
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
func (d *Drive) beginSend() {
	if d.op.WantsToken() {
		d.step = CheckToken
		return
	}
	d.step, d.after = Check, Send
}

// Asked takes the finding of a lookup by the business reference, and the result of its request. asked is false for a request without such a
// reference: then nothing was asked. (Invariants 8 and 50.)
func (d *Drive) Asked(finding classify.Finding, sent Sent, asked bool) {
	if !asked {
		finding = classify.FindingUnclear
	}
	v, settled := Found(finding)
	if d.step == AskDuplicate {
		d.duplicateAsked(v, sent, asked)
		return
	}
	halted := d.count(sent)
	if sent.Answer.ID != 0 {
		d.hint = sent.Hint
	}
	switch {
	case finding == classify.FindingNone || !asked:
		d.looked = asked
		d.beginSend()
	case settled:
		d.judgeFirst(v, sent, halted)
	default: // past the window the operation is held
		d.step, d.after = Check, AskFirst
	}
}

// judgeFirst takes the verdict of a lookup before a send. It counts as an attempt. (Invariants 42 and 50.)
func (d *Drive) judgeFirst(v classify.Verdict, sent Sent, halted bool) {
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
func (d *Drive) Checked(sure bool, now time.Time) {
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
		d.halt(WindowHere, Proof{})
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
func (d *Drive) KeyTaken() {
	d.halt(TakenKey, Proof{Hold: persist.HoldMismatch})
}

// OldFound takes the finding, at the step Check, that StopsSuccessor of the operation in whose place this one stands. Nothing is sent before a person
// has decided. (Invariants 54 and 56.)
func (d *Drive) OldFound() {
	d.halt(OldHappened, Proof{Hold: persist.HoldPredecessor})
}

// MayLeave returns the reason against a send at this moment, or GoesOn. It is asked after Limiter, turn and Authorize; first: nothing of this
// attempt was sent yet. (Invariant 8.)
func (d *Drive) MayLeave(now time.Time, first bool) Stop {
	switch {
	case first && !d.history.InDoubt() && d.op.TooOld(now):
		return TooOld
	case d.client.ClockOf(&d.op, now) != InWindow:
		return WindowNear
	}
	return GoesOn
}

// ExtendsSendUntil reports whether a later SendUntil is written, durably, before a send: the send may last until then, beyond the stored time. Another
// process relies on that time once the lease has ended. An operation that is asked again for its answer has ended. (Invariants 12 and 31.)
func (d *Drive) ExtendsSendUntil(stored, until time.Time) bool {
	return !d.given.AskedAgain && until.After(stored)
}

// late returns the proof of an operation never sent, after the time for its first send. An operation begun by this call has no more to expect,
// unless an Enqueue has promised a send of it. (Invariants 2, 8 and 18.)
func (d *Drive) late() Proof {
	if d.given.Created && !d.op.Enqueued {
		return Proof{Kind: ProvesUnsent}
	}
	return expired()
}

// halt is skip with a reason.
func (d *Drive) halt(why Stop, fallback Proof) {
	d.stop = why
	d.skip(fallback)
}

// skip ends the drive before its next attempt: with fallback, unless an earlier final answer counts. (Invariant 24.)
func (d *Drive) skip(fallback Proof) {
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

// Unanswered returns the verdict on an attempt without an answer: an effect is possible, unless nothing was handed to the network, by proof. fatal:
// another attempt cannot help. (Invariants 2 and 24.)
func Unanswered(unsent, fatal bool) classify.Verdict {
	if unsent {
		return classify.Verdict{Kind: classify.KindNotSent, Again: !fatal}
	}
	return classify.Verdict{Again: !fatal}
}

// Sent takes the result of a send, and the verdict on it. (Invariants 1 and 4.)
func (d *Drive) Sent(v classify.Verdict, sent Sent) {
	d.sends += sent.Sends
	d.hint = sent.Hint
	d.verdict, d.own = v, sent.Answer
	switch {
	case v.AlreadyDone:
		d.step = LookUp
	case v.Reason == classify.ReasonDuplicate && d.history.InDoubt():
		d.step = AskDuplicate
	default:
		d.judge(v, sent)
	}
}

// LookedUp takes the answer of the resource named by an already-done answer, none if the lookup failed, and the verdict on both. (Invariant 4.)
func (d *Drive) LookedUp(v classify.Verdict, sent Sent) {
	d.sends += sent.Sends
	if d.given.OtherFacts { // the resource was read by other facts, too
		v = d.verdict
	}
	if sent.Answer.ID == 0 || v.Kind != classify.KindFinal {
		sent = Sent{Answer: d.own}
	}
	d.judge(v, sent)
}

// Done returns the verdict on the answer that the lookup after it is for. (Invariant 4.)
func (d *Drive) Done() classify.Verdict { return d.verdict }

// duplicateAsked judges the answer "this business reference was used before". An earlier attempt of an operation in doubt may have used it.
// (Invariants 4 and 50.)
func (d *Drive) duplicateAsked(v classify.Verdict, sent Sent, asked bool) {
	hint := d.hint
	d.count(sent)
	d.hint = max(hint, sent.Hint)
	switch {
	case !asked:
		v = d.verdict
	case v.Kind == classify.KindFinal:
		d.judge(v, Sent{Answer: sent.Answer})
		return
	}
	d.judge(v, Sent{Answer: d.own})
}

// judge takes the verdict on an attempt. An answer counts even if the call was given up meanwhile. (Invariants 24, 42 and 49.)
func (d *Drive) judge(v classify.Verdict, sent Sent) {
	d.unread = false
	if d.given.OtherFacts && sent.Answer.ID != 0 {
		if v, d.unread = UnderOtherFacts(v, sent.Answer.Status, d.op.Hides); d.unread { // a lookup was read by other facts, too: the operation's own is kept
			sent.Answer = d.own
		}
	}
	if !d.op.Protected {
		v = classify.Once(v)
	}
	if d.given.AskedAgain && v.Kind == classify.KindFinal {
		v.Again = false // the operation is decided, whatever the server advises
	}
	d.doubtBefore = d.history.InDoubt() && !d.timedOutOnly(sent.Answer.Status)
	known, earlierCounts := d.history.Add(v)
	d.proof = ProofOf(known)
	if d.noteOrigin(sent) {
		d.proof.Again = false
	}
	if !earlierCounts {
		if d.proof.Kind == ProvesInFlight {
			d.inFlight++
		}
		d.answer = sent.Answer
	}
	d.verdict, d.own = classify.Verdict{}, Answer{}
	d.noteError(sent.Error)
	if sent.TooOld {
		d.halt(TooOld, d.late())
		return
	}
	if sent.Source && RefusesCredentials(sent.Answer.Status) && d.mayAskSource() {
		d.step = AskSource
		return
	}
	d.goOn()
}

// noteError counts equal errors in a row that the API may keep under the key. (Invariant 48.)
func (d *Drive) noteError(said uint64) {
	if said != d.said {
		d.said, d.equal = said, 0
	}
	if said != 0 {
		d.equal++
	}
}

// timedOutOnly reports whether only answers 408, with this one, put the operation in doubt: to a caller of plain HTTP they are as one. (Invariant 29.)
func (d *Drive) timedOutOnly(status int) bool {
	return status == 408 && d.answer.Status == 408 && !d.doubtBefore
}

// count counts the sends of a request beside the operation itself. halted: the origin is down, and the drive stops. (Invariant 16.)
func (d *Drive) count(sent Sent) (halted bool) {
	d.sends += sent.Sends
	return d.noteOrigin(sent)
}

// noteOrigin notes the state of the origin. halted: it was not reached, and this drive stops. (Invariant 16.)
func (d *Drive) noteOrigin(sent Sent) (halted bool) {
	d.unreached = !sent.Down.IsZero()
	d.reached = d.reached || !sent.Unsent
	if d.unreached && d.given.StopIfDown {
		d.next, d.stop = sent.Down, OriginDown
		return true
	}
	return false
}

// goOn decides the step after an attempt. (Invariants 16 and 28.)
func (d *Drive) goOn() {
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
func (d *Drive) Drawn(drawn Drawn, now time.Time) {
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

// KeepsAnswer reports whether the answer may still be returned after the step Wait. Any other answer may be closed before it. (Invariants 11 and 24.)
func (d *Drive) KeepsAnswer() bool {
	return d.proof.Kind == ProvesEnd || d.proof.Kind == ProvesRefusal
}

// Waited takes the result of the step Wait. over is false if the wait was cut: the call was given up, or is draining. (Invariant 40.)
func (d *Drive) Waited(over bool) {
	if over {
		d.beginAttempt()
		return
	}
	d.stop = GivenUp
	d.conclude()
}

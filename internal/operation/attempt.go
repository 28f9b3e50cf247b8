package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides what comes before an attempt, and what follows from its result.

// Sent is the result of a request: of a send of the operation, of a lookup, or of one for a token.
type Sent struct {
	Answer Answer        // zero: there is none
	Sends  int           // with those of redirects; a request for a token is none
	Unsent bool          // it is proved that nothing was sent, or there was no request
	TooOld bool          // it was not sent, since it was too late for the first send when it would have left
	Hint   time.Duration // the wait that the answer asks for
	Down   time.Time     // the origin takes no connections, and may be tried again then; zero: it does, or that is not known
}

// beginAttempt decides what comes first.
func (d *Drive) beginAttempt() {
	if d.given.AskFirst && d.history.InDoubt() && !d.given.AskedAgain {
		d.step = AskFirst
		return
	}
	d.beginSend()
}

// beginSend decides what comes before a send, once nothing has to be asked first.
func (d *Drive) beginSend() {
	if d.op.WantsToken() {
		d.step = CheckToken
		return
	}
	d.step, d.after = Check, Send
}

// Asked takes the finding of a lookup by the business reference, and the result of its request. asked is false where the request has no
// such reference: then nothing was asked.
func (d *Drive) Asked(finding classify.Finding, sent Sent, asked bool) {
	if !asked {
		finding = classify.FindingUnclear
	}
	v, settled := Found(finding)
	if d.step == AskDuplicate {
		d.duplicateAsked(v, settled, sent, asked)
		return
	}
	halted := d.count(sent)
	if sent.Answer.ID != 0 {
		d.hint = sent.Hint
	}
	switch {
	case finding == classify.FindingNone || !asked:
		d.beginSend()
	case settled:
		d.judgeFirst(v, sent, halted)
	default: // past the window the operation is held
		d.step, d.after = Check, AskFirst
	}
}

// judgeFirst takes the verdict of a lookup before a send. It counts as an attempt.
func (d *Drive) judgeFirst(v classify.Verdict, sent Sent, halted bool) {
	same := v.AlreadyDone
	if d.given.OtherFacts && v.Kind != classify.KindUnknown {
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

// Checked takes whether the journal said what time it is, and who has the operation, and the time now.
func (d *Drive) Checked(sure bool, now time.Time) {
	if d.step == CheckToken {
		d.step = FetchToken
		if sure && d.op.TooOld(now) {
			d.stop = TooOld
			d.skip(expired())
		}
		return
	}
	switch clock := d.client.ClockAt(d.op.FirstSent, now, d.op.Window); {
	case !sure:
		d.stop = Unsure
		d.skip(Proof{})
	case !d.history.InDoubt() && d.op.TooOld(now):
		d.stop = TooOld
		d.skip(expired())
	case d.history.InDoubt() && !d.op.Protected: // of an earlier process, or asked again for its answer
		d.skip(Proof{Hold: persist.HoldNoKey})
	case clock == OutOfWindow && !WindowOver(now.Sub(d.op.FirstSent), d.op.Window): // for this client alone
		d.stop = WindowHere
		d.skip(Proof{})
	case clock == OutOfWindow:
		d.skip(expired())
	case clock == BeforeFirst:
		d.stop, d.next = ClockBack, d.op.FirstSent
		d.skip(Proof{})
	case d.after == AskFirst:
		d.judgeFirst(classify.Verdict{Kind: classify.KindUnknown, Again: true}, Sent{}, d.stop == OriginDown)
	default:
		d.attempts++
		d.step = Send
	}
}

// MayLeave returns the reason why a send must not leave now, or GoesOn. It is asked once Limiter, turn and Authorize have let it go; first
// reports whether nothing of this attempt was sent yet.
func (d *Drive) MayLeave(now time.Time, first bool) Stop {
	switch {
	case first && !d.history.InDoubt() && d.op.TooOld(now):
		return TooOld
	case d.client.ClockAt(d.op.FirstSent, now, d.op.Window) != InWindow:
		return WindowNear
	}
	return GoesOn
}

// skip ends the drive without the attempt that was about to be made: with fallback, unless an earlier final answer counts.
func (d *Drive) skip(fallback Proof) {
	known, earlierCounts := d.history.Add(classify.Verdict{Kind: classify.KindNotSent})
	if earlierCounts && known.Kind == classify.KindFinal {
		d.proof = ProofOf(known)
		d.goOn()
		return
	}
	if earlierCounts && fallback.Kind == ProvesUnsent { // that is not true of the one that was refused
		fallback.Kind = ProvesRefusal
	}
	d.answer, d.proof = Answer{}, fallback
	d.goOn()
}

// TokenFetched takes whether there is a token, whether it may help to ask once more, and the result of the request, if there was one.
func (d *Drive) TokenFetched(ok, again bool, sent Sent) {
	halted := d.count(sent)
	d.hint = sent.Hint
	if ok {
		d.step = KeepToken
		return
	}
	d.attempts++
	d.skip(Proof{Kind: ProvesUnsent, Again: again && !halted})
}

// TokenKept takes whether the journal has the token, with the mark of a send that follows.
func (d *Drive) TokenKept(ok bool) {
	if ok {
		d.step, d.after = Check, Send
		return
	}
	d.attempts++
	d.skip(Proof{Kind: ProvesUnsent})
}

// Sent takes the result of a send, and the verdict on it.
func (d *Drive) Sent(v classify.Verdict, sent Sent) {
	d.sends += sent.Sends
	d.hint = sent.Hint
	d.verdict, d.own = v, sent.Answer
	switch answered := sent.Answer.ID != 0; {
	case answered && v.AlreadyDone:
		d.step = LookUp
	case answered && v.Reason == classify.ReasonDuplicate && d.history.InDoubt():
		d.step = AskDuplicate
	default:
		d.judge(v, sent)
	}
}

// LookedUp takes the answer of the resource that an already-done answer names; none where that could not be had.
func (d *Drive) LookedUp(sent Sent) {
	d.sends += sent.Sends
	if sent.Answer.ID == 0 {
		sent = Sent{Answer: d.own}
	}
	d.judge(d.verdict, sent)
}

// duplicateAsked judges an answer that said that the business reference was used before. Of an operation in doubt, an earlier attempt may have
// used it.
func (d *Drive) duplicateAsked(v classify.Verdict, settled bool, sent Sent, asked bool) {
	hint := d.hint
	d.count(sent)
	d.hint = max(hint, sent.Hint)
	switch {
	case !asked:
		v = d.verdict
	case settled && v.AlreadyDone:
		d.judge(v, Sent{Answer: sent.Answer})
		return
	}
	d.judge(v, Sent{Answer: d.own})
}

// judge takes the verdict on an attempt. An answer counts even if the call was given up meanwhile.
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
	d.doubtBefore = d.history.InDoubt()
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
	if sent.TooOld {
		d.stop = TooOld
		d.skip(expired())
		return
	}
	d.goOn()
}

// count counts the sends of a request beside the operation itself, and reports whether the drive stops since the origin is down.
func (d *Drive) count(sent Sent) (halted bool) {
	d.sends += sent.Sends
	return d.noteOrigin(sent)
}

// noteOrigin notes whether the origin was reached. halted: it was not, and this drive ends then.
func (d *Drive) noteOrigin(sent Sent) (halted bool) {
	d.unreached = !sent.Down.IsZero()
	d.reached = d.reached || !sent.Unsent
	if d.unreached && d.given.StopIfDown {
		d.next, d.stop = sent.Down, OriginDown
		return true
	}
	return false
}

// goOn decides what follows an attempt.
func (d *Drive) goOn() {
	if d.proof.Again {
		d.step = Draw
		return
	}
	d.conclude()
}

// Drawn is all that a wait depends on, beside the drive itself.
type Drawn struct {
	Scheduled time.Duration // drawn by the policy's schedule
	Elapsed   time.Duration // since the drive began
	Deadline  time.Time     // of the caller, by the clock of now; zero: none
	GivenUp   bool          // the call was given up, or is draining
}

// Drawn takes all that a wait depends on.
func (d *Drive) Drawn(drawn Drawn, now time.Time) {
	p := Plan{
		Client: &d.client, Now: now, Started: now.Add(-drawn.Elapsed), Deadline: drawn.Deadline,
		WindowEnd: d.op.FirstSent.Add(d.op.Window - d.client.Margin(d.op.Window)),
		Attempts:  d.attempts, InFlight: d.inFlight, Hint: d.hint,
		Scheduled: ClampDelay(drawn.Scheduled, d.given.LeastDelay, d.client.MaxDelay),
	}
	if !d.op.MaybeSent { // it still waits for its token
		p.WindowEnd = d.op.SendBefore
	}
	if d.history.InDoubt() {
		p.LastAsk = p.WindowEnd.Add(-d.op.Window / 10)
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

// KeepsAnswer reports whether the answer may still be returned after the step Wait. Any other may be closed before it.
func (d *Drive) KeepsAnswer() bool {
	return d.proof.Kind == ProvesEnd || d.proof.Kind == ProvesRefusal
}

// Waited takes whether the wait was over, or was cut short since the call was given up, or is draining.
func (d *Drive) Waited(over bool) {
	if over {
		d.beginAttempt()
		return
	}
	d.stop = GivenUp
	d.conclude()
}

package operation

import (
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
)

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

// Sent takes the result of the step Send, one send of the operation, and v, the verdict on its answer. Two answers lead to a lookup first: "already done", and "this
// business reference was used before" if an earlier attempt may have used it. (Invariants 1, 4, 50 and 63.)
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

// Asked takes the result of a lookup by the business reference (such as an order number), after the steps AskFirst and AskDuplicate: its finding, and sent, its request.
// asked is false for an operation without a reference: nothing was asked. After "there is none" the send begins; after no clear finding, an attempt without a send is
// counted once Check allows it. (Invariants 8 and 50.)
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

// LookedUp takes the result of the step LookUp, the read of the resource named by an "already done" answer: sent, none if the read failed, and v, the verdict on both
// answers. If the read ends nothing, the "already done" answer counts alone. (Invariants 4 and 42.)
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

// Done returns the verdict on the "already done" answer, before the lookup that follows it (the step LookUp). The driver judges both answers together. (Invariant 4.)
func (d *Drive) Done() classify.Verdict { return d.verdict }

// duplicateAsked takes the lookup after the answer "this business reference was used before": an earlier attempt of this operation may have used it. A final verdict v
// ends it. Else the first answer counts, with v or, if nothing was asked, its own verdict, and the longer wait (hint). (Invariants 4 and 50.)
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

// judge adds the verdict v on an attempt to those before: d.proof is what they prove together, d.answer the answer that counts, also if its caller has given up. Then it
// decides the next step. Without a key at the API (op.Protected), only an unsent attempt is made again (Once). (Invariants 8, 24, 42, 49 and 63.)
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

// count counts the sends of a lookup, or of a request for a token. halted: the origin takes no connections, and no further attempt follows. (Invariant 16.)
func (d *Drive) count(sent Sent) (halted bool) {
	d.sends += sent.Sends
	return d.noteOrigin(sent)
}

// noteOrigin notes whether a request reached its origin. halted: it takes no connections, and no attempt follows for now (Given.StopIfDown). (Invariant 16.)
func (d *Drive) noteOrigin(sent Sent) (halted bool) {
	d.unreached = !sent.Down.IsZero()
	d.reached = d.reached || !sent.Unsent
	if d.unreached && d.given.StopIfDown {
		d.next, d.stop = sent.Down, OriginDown
		return true
	}
	return false
}

// mayAskSource reports whether another attempt, with other credentials from their source, may follow an answer 401 or 407: the refused send had no effect, and its key
// protects the next one. An operation in doubt stays in doubt. Each call asks the source once, and only if an attempt is left. (Invariants 2, 49 and 63.)
func (d *Drive) mayAskSource() bool {
	spent := d.Spent()
	return d.op.Protected && !spent.Source && spent.Attempts < d.client.MaxAttempts &&
		d.proof.Hold == "" && (d.proof.Kind == ProvesRefusal || d.proof.Kind == ProvesNothing && d.doubtBefore)
}

// SourceAsked takes the result of the step AskSource, a second question to the source of credentials that the API has refused. other: it gave other credentials. Then
// another attempt follows at once, within the bounds of any attempt. (Invariant 63.)
func (d *Drive) SourceAsked(other bool) {
	d.source, d.atOnce = true, other
	d.proof.Again = d.proof.Again || other
	d.goOn()
}

// RefusesCredentials reports whether an answer with this status refuses the credentials of its request. A 403 may be about the operation itself. (Invariant 63.)
func RefusesCredentials(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusProxyAuthRequired
}

// Unanswered returns the verdict on an attempt without an answer. unsent: it is proved that nothing was handed to the network; otherwise an effect is possible. fatal:
// another attempt cannot help. (Invariants 2 and 24.)
func Unanswered(unsent, fatal bool) classify.Verdict {
	if unsent {
		return classify.Verdict{Kind: classify.KindNotSent, Again: !fatal}
	}
	return classify.Verdict{Again: !fatal}
}

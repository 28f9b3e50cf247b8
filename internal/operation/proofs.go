package operation

import "github.com/oncehttp/oncehttp/internal/classify"

// proofs holds what all attempts of a drive prove together, and the answer that counts.
type proofs struct {
	history     classify.History
	doubtBefore bool // an attempt before the last one may have had an effect
	proof       Proof
	answer      Answer
	unread      bool // the answer settles nothing since this client has other facts
}

// Answer is the part of an answer behind the decisions. The zero value is none.
type Answer struct {
	ID     int // its name; the driver has the answer itself
	Status int
}

// Proof returns the proof of the attempts so far.
func (p *proofs) Proof() Proof { return p.proof }

// InDoubt reports whether some attempt may have had an effect, not settled by an answer.
func (p *proofs) InDoubt() bool { return p.history.InDoubt() }

// LostBeneath takes a send without an answer, made by the transport itself before the one whose result comes next. It may have had an effect, and
// that result says nothing of it. (Invariants 1 and 49.)
func (p *proofs) LostBeneath() { p.history.Doubt() }

// Answer returns the counting answer. The driver needs no other answer any more, except an AlreadyDone during its lookup.
func (p *proofs) Answer() Answer { return p.answer }

// Unread reports whether the answer settles nothing because of other facts in this client's profile.
func (p *proofs) Unread() bool { return p.unread }

// KeepsAnswer reports whether the answer may still be returned after the step Wait. Any other answer may be closed before it. (Invariants 11 and 24.)
func (p *proofs) KeepsAnswer() bool {
	return p.proof.Kind == ProvesEnd || p.proof.Kind == ProvesRefusal
}

// Withdrawn returns the trouble of an operation without an effect, by proof. No error names IsNotSent of an operation that may have been sent. (Invariant 2.)
func (p *proofs) Withdrawn() Trouble {
	if p.proof.Kind == ProvesRefusal {
		return IsRefused
	}
	return IsNotSent
}

// timedOutOnly reports whether only answers 408, with this one, put the operation in doubt: to a caller of plain HTTP they are as one. (Invariant 29.)
func (p *proofs) timedOutOnly(status int) bool {
	return status == 408 && p.answer.Status == 408 && !p.doubtBefore
}

// mayShow reports whether a caller of plain HTTP may get the last answer as its response although the outcome is unknown. 409 and 5xx claim
// nothing. A 2xx claims too much. A redirect would be followed. Any other answer suggests "nothing happened". Such a caller must not see it if
// something may have happened: after an earlier attempt in doubt, or with a record still in place, maybe taken up by another process. (Invariant 29.)
func (p *proofs) mayShow() bool {
	status := p.answer.Status
	if status == 409 || status >= 500 {
		return true
	}
	return status >= 400 && !p.doubtBefore && p.proof.Kind == ProvesNothing
}

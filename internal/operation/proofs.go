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

// Proof returns the proof of the attempts so far: what their answers together say about the effect.
func (p *proofs) Proof() Proof { return p.proof }

// InDoubt reports whether some attempt may have had an effect, and no answer has settled that since.
func (p *proofs) InDoubt() bool { return p.history.InDoubt() }

// LostBeneath notes a send without an answer, which the HTTP transport has repeated by itself. It may have had an effect, and the answer to the repeat, which comes next,
// says nothing of it. (Invariants 1 and 49.)
func (p *proofs) LostBeneath() { p.history.Doubt() }

// Answer returns the answer that counts. The driver may drop all others, except an "already done" answer during its lookup.
func (p *proofs) Answer() Answer { return p.answer }

// Unread reports whether the answer settles nothing since this client's profile states other facts than the one under which the operation was begun.
func (p *proofs) Unread() bool { return p.unread }

// KeepsAnswer reports whether a caller may still get the answer after the step Write. The driver closes any other one before it. (Invariants 11 and 24.)
func (p *proofs) KeepsAnswer() bool {
	return p.proof.Kind == ProvesEnd || p.proof.Kind == ProvesRefusal
}

// Withdrawn returns the trouble in the error of an operation without an effect, by proof: refused by the server, or else never sent. (Invariant 2.)
func (p *proofs) Withdrawn() Trouble {
	if p.proof.Kind == ProvesRefusal {
		return IsRefused
	}
	return IsNotSent
}

// timedOutOnly reports whether only answers 408 (Request Timeout), this status among them, left the effect in doubt: a caller of plain HTTP may see the last as if it
// were the only one. (Invariant 29.)
func (p *proofs) timedOutOnly(status int) bool {
	return status == 408 && p.answer.Status == 408 && !p.doubtBefore
}

// mayShow reports whether a caller of plain HTTP may get the last answer as its response although the outcome is unknown. 409 and 5xx claim nothing. A 2xx claims too
// much. A redirect would be followed. Any other answer suggests "nothing happened". Such a caller must not see it if something may have happened: after an earlier
// attempt in doubt, or with a record still in place, maybe taken up by another process. (Invariant 29.)
func (p *proofs) mayShow() bool {
	status := p.answer.Status
	if status == 409 || status >= 500 {
		return true
	}
	return status >= 400 && !p.doubtBefore && p.proof.Kind == ProvesNothing
}

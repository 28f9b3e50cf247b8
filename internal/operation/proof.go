package operation

import (
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// Kind is the kind of a Proof. The zero value claims nothing.
type Kind uint8

// The kinds.
const (
	ProvesNothing  Kind = iota // an effect is possible
	ProvesUnsent               // nothing was handed to the network
	ProvesRefusal              // by the server's word, it did not act
	ProvesInFlight             // the server still works on an earlier attempt
	ProvesEnd                  // the last answer is the operation's
	ProvesMismatch             // by the server's word, the key belongs to another request
	ProvesExpiry               // the time for sends is over
)

// Proof is the joint proof of all attempts at an operation.
type Proof struct {
	Kind        Kind
	Again       bool               // another attempt with the same key may help
	Hold        persist.HoldReason // nothing may be sent until it is settled
	Replayed    bool               // the server marked the answer as its stored one
	AlreadyDone bool
	Refused     bool // the body of a 2xx says so
	Stored      bool // the server gives this final answer again for the same key
}

// ProofOf returns the proof of a verdict on all attempts. (Invariant 24.)
func ProofOf(v classify.Verdict) Proof {
	p := Proof{Again: v.Again, Replayed: v.Replayed, AlreadyDone: v.AlreadyDone, Refused: v.Refused, Stored: v.Stored}
	switch v.Kind {
	case classify.KindNotSent:
		p.Kind = ProvesUnsent
	case classify.KindRefused:
		p.Kind = ProvesRefusal
	case classify.KindInFlight:
		p.Kind = ProvesInFlight
	case classify.KindFinal:
		p.Kind = ProvesEnd
	case classify.KindMismatch:
		p.Kind = ProvesMismatch
		if v.Hold {
			p.Hold = persist.HoldMismatch
		}
	}
	switch v.Reason {
	case classify.ReasonStoredError:
		p.Hold = persist.HoldStoredError
	case classify.ReasonRedirected:
		p.Hold = persist.HoldRedirected
	case classify.ReasonUnclear:
		p.Hold = persist.HoldUnclear
	case classify.ReasonUnread:
		p.Hold = persist.HoldUnread
	case classify.ReasonNoKey:
		p.Hold = persist.HoldNoKey
	case classify.ReasonDuplicate:
		p.Hold = persist.HoldDuplicate
	}
	return p
}

// expired returns the proof of an operation after its time for sends.
func expired() Proof { return Proof{Kind: ProvesExpiry, Hold: persist.HoldExpired} }

// Trouble names the trouble of a call, beside the verdict on its operation. The zero value is none.
type Trouble uint8

// The troubles.
const (
	NoTrouble Trouble = iota
	IsHeld
	IsNotSent
	IsRefused
	IsInFlight
	IsMismatch
	IsExpired
	IsStoredError
	IsRedirected
	IsDuplicate
	AnswerGone
	IsProved
)

// Trouble returns the trouble named by a proof.
func (p *Proof) Trouble() Trouble {
	switch p.Hold {
	case persist.HoldStoredError:
		return IsStoredError
	case persist.HoldRedirected:
		return IsRedirected
	case persist.HoldDuplicate:
		return IsDuplicate
	}
	switch p.Kind {
	case ProvesInFlight:
		return IsInFlight
	case ProvesMismatch:
		return IsMismatch
	case ProvesExpiry:
		return IsExpired
	}
	return NoTrouble
}

// Found returns the verdict of a lookup by the business reference. If settled is false, the operation stays open. (Invariant 50.)
func Found(f classify.Finding) (v classify.Verdict, settled bool) {
	switch f {
	case classify.FindingSame:
		return classify.Verdict{Kind: classify.KindFinal, AlreadyDone: true, Stored: true}, true
	case classify.FindingOther:
		return classify.Verdict{Kind: classify.KindMismatch, Hold: true}, true
	}
	return classify.Verdict{Kind: classify.KindUnknown, Again: true}, false
}

package operation

import (
	"bytes"
	"cmp"

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

// The proofs of verdicts, and the holds for their reasons.
var (
	kindOf = [...]Kind{
		classify.KindUnknown: ProvesNothing, classify.KindNotSent: ProvesUnsent, classify.KindRefused: ProvesRefusal,
		classify.KindInFlight: ProvesInFlight, classify.KindFinal: ProvesEnd, classify.KindMismatch: ProvesMismatch,
	}
	holdFor = [...]persist.HoldReason{
		classify.ReasonNone: "", classify.ReasonStoredError: persist.HoldStoredError, classify.ReasonRedirected: persist.HoldRedirected,
		classify.ReasonUnclear: persist.HoldUnclear, classify.ReasonUnread: persist.HoldUnread, classify.ReasonNoKey: persist.HoldNoKey,
		classify.ReasonDuplicate: persist.HoldDuplicate,
	}
)

// ProofOf returns what a verdict on all attempts proves: its kind, and the reason to hold the operation if nothing more may be sent. (Invariant 24.)
func ProofOf(v classify.Verdict) Proof {
	p := Proof{Kind: kindOf[v.Kind], Hold: holdFor[v.Reason], Again: v.Again, Replayed: v.Replayed, AlreadyDone: v.AlreadyDone, Refused: v.Refused, Stored: v.Stored}
	if v.Kind == classify.KindMismatch && v.Hold && p.Hold == "" {
		p.Hold = persist.HoldMismatch
	}
	return p
}

// expired returns the proof of an operation after its time for sends: nothing more may be sent, and it is held for a person. (Invariant 8.)
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
	IsSettled
	IsAbandoned
	IsTooLarge
)

// The troubles named by holds, by proofs and by ends.
var (
	troubleOfHold = map[persist.HoldReason]Trouble{
		persist.HoldStoredError: IsStoredError, persist.HoldRedirected: IsRedirected, persist.HoldDuplicate: IsDuplicate,
	}
	troubleOfKind = map[Kind]Trouble{ProvesInFlight: IsInFlight, ProvesMismatch: IsMismatch, ProvesExpiry: IsExpired}
	troubleOfEnd  = map[persist.State]Trouble{persist.StateMismatched: IsMismatch, persist.StateAbandoned: IsAbandoned, persist.StateSettled: IsSettled}
)

// Trouble returns the trouble that an error names for this proof: that of its hold, else of its kind, else none. (Invariant 9.)
func (p *Proof) Trouble() Trouble { return cmp.Or(troubleOfHold[p.Hold], troubleOfKind[p.Kind]) }

// Found returns the verdict of a lookup by the business reference: confirmed, another request's, refused, or unknown (settled is false then). (Invariant 50.)
func Found(f classify.Finding) (v classify.Verdict, settled bool) {
	switch f {
	case classify.FindingSame:
		return classify.Verdict{Kind: classify.KindFinal, AlreadyDone: true, Stored: true}, true
	case classify.FindingOther:
		return classify.Verdict{Kind: classify.KindMismatch, Hold: true}, true
	case classify.FindingRefused:
		return classify.Verdict{Kind: classify.KindFinal, Refused: true, Stored: true}, true
	}
	return classify.Verdict{Kind: classify.KindUnknown, Again: true}, false
}

// OtherFacts reports whether a client reads answers by other facts than those of the record. Both are digests; empty: the record has none, or the client does not know
// the profile. (Invariant 42.)
func OtherFacts(recorded, own string) bool { return recorded != "" && own != "" && recorded != own }

// UnderOtherFacts returns the verdict of a client with other facts: its profile has the name and version of the record's profile, and differs in the reading of answers.
// Sending goes on, and a success confirms. An end by a 4xx or a matcher alone becomes a hold: the facts of the record may read it otherwise. A refusal of one send proves
// nothing then. status is the status of the answer; hides: by the facts of the record a 2xx proves nothing by its status. If changed is false, w equals v. (Invariant
// 42.)
func UnderOtherFacts(v classify.Verdict, status int, hides bool) (w classify.Verdict, changed bool) {
	switch {
	case v.Kind == classify.KindRefused:
		return classify.Verdict{Kind: classify.KindUnknown, Again: v.Again, Replayed: v.Replayed, Flaw: v.Flaw}, true
	case v.Kind == classify.KindMismatch, v.Kind == classify.KindFinal && (v.AlreadyDone || v.Refused || hides || status >= 400):
		return classify.Verdict{Kind: classify.KindUnknown, Hold: true, Reason: classify.ReasonUnread, Replayed: v.Replayed, Flaw: v.Flaw}, true
	}
	return v, false
}

// IsUnread reports whether the operation is held for a recorded answer that its client could not read for certain (HoldUnread): another client may. (Invariant 42.)
func IsUnread(o *Op) bool { return o.Hold == persist.HoldUnread && o.Answered }

// EndsUnread reports whether the recorded answer, unreadable for an earlier client, ends the operation: if v, this client's verdict, is a success. (Invariant 42.)
func EndsUnread(o *Op, v classify.Verdict) bool {
	return IsUnread(o) && v.Kind == classify.KindFinal && (v.AlreadyDone || o.Status < 300 && !v.Refused)
}

// IsFlawedSuccess reports whether an answer is kept to compare the next one with it: a success whose content is maybe not the API's own. A GraphQL error is the API's
// own. (Invariants 4 and 26.)
func IsFlawedSuccess(flaw classify.Flaw, status int) bool {
	return flaw != classify.FlawNone && flaw != classify.FlawErrors && status < 300
}

// FlawedOf returns the recorded success of doubtful content; nil: none. A success in an unfinished record is one: the next is compared with it. (Invariants 4 and 26.)
func FlawedOf(rec *persist.Record) *persist.Answer {
	if rec.State.Final() || rec.Answer == nil || rec.Answer.Status >= 300 {
		return nil
	}
	return rec.Answer
}

// FlawedAgain reports whether a success of doubtful content came twice alike: before (nil: none) and now. recorded: before comes from an earlier run, without its body,
// and now is in that form, too. Then status and Content-Type count. The bodies may differ, but to hold is the safe side, and else each call would send once more.
// (Invariants 4 and 26.)
func FlawedAgain(before, now *persist.Answer, recorded bool) bool {
	switch {
	case before == nil || before.Status != now.Status:
		return false
	case recorded:
		return now.BodyDropped && before.Header.Get("Content-Type") == now.Header.Get("Content-Type")
	}
	return bytes.Equal(before.Body, now.Body)
}

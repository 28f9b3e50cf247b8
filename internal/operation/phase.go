package operation

import "github.com/oncehttp/oncehttp/persist"

// Phase tells where an operation stands: pending, held or ended.
type Phase struct {
	State    persist.State
	Hold     persist.HoldReason
	Standing Standing // StandingOf the record

	Witnessed bool // an event of the API proves its effect
	TakenBack bool // a person said that it was absent, and took that back
	Skipped   bool // it is a placeholder, and no operation: see persist.IsSkipped
	Erased    bool // a person had everything erased that no second effect depends on
}

// IsActedOn reports whether a caller of plain HTTP, or a person's act, goes on with a held operation or ends it. Then the answer of Config.Reconcile may be out of date a
// moment later: an undo takes an effect back, and a Rekey begins the operation anew. Two operations only a person ends: one whose settlement a person took back, and a
// placeholder that a person has begun. (Invariant 31.)
func (p *Phase) IsActedOn() bool {
	return p.Skipped || p.IsForCaller() || p.Hold == persist.HoldUndo || p.Hold == persist.HoldReopened || p.IsRekeyed()
}

// IsForCaller reports whether only a call with its key goes on with a held operation: a caller of plain HTTP (Transport) may have acted on its answer. (Invariant 29.)
func (p *Phase) IsForCaller() bool { return p.Hold == persist.HoldCaller }

// IsRekeyed reports whether the operation is held for an unfinished Rekey, a person's act that begins it under another key. (Invariant 31.)
func (p *Phase) IsRekeyed() bool {
	return p.Hold == persist.HoldRekey || p.Hold == persist.HoldRekeyHeld
}

// HadNoEffect reports whether the operation surely had no effect: the API refused it, or a person or a lookup said that it is absent. (Invariant 9.)
func (p *Phase) HadNoEffect() bool {
	effect := p.Standing.Effect()
	return effect == persist.EffectAbsent || effect == persist.EffectRefused
}

// MayLag reports whether the record may be behind the answers of this process: it holds another request under the key, and has not ended. A caller may have that one's
// answer already, and its end is still being written. The call waits for it, and looks again. (Invariant 30.)
func (p *Phase) MayLag(says Opening) bool {
	return !p.State.Final() && (says == SaysIncomparable || says == SaysOther)
}

// FlushesFirst reports whether the journal is flushed before an error says how the operation ended: an end is visible before it is durable. After the loss of an effect
// that happened, the server would only be asked for the answer once more. (Invariant 13.)
func (p *Phase) FlushesFirst() bool {
	return p.State.Final() && p.Standing.Effect() != persist.EffectHappened
}

// EndsByEvidence reports whether an unfinished operation is settled as happened, and not sent: an event of the API proves its effect. An undo under way comes first: it may
// take that effect back. (Invariant 56.)
func (p *Phase) EndsByEvidence() bool {
	return p.Witnessed && !p.State.Final() && p.Hold != persist.HoldUndo
}

// IsContradicted reports whether an event of the API proves an effect against the recorded end: it came while a refusal, told before, was written. (Invariant 56.)
func (p *Phase) IsContradicted() bool {
	return p.Witnessed && p.State.Final() && p.Standing.Effect() != persist.EffectHappened
}

// WhyFinal returns the trouble named by an error about an operation that has ended; none if its answer says more. (Invariant 9.)
func (p *Phase) WhyFinal() Trouble { return troubleOfEnd[p.State] }

// WhyHeld returns the troubles named by an error about an operation that is held. (Invariant 9.)
func (p *Phase) WhyHeld() [2]Trouble {
	if p.Hold == persist.HoldDuplicate {
		return [2]Trouble{IsHeld, IsDuplicate}
	}
	return [2]Trouble{IsHeld}
}

// WhyOther returns the troubles named by an error about another request under the key. (Invariants 6 and 9.)
func (p *Phase) WhyOther() [2]Trouble {
	if p.State == persist.StateAbandoned {
		return [2]Trouble{IsMismatch, IsAbandoned}
	}
	return [2]Trouble{IsMismatch}
}

package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about an event of the API that proves the effect of an operation: a webhook's. Such an event only ever says that the
// operation happened. (Invariant 56.)

// Testimony is the use of such an event for an operation.
type Testimony uint8

// The testimonies. The zero value is the cautious one.
const (
	TestifiesNothing Testimony = iota // nothing: by the record it was never sent, so the event is about something else
	TestifiesAgain                    // nothing: it is known to have happened
	Contradicts                       // nothing is changed: it has ended otherwise, and somebody is told
	Testifies                         // Witnessed is written, unless it is already
)

// Testimony returns the use of an event for the operation. (Invariant 56.)
func (o *Op) Testimony() Testimony {
	switch {
	case o.Standing.Effect() == persist.EffectHappened:
		return TestifiesAgain
	case o.State.Final():
		return Contradicts
	case !o.MaybeSent && o.Sends == 0: // it is later than the event, or another
		return TestifiesNothing
	}
	return Testifies
}

// WithEvidence returns the operation with the evidence of such an event. A hold ends: nothing is in doubt any more. A drive under way goes on, and
// finds the evidence at its end. An operation that is being undone stays held: its undo may have taken the effect back. (Invariant 56.)
func (o Op) WithEvidence() Op {
	o.Witnessed = true
	if o.Hold != persist.HoldUndo {
		o.State, o.Hold, o.NextAttempt = persist.StatePending, "", time.Time{}
		o.Answered, o.Status, o.Dropped, o.AskAgain = false, 0, false, false
	}
	return o
}

// EndsByEvidence reports whether the operation is settled as happened by its evidence, and is not sent. (Invariant 56.)
func (o *Op) EndsByEvidence() bool {
	return o.Witnessed && !o.State.Final() && o.Hold != persist.HoldUndo
}

// heedEvidence lets the last write of a drive heed evidence from the time of the drive. Without a success of its own, the operation has
// happened all the same. Callers that were told a refusal before are not contradicted by the record: somebody is told. (Invariants 30 and 56.)
func (d *Drive) heedEvidence() {
	if d.step == Write && d.op.EndsByEvidence() && !d.told && !d.succeeds() {
		d.write = EndHappened
	}
}

// succeeds reports whether the drive ends with a success. (Invariant 56.)
func (d *Drive) succeeds() bool {
	return d.write == EndConfirmed && Answered(d.answer.Status, d.proof.AlreadyDone, d.proof.Refused) != Refused
}

// AnswersFirst tells the drive that callers have the answer before the step Write.
func (d *Drive) AnswersFirst() { d.told = true }

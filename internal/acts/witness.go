package acts

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about events of the API (webhooks) as proofs of an effect. Such an event only ever says that the
// operation happened. (Invariant 56.)

// Testimony is the use of such an event for an operation.
type Testimony uint8

// The testimonies. The zero value is the cautious one.
const (
	TestifiesNothing Testimony = iota // nothing: by the record it was never sent before the event: that is about something else
	TestifiesAgain                    // nothing: it is known to have happened
	Contradicts                       // its end stays: it has ended otherwise, and somebody is told
	Testifies                         // WithEvidence is written
)

// earlier bounds the time by which an event may seem older than the first send of its operation, since the API has its own clock.
const earlier = time.Hour

// IsEarlier reports whether an event of the API, created then, is about something else than the operation of rec: that was first sent later. The reference that
// names it in the event may be used again. A zero time of the event says nothing. earlier is the tolerance between two clocks. (Invariant 56.)
func IsEarlier(rec *persist.Record, created time.Time) bool {
	first := rec.FirstSent
	if first.IsZero() {
		first = rec.Created
	}
	return !created.IsZero() && created.Before(first.Add(-earlier))
}

// Referred is one of the operations with the reference of an event. They may replace each other: a Redrive or a Rekey has begun one in the place of
// another, with its bytes.
type Referred struct {
	Op    operation.Op
	Early bool   // IsEarlier: the event is about something else
	First string // names the first of the operations that led to it
	Steps int    // the number of those
}

// Naming is the answer to the question for the operation of an event.
type Naming uint8

// The namings. The zero value is the cautious one.
const (
	NamesSeveral Naming = iota // several operations may be meant: the event proves nothing
	NamesNone                  // no operation has the reference
	NamesUnsent                // those with it were never sent, or long after the event
	NamesOne
)

// Named returns the index of the operation of an event, of all with its reference; -1 if none can be. One never sent, or first sent long after the event, is none.
// If the rest replace each other (First is the same, Steps their order), it is the last of them, or the one known to have happened: they are one request, and nobody
// can tell by which send it took effect; the last is then sent no more. n is NamesOne if it is certain. unclear: there may be others with the reference. (Invariant
// 56.)
func Named(all []Referred, unclear bool) (at int, n Naming) {
	at, n = -1, NamesUnsent
	most := -1
	for i := range all {
		r := &all[i]
		if r.Early || !r.Op.EverSent() {
			continue
		}
		if at >= 0 && r.First != all[at].First {
			return at, NamesSeveral
		}
		steps := r.Steps
		if r.Op.Standing.Effect() == persist.EffectHappened {
			steps = len(all) + 1
		}
		if steps > most {
			at, most, n = i, steps, NamesOne
		}
	}
	switch {
	case len(all) == 0:
		return at, NamesNone
	case n == NamesOne && unclear:
		return at, NamesSeveral
	}
	return at, n
}

// TestimonyOf returns what an event of the API, which says that the operation happened, means for its record. early: by IsEarlier it is about something else.
// (Invariant 56.)
func TestimonyOf(o *operation.Op, early bool) Testimony {
	switch {
	case o.Standing.Effect() == persist.EffectHappened:
		return TestifiesAgain
	case early:
		return TestifiesNothing
	case o.State.Final():
		return Contradicts
	case !o.EverSent(): // it is later than the event, or another
		return TestifiesNothing
	}
	return Testifies
}

// StoresEvidence reports whether an event of the API is written into the record as evidence: the first one that proves the effect, or contradicts the recorded
// end. said is TestimonyOf the event. (Invariant 56.)
func StoresEvidence(o *operation.Op, said Testimony) bool {
	return !o.Witnessed && (said == Testifies || said == Contradicts)
}

// WithEvidence returns the operation with an event of the API as evidence of its effect. A hold ends: nothing is in doubt any more. Attempts under way go on,
// and find the evidence at their end. An operation under an undo stays held: the undo may have taken the effect back. (Invariant 56.)
func WithEvidence(o operation.Op) operation.Op {
	o.Witnessed = true
	if o.Hold != persist.HoldUndo {
		o = o.Unheld()
		o.Recorded = operation.Recorded{}
	}
	return o
}

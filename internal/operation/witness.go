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
	TestifiesNothing Testimony = iota // nothing: by the record it was never sent before the event, which is about something else
	TestifiesAgain                    // nothing: it is known to have happened
	Contradicts                       // its end stays: it has ended otherwise, and somebody is told
	Testifies                         // WithEvidence is written
)

// earlier is how long an event may seem to be created before the first send of its operation: the API's clock is another one.
const earlier = time.Hour

// IsEarlier reports whether an event created then is about something else than the operation of a record: that was first sent later. A reference may be
// used again. zero: the event does not say. (Invariant 56.)
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
	Op    Op
	Early bool   // IsEarlier: the event is about something else
	First string // names the first of the operations that led to it
	Steps int    // the number of those
}

// Naming is the answer to the question for the operation that an event is about.
type Naming uint8

// The namings. The zero value is the cautious one.
const (
	NamesSeveral Naming = iota // several operations may be meant: the event proves nothing
	NamesNone                  // no operation has the reference
	NamesUnsent                // those with it were never sent, or long after the event
	NamesOne
)

// Named returns the index of the operation that an event is about, of all with its reference. One that was never sent, or was first sent long after
// the event, is none. If the rest replace each other, it is the last of them, or the one that is known to have happened: they are one request, and the
// event says that it took effect. By which send, nobody can tell; the last one is then sent no more, so that there is no second effect. unclear: there
// may be others with the reference. (Invariant 56.)
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

// Testimony returns the use of an event for the operation. early: IsEarlier says that it is about something else. (Invariant 56.)
func (o *Op) Testimony(early bool) Testimony {
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

// StoresEvidence reports whether an event with this testimony is written into the record. The first one is: as Witnessed, or beside an end that it
// contradicts. (Invariant 56.)
func (o *Op) StoresEvidence(said Testimony) bool {
	return !o.Witnessed && (said == Testifies || said == Contradicts)
}

// Successor is what is known of an operation in the place of another one.
type Successor struct {
	Begun    bool // a Redrive or a Rekey began it, and not the program under the next generation
	Early    bool // it was begun before the other one ended
	Another  bool // the record of the other one names another successor
	Unbegun  bool // it is about to begin
	Declined bool // the program takes the success of the other one for a decline: by its body, or by the verdicts of its profile now
}

// StopsSuccessor reports whether nothing is sent of an operation in the place of this one. Nothing is while this one may still take effect, if an event that
// came after its end proves it, or if another one has replaced it. If it took effect, nothing is begun: a generation is a new try after a refusal. Only a
// program that takes this success for a decline may try again. What was begun all the same (before the program knew, or in a transaction) is not sent if a
// person began it, or if it was begun before this one ended. So it is, too, if a person began this one, or took back that it was absent: after an absence,
// callers may go on under a key of their own. What was abandoned or mismatched stops nothing else: a person has decided, or will. (Invariants 54 and 56.)
func (o *Op) StopsSuccessor(s Successor) bool {
	byPerson := o.Replaces || o.TakenBack
	switch {
	case s.Another, o.Standing == Open:
		return true
	case o.hadNoEffect():
		return o.Witnessed
	case o.Standing.Effect() == persist.EffectHappened:
		return byPerson || s.Begun || s.Early || s.Unbegun && !s.Declined
	}
	return byPerson || o.Witnessed
}

// WithEvidence returns the operation with the evidence of such an event. A hold ends: nothing is in doubt any more. A drive under way goes on, and
// finds the evidence at its end. An operation that is being undone stays held: its undo may have taken the effect back. (Invariant 56.)
func (o Op) WithEvidence() Op {
	o.Witnessed = true
	if o.Hold != persist.HoldUndo {
		o = o.free().unanswered()
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
	succeeds := d.write == EndConfirmed && d.Standing() != Refused
	if d.step == Write && d.op.EndsByEvidence() && !d.told && !succeeds {
		d.write = EndHappened
	}
}

// IsContradicted reports whether evidence contradicts the end of the operation: somebody is told. It came while a drive that had told its callers a
// refusal wrote that. (Invariant 56.)
func (o *Op) IsContradicted() bool {
	return o.Witnessed && o.State.Final() && o.Standing.Effect() != persist.EffectHappened
}

// AnswersFirst tells the drive that callers have the answer before the step Write. (Invariant 30.)
func (d *Drive) AnswersFirst() { d.told = true }

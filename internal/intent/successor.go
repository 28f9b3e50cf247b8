package intent

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about the operation in another one's place: begun by a Redrive or a Rekey, or a later generation of its key.

// NamesAnother reports whether a person has begun another operation in the place of old than the one that an act would begin now under the key own; empty: the
// act begins none. (Invariant 54.)
func NamesAnother(old *persist.Record, own string) bool {
	return old.ReplacedBy != "" && old.ReplacedBy != own
}

// AtNext is the meaning of a record under the key that an act would begin. The zero value is the cautious one.
type AtNext uint8

// The meanings.
const (
	IsAnothers AtNext = iota // it is another operation: the act begins nothing
	IsItsOwn                 // an earlier call of the act has begun it
	IsOfScope                // it is of another scope: the act begins its own at another place
)

// NextOf returns what a record at means for a Redrive or Rekey of old that would begin an operation under at's key. sameAccount: both are in one account,
// whatever their scopes. (Invariants 38 and 54.)
func NextOf(old, at *persist.Record, sameAccount bool) AtNext {
	switch {
	case sameAccount && IsSuccessor(old, at):
		return IsItsOwn
	case OtherScope(old.Scopes, at):
		return IsOfScope
	}
	return IsAnothers
}

// IsReplacedBy reports whether o had no effect, and last had one, or may have: the last of the operations begun by persons in the place of o, one after the
// other. A call with the key of o is then told of last: a caller told of a refusal may go on under a key of its own. So it is with a placeholder, also before
// its end is written. A proof by an event of the API counts more than a refusal by the answer. (Invariants 1, 54 and 56.)
func IsReplacedBy(o, last *operation.Op) bool {
	return (o.Skipped || o.HadNoEffect()) && (!last.HadNoEffect() || last.Witnessed)
}

// WaitsForErased reports whether the operation, a next generation of an erased one with a proof by an event, is held at once. An erased record takes no
// evidence: no look before an attempt would find it. leased: another process has the operation, and may be sending it. (Invariants 54, 56 and 57.)
func WaitsForErased(o *operation.Op, leased bool) bool {
	return o.State == persist.StatePending && !o.EndsByEvidence() && !leased
}

// Successor holds the facts about an operation in the place of another one.
type Successor struct {
	Begun    bool // a Redrive or a Rekey began it, and not the program under the next generation
	Early    bool // it was begun before the other one ended, or before that was begun
	AtOnce   bool // it was begun at the very time of the other one's end
	Another  bool // the record of the other one names another successor
	Unbegun  bool // it is about to begin
	Declined bool // the program takes the success of the other one for a decline: by its body, or by the verdicts of its profile now
}

// SuccessorOf returns the facts about an operation begun at begun with the number seq: old may stand in its way. named: a record names the one as the other's
// successor, else it is a later generation; unbegun: it is about to begin, and has no number yet; led: the successor named by old has led to it. Two times may
// be equal: the numbers count, too, and if they tell nothing it was begun at once. (Invariant 54.)
func SuccessorOf(old *persist.Record, begun time.Time, seq uint64, named, unbegun, led bool) Successor {
	later := !unbegun && old.Seq > seq
	return Successor{
		Begun: named, Unbegun: unbegun, Another: old.ReplacedBy != "" && !led, Early: later || begun.Before(old.Finished),
		AtOnce: !unbegun && begun.Equal(old.Finished), // an unfinished operation has no such time
	}
}

// IsDecline reports whether a program takes a recorded success for a decline: v is the verdict on its answer by the verdicts of the program's profile
// now. (Invariants 47 and 54.)
func IsDecline(v classify.Verdict) bool {
	return v.Kind == classify.KindRefused || v.Kind == classify.KindFinal && v.Refused
}

// IsStoppedBy reports whether nothing is sent of the operation that replaces o: while o may still take effect, if an event proved its effect, or if a
// third operation has replaced it. If o took effect, nothing new is begun; only a program that counts this success as a decline may try again. An
// operation begun all the same (before the program knew, or in a transaction) is not sent if a person began it, or if it was begun before or at the
// end of o. The same holds if a person began o, or took its absence back: after an absence, callers may go on under a key of their own. An abandoned
// or mismatched o stops nothing else: a person decides. An erased o tells no acts of persons, so it stops any successor. A placeholder stops only by
// evidence. (Invariants 54, 56 and 57.)
func (s Successor) IsStoppedBy(o *operation.Op) bool {
	byPerson := o.Replaces || o.TakenBack
	switch {
	case o.Skipped:
		return o.Witnessed
	case s.Another, o.Standing == operation.Open:
		return true
	case o.HadNoEffect():
		return o.Witnessed
	case o.Standing.Effect() == persist.EffectHappened:
		return byPerson || s.Begun || s.Early || (s.Unbegun || s.AtOnce) && !s.Declined
	}
	return byPerson || o.Witnessed || o.Erased
}

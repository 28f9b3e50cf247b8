package operation

import (
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about operations that ended, and about what stands in their place: Redrive and Rekey begin another operation of the same
// request, Unsettle takes a settlement back. One rule is for all three. (Invariant 54.)

// Anew is one of these acts.
type Anew uint8

const (
	// Redrives begins the next generation of a refused operation, or of one settled as absent.
	Redrives Anew = iota
	// Rekeys begins an operation under another key, in place of one settled as absent.
	Rekeys
	// Unsettles takes a settlement back: the operation is held again.
	Unsettles
)

// Successors holds the facts about the operations that stand in the place of another. What the act itself has begun earlier, with the same
// bytes, is not among them.
type Successors struct {
	Replaced bool // the record names another successor than this act's (Record.ReplacedBy)
	Higher   bool // a higher generation of its key stands
	Taken    bool // the key that the act would begin has another operation
}

// any reports whether anything has replaced the operation. (Invariant 54.)
func (s Successors) any() bool { return s.Replaced || s.Higher || s.Taken }

// MayAnew returns the reason against an act on an operation that ended. What was mismatched, abandoned or succeeded is never begun
// once more: nobody can say that it had no effect. What an event of the API proves is not
// taken back, and an end that it contradicts is. While a send of a process that lost its lease may be on its way, nothing is begun: a refusal by a wrong
// route, or by a proxy, is not stored under the key, whatever the profile says. (Invariants 1, 31, 54, 56 and 57.)
func (o *Op) MayAnew(act Anew, s Successors, now time.Time) Refusal {
	ended := false
	switch act {
	case Redrives:
		ended = o.Standing == Absent || o.Standing == Refused
	case Rekeys:
		ended = o.Standing == Absent
	case Unsettles:
		ended = o.State == persist.StateSettled || o.Hold == persist.HoldReopened // by an earlier call
	}
	switch {
	case !ended:
		return NotAbsent
	case o.Erased:
		return IsErased
	case o.Witnessed && (act != Unsettles || o.Standing.Effect() == persist.EffectHappened):
		return IsWitnessed
	case s.any():
		return IsReplaced
	case act != Unsettles && now.Before(o.Deserted):
		return IsSending
	}
	return MayAct
}

// Reopened returns the operation after its settlement was taken back: held, and never pending. Nothing sends it before a person ends it once more. (Invariant 54.)
func (o Op) Reopened() Op {
	o = o.HeldFor(persist.HoldReopened)
	o.Standing, o.Unreported = Open, false
	return o.unanswered() // the answer was the person's word
}

// NotesTold reports whether a call that tells of the end of this operation must note that first (Record.Told). A person may take the end back,
// or begin the operation once more, and must know. (Invariant 55.)
func NotesTold(rec *persist.Record) bool {
	return !rec.Told && (rec.State == persist.StateSettled || StandingOf(rec) == Refused)
}

// SettledAs returns the act of a settlement that is taken back, for the record. (Invariant 55.)
func SettledAs(rec *persist.Record) (did string) {
	switch absent := rec.Effect == persist.EffectAbsent; {
	case absent && rec.Told:
		return persist.ActAbsentTold
	case absent:
		return persist.ActAbsent
	case rec.Told:
		return persist.ActHappenedTold
	}
	return persist.ActHappened
}

// WasTold reports whether a caller was told of the latest settlement that was taken back by one of these acts. (Invariant 55.)
func WasTold(acts []persist.Act) bool {
	for _, a := range slices.Backward(acts) {
		switch a.Did {
		case persist.ActAbsentTold, persist.ActHappenedTold:
			return true
		case persist.ActAbsent, persist.ActHappened:
			return false
		}
	}
	return false
}

// IsUntold reports whether nobody was told of the end of a record: it was begun by an Enqueue, or in a transaction, and ended under Resume or
// Run. No call has asked for the end since, it is not owed to OnResult, which may hear of it at any time, and no settlement was taken back
// before. So nobody that was told can have begun the operation once more under a key of its own. Of a generated key nobody can say so. (Invariant 55.)
func IsUntold(rec *persist.Record) bool {
	reopened := slices.ContainsFunc(rec.Acts, func(a persist.Act) bool { return a.Did == persist.ActReopened })
	return rec.Enqueued && !rec.Generated && !rec.PlainHTTP && !rec.Told && !rec.Results && !reopened && rec.State.Final()
}

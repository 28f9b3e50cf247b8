package acts

import (
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about ended operations, and their successors: Redrive and Rekey begin another operation of the same
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

// Successors holds the facts about the operations that stand in the place of another. An earlier one by the same act, with the same bytes, is not among them.
type Successors struct {
	Replaced bool // the record names another successor than this act's (Record.ReplacedBy)
	Higher   bool // a higher generation of its key stands
	Taken    bool // the key that the act would begin has another operation
}

// any reports whether another operation stands in the place of the one that a person wants to begin anew. (Invariant 54.)
func (s Successors) any() bool { return s.Replaced || s.Higher || s.Taken }

// MayAnew returns the reason against act, a Redrive, Rekey or Unsettle of an ended operation. A mismatched, abandoned or successful one is never begun once
// more: nobody can say that it had no effect. An end proven by an event of the API is not taken back; one contradicted by it is. While a send of a process that
// lost its lease may be on its way, nothing is begun: a refusal by a wrong route, or by a proxy, is not stored under the key, whatever the profile says.
// (Invariants 1, 31, 54, 56 and 57.)
func (act Anew) MayAnew(o *operation.Op, s Successors, now time.Time) Refusal {
	ended := false
	switch act {
	case Redrives:
		ended = o.Standing == operation.Absent || o.Standing == operation.Refused
	case Rekeys:
		ended = o.Standing == operation.Absent
	case Unsettles:
		ended = o.State == persist.StateSettled || o.Hold == persist.HoldReopened // by an earlier call
	}
	switch {
	case !ended:
		return NotAbsent
	case o.Erased:
		return IsErased
	case o.Skipped: // it is no operation
		return IsReplaced
	case o.Witnessed && (act != Unsettles || o.Standing.Effect() == persist.EffectHappened):
		return IsWitnessed
	case s.any():
		return IsReplaced
	case act != Unsettles && now.Before(o.Deserted):
		return IsSending
	}
	return MayAct
}

// MayReopen returns the reason against the write of an Unsettle, once MayAnew has allowed it: an earlier call has written it, or its request is gone, so that
// nothing could become of the reopened operation. (Invariants 31 and 54.)
func MayReopen(rec *persist.Record) Refusal {
	switch {
	case rec.HoldReason == persist.HoldReopened:
		return IsReopened
	case rec.RequestGone():
		return IsGone
	}
	return MayAct
}

// Reopened returns the operation after a person took its settlement back: held, and never pending. Nothing sends it before a person ends it once more.
// (Invariant 54.)
func Reopened(o operation.Op) operation.Op {
	o = HeldFor(o, persist.HoldReopened)
	o.Standing, o.Unreported = operation.Open, false
	o.Recorded = operation.Recorded{} // the answer was the person's word
	return o
}

// ReopenedRecord returns the record after a person took its settlement back at now, for a reason. Its list of acts then names the settlement and this act. No
// caller counts as told any more, since what was said of the end is not true, and OnResult is told of the new hold at once. (Invariants 53, 54 and 55.)
func ReopenedRecord(rec *persist.Record, reason string, now time.Time) persist.Record {
	op, next := operation.OpOf(rec, 0), rec.Clone()
	held := Reopened(op)
	next.Acted(persist.Act{At: rec.Finished, Did: SettledAs(rec), Note: rec.Note})
	next.Acted(persist.Act{At: now, Did: persist.ActReopened, Note: reason})
	next.State, next.HoldReason, next.NextAttempt = held.State, held.Hold, held.NextAttempt
	next.OwedFrom = operation.OwedAs(&op, held.State, held.Hold, 0, now)
	next.Effect, next.Finished, next.Answer, next.Note = "", time.Time{}, nil, reason
	next.Unreported, next.KeyTold, next.Told = false, false, false
	return next
}

// SettledAgain returns the record was, as before its settlement was taken back, for the write over held, the record since then. It undoes an Unsettle when
// another operation turns out to stand in the place of this one. OnResult gets its end once more, after the hold. (Invariants 53 and 54.)
func SettledAgain(was, held *persist.Record, now time.Time) persist.Record {
	back, op := was.Clone(), operation.OpOf(held, 0)
	back.Revision, back.OwedFrom = held.Revision, operation.OwedAs(&op, was.State, "", 0, now)
	return back
}

// SettledAs returns the name of the settlement in a record, for its list of acts before the settlement is taken back: as absent or happened, and whether a
// caller was told. (Invariant 55.)
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

// WasTold reports whether a caller was told of the latest settlement that a person took back, by a record's list of acts. Such a caller may have acted on it.
// (Invariant 55.)
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

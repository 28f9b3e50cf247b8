package acts

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about the erasure of everything in a record that no second effect depends on (Client.Erase).

// Erasing holds the facts behind an Erase of one operation.
type Erasing struct {
	Unbegun    bool          // the record names a successor without a record
	Gone       bool          // its request is gone: no successor begins with it any more
	Unfinished bool          // an operation before or after it, of the same intent, is not final
	KeepAnswer time.Duration // the time after Finished in which the answer is kept for replay; of a swept record it counts for nothing
	Finished   time.Time
	Swept      bool
	Now        time.Time // not later than the true time
}

// MayErase returns the reason against an Erase. The record is needed while anything may still be sent, asked for or told: while the operation is pending or
// held, its end is unreported or not delivered, a send may be on its way, or the window of its key or the time of its answer is not over. It is also needed
// while an operation that replaces it is not final, or may yet begin, since that one has the same request (unless this record's own request is gone: then
// nothing can begin by it). An erased record of the same intent is in nobody's way, and is left as it is. (Invariant 57.)
func (e Erasing) MayErase(o *operation.Op) Refusal {
	switch {
	case o.Erased:
		return MayAct
	case !o.State.Final():
		return NotEnded
	case o.Unreported:
		return IsUnreported
	case !o.OwedFrom.IsZero():
		return IsOwed
	case e.Unbegun && !e.Gone || e.Unfinished:
		return IsGoingOn
	case e.Now.Before(o.SendUntil) || e.Now.Before(o.Deserted):
		return IsSending
	case e.Now.Before(e.ErasableFrom(o)):
		return IsInWindow
	}
	return MayAct
}

// ErasableFrom returns the later of two ends: of the key's window at the API, and of the answer's time for replay, unless a sweep has taken the answer already.
// (Invariant 57.)
func (e Erasing) ErasableFrom(o *operation.Op) time.Time {
	var from time.Time
	if !o.FirstSent.IsZero() {
		from = o.FirstSent.Add(o.Window)
	}
	if kept := e.Finished.Add(e.KeepAnswer); !e.Swept && kept.After(from) {
		from = kept
	}
	return from
}

// ErasingOf returns the facts for MayErase that the record itself shows; the caller adds those about other operations. (Invariant 57.)
func ErasingOf(rec *persist.Record, now time.Time) Erasing {
	return Erasing{Gone: rec.RequestGone(), KeepAnswer: rec.KeepAnswer, Finished: rec.Finished, Swept: rec.Swept, Now: now}
}

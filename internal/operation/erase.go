package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about the erasure of everything in a record that no second effect depends on (Client.Erase).

// Erasing holds the facts behind an Erase of one operation.
type Erasing struct {
	Unbegun    bool          // the record names a successor that no record stands for
	Gone       bool          // its request is gone: no successor begins with it any more
	Unfinished bool          // an operation before or after it, of the same intent, is not final
	KeepAnswer time.Duration // the time after Finished in which the answer is kept for replay; of a swept record it counts for nothing
	Finished   time.Time
	Swept      bool
	Now        time.Time // not later than the true time
}

// MayErase returns the reason against an Erase. While anything may still be sent, asked for or told, the record is needed: pending, held,
// its end unreported or not delivered, a send on its way, inside the window of its key or the time of its answer. So it is while an operation
// in its place is not final, or may yet begin: that one has the same request. What was erased is erased once. (Invariant 57.)
func (o *Op) MayErase(e Erasing) Refusal {
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
	case e.Now.Before(o.ErasableFrom(e)):
		return IsInWindow
	}
	return MayAct
}

// ErasableFrom returns the end of the time in which the API is trusted to know the key, or of that in which the answer is kept for replay, the
// later one. (Invariant 57.)
func (o *Op) ErasableFrom(e Erasing) time.Time {
	var from time.Time
	if !o.FirstSent.IsZero() {
		from = o.FirstSent.Add(o.Window)
	}
	if kept := e.Finished.Add(e.KeepAnswer); !e.Swept && kept.After(from) {
		from = kept
	}
	return from
}

// ErasingOf returns the facts of the record itself. (Invariant 57.)
func ErasingOf(rec *persist.Record, now time.Time) Erasing {
	return Erasing{Gone: rec.RequestGone(), KeepAnswer: rec.KeepAnswer, Finished: rec.Finished, Swept: rec.Swept, Now: now}
}

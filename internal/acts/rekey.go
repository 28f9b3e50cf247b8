package acts

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about the hold of an operation for a Rekey, about its lookup, and about the operation that it begins.

// MayLookBefore returns the reason against the first half of a Rekey: the hold of the operation, and its lookup at the API. leased: another process has it; finds:
// the API's lookup finds everything after some time, so that "none" proves something. Without that it is NotAbsent: nothing can show that it had no effect.
// (Invariants 12 and 62.)
func MayLookBefore(o *operation.Op, leased, finds bool) Refusal {
	switch {
	case leased:
		return IsLeased
	case o.EndsByEvidence():
		return IsWitnessed
	case !finds:
		return NotAbsent
	}
	return MayAct
}

// HeldToRekey returns the operation as a Rekey (it begins it under another key) holds it before its lookup at the API. at is the time from which "none" of that
// lookup counts, kept as NextAttempt. write is false if an earlier call has held it so already. HoldRekeyHeld: it was held before, and does not become pending by
// a lookup in vain. (Invariants 7 and 62.)
func HeldToRekey(o operation.Op, at time.Time) (held operation.Op, write bool) {
	if o.IsRekeyed() && !o.NextAttempt.IsZero() { // zero: a restored journal has reset it
		return o, false
	}
	why := persist.HoldRekeyHeld
	if o.State == persist.StatePending || o.Hold == persist.HoldRekey {
		why = persist.HoldRekey
	}
	held = HeldFor(o, why)
	held.NextAttempt = at
	return held, true
}

// RekeyFound reports whether the finding f of a lookup settles a held operation as absent: no resource of the API has its reference. (Invariants 50
// and 62.)
func RekeyFound(f classify.Finding) bool { return f == classify.FindingNone }

// NotRekeyed returns the operation after a Rekey whose lookup found a resource; before is the operation before that Rekey. A pending one is pending again, and
// sent under its own key. The first reason of a hold is lost if an earlier Rekey replaced it: then a person or Config.Reconcile settles the operation.
// (Invariants 3 and 62.)
func NotRekeyed(o operation.Op, before operation.Op) operation.Op {
	o.State, o.Hold, o.NextAttempt = before.State, before.Hold, before.NextAttempt
	if !before.IsRekeyed() {
		return o
	}
	o.NextAttempt = time.Time{}
	switch begun := before.Replaces && !before.Enqueued; { // by another Rekey, which goes on with it
	case before.Hold == persist.HoldRekeyHeld:
		o.Hold = persist.HoldUnclear
	case !begun:
		o.State, o.Hold = persist.StatePending, ""
	}
	return o
}

// WaitsForRelease reports whether an operation begun by a Rekey is still held: the Rekey has not finished, and only its end makes the operation pending. An
// enqueued one was released before, and is held to be replaced in its turn. (Invariants 31 and 54.)
func WaitsForRelease(o *operation.Op) bool { return o.Hold == persist.HoldRekey && !o.Enqueued }

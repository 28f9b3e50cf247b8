package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Promise is the effect of an Enqueue, or of a Rekey, on the existing operation of its key.
type Promise uint8

// The promises.
const (
	PromisesHeld  Promise = iota // an error: it is held, and nothing sends it by itself
	PromisesEnded                // an error: it ended without an effect, or was given up
	PromisesKept                 // nothing is written: it took place, or is promised already
	PromisesNow                  // Promised is written
)

// PromiseOf returns the effect of an Enqueue (it promises a later send) on the existing operation of its key: refused (held, or ended without an effect), nothing new,
// or a promise. A held one goes on if it waits for a caller of plain HTTP, or was never sent in time. (Invariants 8 and 18.)
func PromiseOf(o *Op, now time.Time) Promise {
	held := o.State == persist.StateHeld
	switch {
	case held && !o.IsForCaller() && (o.Hold != persist.HoldExpired || o.MaybeSent):
		return PromisesHeld
	case o.State.Final() && o.Standing.Effect() != persist.EffectHappened:
		return PromisesEnded
	case o.State.Final(), o.Enqueued && !held && (o.MaybeSent || !o.TooOld(now)):
		return PromisesKept
	}
	return PromisesNow
}

// Promised returns the operation after an Enqueue, or as a Redrive begins it (the next try of a refused one): a send is promised, and its first send starts before that
// time. A hold ends, and the answer kept for it goes. (Invariants 18 and 54.)
func (o Op) Promised(before time.Time) Op {
	o.Enqueued, o.SendBefore = true, before
	if o.State == persist.StateHeld {
		o = o.Unheld()
		o.Recorded = Recorded{}
	}
	return o
}

// Unheld returns the operation pending and due, so that the next pass sends it. An Enqueue, a release or an API's event ends a hold so. (Invariants 18 and 54.)
func (o Op) Unheld() Op {
	o.State, o.Hold, o.NextAttempt = persist.StatePending, "", time.Time{}
	return o
}

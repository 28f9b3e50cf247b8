package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about a slow limiter: others may send the operation meanwhile. (Invariant 43.)

// WaitsToSend reports whether a send follows the step, after another request of the same attempt: for a token, or by the business reference. The
// driver waits for its limiter before such a step. (Invariant 43.)
func (d *Drive) WaitsToSend() bool {
	return d.step == KeepToken || d.step == Check && d.after == Send && d.looked
}

// Limited reports a slow limiter, in place of the result of the step Wait, or of a step with WaitsToSend. The operation is left to others: as
// after an attempt in vain or, without an attempt so far, as before the drive. A fetched token is not written. A pass ends there; a call goes
// on with another drive after its limiter. (Invariant 43.)
func (d *Drive) Limited() {
	d.stop, d.limited = GivenUp, true
	if d.step == KeepToken {
		d.skip(Proof{Kind: ProvesUnsent})
		return
	}
	d.conclude()
}

// goesOn reports whether the call goes on later with its left operation. (Invariant 43.)
func (d *Drive) goesOn() bool { return d.limited && !d.given.Pass }

// Leaves reports whether the step Write leaves an operation to others, and the call goes on with it later. (Invariant 43.)
func (d *Drive) Leaves() bool {
	return d.goesOn() && d.step == Write && (d.write == LeaveOpen || d.write == LeaveUnsent)
}

// mayGoOn reports whether a call with the key may go on with the operation after the last Change. (Invariant 43.)
func (d *Drive) mayGoOn() bool { return d.hold == "" || d.hold == persist.HoldCaller }

// MayForgetLeft reports whether a call forgets the operation that it has left and does not go on with. created: the call has begun it. Nobody has had
// it since, or the journal refuses to forget it. (Invariants 2, 18 and 43.)
func (o *Op) MayForgetLeft(created bool) bool { return created && !o.MaybeSent && !o.Enqueued }

// GivenBack returns the operation given back before the first send of a drive, because of a slow limiter or the end of a pass. Mark, state and hold are
// those of before, the operation at the begin of the drive; its zero value is for an operation begun by the call. An operation promised by an Enqueue
// is not held again. end is the latest first send of an operation begun to be sent at once. (Invariants 2, 7, 18 and 43.)
func (o Op) GivenBack(before Op, end time.Time) Op {
	o.State, o.Hold = persist.StatePending, ""
	if !o.Enqueued {
		o.State, o.Hold = before.State, before.Hold
	}
	o.MaybeSent, o.FirstSent = before.MaybeSent, before.FirstSent
	if !o.MaybeSent && o.SendBefore.IsZero() {
		o.SendBefore = end
	}
	return o
}

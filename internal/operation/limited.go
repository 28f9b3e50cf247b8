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

// TakesBackLeft reports whether a call takes back the operation that it has left and does not go on with: by WithdrawnBeside. created: the call has
// begun it. Another process may have had it since; then the journal refuses the write. (Invariants 2, 18 and 43.)
func (o *Op) TakesBackLeft(created bool) bool { return created && !o.MaybeSent && !o.Enqueued }

// GivenBack returns the operation given back before the first send of a drive, because of a slow limiter or the end of a pass. Mark, state and hold are
// those of before, the operation at the begin of the drive; its zero value is for an operation begun by the call. An operation promised by an Enqueue
// is not held again. end is the latest first send of an operation begun to be sent at once. (Invariants 2, 7, 18 and 43.)
func (o Op) GivenBack(before Op, end time.Time) Op {
	o.State, o.Hold = persist.StatePending, ""
	if !o.Enqueued {
		o.State, o.Hold = before.State, before.Hold
	}
	o.MaybeSent, o.FirstSent = before.MaybeSent, before.FirstSent
	o.SendBefore = o.firstSendBy(o.MaybeSent, end)
	return o
}

// firstSendBy returns SendBefore of an operation left to others while its call waits. One that was begun to be sent at once has none: it gets latest, so
// that it is not sent as new long after its call. marked: it may have been sent, and has had its first send. (Invariants 8 and 43.)
func (o *Op) firstSendBy(marked bool, latest time.Time) time.Time {
	if marked || !o.SendBefore.IsZero() {
		return o.SendBefore
	}
	return latest
}

// GaveBack is the state of a call after the write that gives its operation back before the first send.
type GaveBack uint8

// The states. The zero value is the cautious one.
const (
	BackUnclear GaveBack = iota // nobody knows if it is given back: the call ends, and its outcome is unknown
	NotBack                     // it is not: the call waits with it
	IsBack                      // it is: the call waits without it
)

// GaveBackAfter returns the state after that write. A write with an unknown outcome may say "never sent", so that another process may take the
// operation up: nothing is sent. After any other failure the record is as before, marked and leased to this call. (Invariants 7, 12 and 43.)
func GaveBackAfter(written, uncertain bool) GaveBack {
	switch {
	case written:
		return IsBack
	case uncertain:
		return BackUnclear
	}
	return NotBack
}

package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about a slow limiter: others may send the operation meanwhile. (Invariant 43.)

// WaitsToSend reports whether a send follows the step, after another request of the same attempt: for a token, or by the business reference. The
// driver waits for its limiter before such a step. (Invariant 43.)
func (d *attempting) WaitsToSend() bool {
	return d.step == KeepToken || d.step == Check && d.after == Send && d.looked
}

// Limited reports that the limiter is slow, in place of the result of the step Wait, or of a step with WaitsToSend. The operation is left to others:
// as after an attempt without success or, without an attempt so far, as before the drive. A fetched token is not written. A pass ends there; a call
// goes on with another drive, once its limiter allows it. (Invariant 43.)
func (d *attempting) Limited() {
	d.stop, d.limited = GivenUp, true
	if d.step == KeepToken {
		d.skip(Proof{Kind: ProvesUnsent})
		return
	}
	d.conclude()
}

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

// MayRetake reports whether a pass that has given the operation back takes it again, once the turn of its limiter has come: it is pending and due, and
// nobody has it. leased: somebody has a lease of it, this client included. (Invariants 12, 28 and 43.)
func MayRetake(o *Op, leased bool, now time.Time) bool {
	return o.State == persist.StatePending && !leased && !o.NextAttempt.After(now)
}

package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about a slow limiter: others may send the operation meanwhile. (Invariant 43.)

// WaitsToSend reports whether the next step leads to a send after another request of the same attempt: for a token, or a lookup (looked). The driver waits for its
// rate limiter once more before it, since that request has used the limiter's permission. (Invariant 43.)
func (d *attempting) WaitsToSend() bool {
	return d.step == KeepToken || d.step == Check && d.after == Send && d.looked
}

// Limited ends the attempts since the rate limiter lets the driver wait long. It comes in place of the result of Wait, or of a step with WaitsToSend. Others may send the
// operation meanwhile: it is left as after a failed attempt, or as before. A pass (Resume or Run) ends there; a call tries again later. (Invariant 43.)
func (d *attempting) Limited() {
	d.stop, d.limited = GivenUp, true
	if d.step == KeepToken {
		d.skip(Proof{Kind: ProvesUnsent})
		return
	}
	d.conclude()
}

// GivenBack returns an operation that is left to other processes before its first send here, because of a slow limiter or the end of a pass (Resume or Run). before is
// the operation as it was, without the mark MaybeSent of these attempts; zero if the call has begun it. One promised by an Enqueue is not held again. end bounds the
// first send of one that was begun to be sent at once. (Invariants 2, 7, 18 and 43.)
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

// GaveBackAfter returns the state of a call after the write that leaves its operation to others, unsent. uncertain: it may be written, so that another process takes the
// operation up: nothing is sent. After any other failure it is as before, leased to this call. (Invariants 7, 12 and 43.)
func GaveBackAfter(written, uncertain bool) GaveBack {
	switch {
	case written:
		return IsBack
	case uncertain:
		return BackUnclear
	}
	return NotBack
}

// MayRetake reports whether a pass (Resume or Run) takes an operation again that it has left to others until its rate limiter let it send: it is still pending and due,
// and nobody has it. leased: somebody has a lease of it, this client included. (Invariants 12, 28 and 43.)
func MayRetake(o *Op, leased bool, now time.Time) bool {
	return o.State == persist.StatePending && !leased && !o.NextAttempt.After(now)
}

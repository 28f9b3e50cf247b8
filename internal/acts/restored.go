package acts

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about the operations of a journal restored from a backup: nobody knows what was sent since the backup was taken.

// Restored returns the operation after its journal was restored from a backup, held until a person says that it may go on: since the backup it may have been sent.
// taken is the time of the backup. The operation counts as sent then, at the latest, unless the server had handed out no key for it. One held since it was not
// sent in time may have been sent since, too. The reason of an earlier hold stays if a release of the journal's operations must not end that hold. A final
// operation does not change. (Invariants 1, 7, 8 and 58.)
func Restored(o operation.Op, taken time.Time) operation.Op {
	if o.State.Final() {
		return o
	}
	before := o
	overdue := o.Hold == persist.HoldExpired && !o.MaybeSent
	if o.State == persist.StatePending || o.IsForCaller() || overdue {
		o.State, o.Hold = persist.StateHeld, persist.HoldRestored
	}
	if o.IsRekeyed() { // it may have gone on since: its lookup waits anew
		o.NextAttempt = time.Time{}
		if !WaitsForRelease(&before) || !o.Replaces { // it may have gone on under another key: the result of the lookup must not send it
			o.Hold = persist.HoldRekeyHeld
		}
	}
	if o.MaybeSent = !o.ServerToken || o.Token; o.MaybeSent && (o.FirstSent.IsZero() || o.FirstSent.After(taken)) {
		o.FirstSent = taken
	}
	return o
}

// Released returns an operation of a restored journal after a person said that it may go on. The time of its first send stays, so that it is not sent once the
// server may have forgotten its key. released is false if it was not held as restored. (Invariants 7, 8 and 58.)
func Released(o operation.Op) (_ operation.Op, released bool) {
	if o.Hold != persist.HoldRestored {
		return o, false
	}
	return o.Unheld(), true
}

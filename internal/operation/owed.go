package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about the results owed to Config.OnResult.

// ResultGrace is the time in which a call may take the result that it has recorded. After it the result is owed: the process has died, or
// its caller has left.
const ResultGrace = time.Minute

// OwedAs returns Record.OwedFrom for the write of a state, with the reason of a hold. called: a call writes it, and may hand it to its
// caller. Each end and each new hold is owed, whoever writes it. The same hold again is owed as before. (Invariant 53.)
func (o *Op) OwedAs(state persist.State, hold persist.HoldReason, called bool, now time.Time) time.Time {
	switch {
	case !o.Results || state == persist.StatePending:
		return time.Time{}
	case state == persist.StateHeld && o.State == state && o.Hold == hold:
		return o.OwedFrom
	case called:
		return now.Round(0).Add(ResultGrace)
	}
	return now.Round(0)
}

package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides about the results owed to Config.OnResult.

// ResultGrace is the time in which a call may take the result that it has recorded. After it the result is owed: the process has died, or
// its caller has left.
const ResultGrace = time.Minute

// OwedAs returns Record.OwedFrom for the write of a state, with the reason of a hold. grace is the time in which the writer hands it
// over by itself: to its caller, or to its own OnResult. Each end and each new hold is owed, whoever writes it. The same hold again is owed as before. An earlier state may be
// handed to OnResult until o.OwedFrom (persist.SharedResults): the next one is not owed before, so that it comes after it. A pending
// record keeps a later time for that. (Invariant 53.)
func (o *Op) OwedAs(state persist.State, hold persist.HoldReason, grace time.Duration, now time.Time) time.Time {
	from := now.Round(0).Add(grace)
	switch {
	case !o.Results || state == persist.StatePending && !o.OwedFrom.After(now):
		return time.Time{}
	case hold != "" && o.Hold == hold:
		return o.OwedFrom
	case state == persist.StatePending || o.OwedFrom.After(from):
		return o.OwedFrom
	}
	return from
}

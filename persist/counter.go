package persist

import (
	"context"
	"time"
)

// Counter is a journal that counts its unfinished records and its owed results without reading them. It is optional: find it with [As].
type Counter interface {
	// Count returns the counts of the whole journal, of every account. It sees every change returned before the call. A change
	// made during the call is in the counts, or not. On several servers (Redis Cluster) that holds for each server by itself: one that ends an
	// operation and begins the next may be counted with both. A record of a newer version counts, too ([ErrNewer]).
	// Errors: ErrClosed, the context's, or the journal's own.
	Count(ctx context.Context) (Counts, error)
}

// Counts are the results of [Counter].
type Counts struct {
	_ struct{}

	// Pending is the number of pending records, due or not, leased or not.
	Pending int
	// Held is the number of held records by reason. No reason is in it with zero.
	Held map[HoldReason]int
	// Oldest is the earliest Created of an unfinished record; zero if there is none.
	Oldest time.Time
	// NextDue is the earliest NextAttempt of a pending record, past or not; zero if there is none, or if one is due since it was
	// begun. For a leased record, the end of its lease may stand instead. It may be rounded down to a microsecond.
	NextDue time.Time
	// Owed is the number of records with [Record.Owed]: held and final ones whose result waits for oncehttp.Config.OnResult.
	Owed int
}

// AllHeld returns the number of held records, whatever the reason of their hold. A held record is unfinished, and nothing is sent for it until
// somebody settles it.
func (c *Counts) AllHeld() (n int) {
	for _, some := range c.Held {
		n += some
	}
	return n
}

// Unfinished returns the number of all unfinished records. Pending ones go on by themselves; for held ones nothing is sent until somebody settles them.
func (c *Counts) Unfinished() int { return c.Pending + c.AllHeld() }

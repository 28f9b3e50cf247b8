package run

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/persist"
)

// holder holds a client's part in the leases of a journal: what is leased to it, and what another process has. It is safe for concurrent use.
type holder struct {
	owner         string       // of this client's leases, a random UUID
	leases        lease.Leases // of this client; in a journal of one process each holds
	claims        lease.Claims // of this client
	clock         *lease.Clock // of the journal
	journalShared bool         // other processes may use the journal
}

// stamp writes a new lease of this client into a record in memory. On a journal of one process it changes nothing.
func (h *holder) stamp(rec *persist.Record) {
	if owner, until := h.leases.Stamp(); owner != "" {
		rec.TakeLease(owner, until)
	}
}

// unstamp takes the lease off a record in memory (acts.Unleased). The caller writes the record, and has the lease, or knows that
// it has ended.
func (h *holder) unstamp(rec *persist.Record) {
	*rec = acts.Unleased(*rec, h.owner)
}

// firstSent returns the time stamp of a first send about to follow, by the journal's clock. It is the earliest
// possible present time, so the retention window never looks longer than it is.
func (h *holder) firstSent() time.Time { return h.clock.Earliest().Round(0) }

// leasedElsewhere reports whether another process has the record. It judges the lease by the earliest possible present time. The other
// process judges its own lease by the latest possible present time, so the two never act on the operation at once.
func (h *holder) leasedElsewhere(rec *persist.Record) bool {
	return rec.Leased(h.owner, h.clock.Earliest())
}

// sentElsewhere reports whether another process has the lease of an unfinished operation, so that it may be sending it at this moment. It is false for an ended
// operation, and in a journal that no other process uses.
func (h *holder) sentElsewhere(rec *persist.Record) bool {
	return !rec.State.Final() && h.journalShared && h.leasedElsewhere(rec)
}

// endingOf returns the facts by which acts.Ending decides whether a person may end the operation: whether another process has the lease, whether the last lease
// was another one's (then it has ended by itself, unless Leased), and the time. absent is the person's claim that there was no effect. Moved is set by the
// caller.
func (h *holder) endingOf(rec *persist.Record, absent bool) acts.Ending {
	return acts.Ending{
		Leased: h.leasedElsewhere(rec), Over: rec.LeaseOwner != "" && rec.LeaseOwner != h.owner, Absent: absent, Now: h.clock.Earliest(),
	}
}

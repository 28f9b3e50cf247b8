package lease

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Marking claims set MaybeSent of their records. A fair Run may send such a record without a further write, as long as nothing has happened to it.

// Claim is a marking claim under way.
type Claim struct {
	touched map[persist.ID]bool // by calls since Claiming, see held.Touched; guarded by held.mu
}

// Claiming implements Leases.
func (l *held) Claiming() *Claim {
	c := &Claim{touched: map[persist.ID]bool{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims[c] = true
	return c
}

// Touched implements Leases. A call says so at its begin and before its end. For an earlier claim, or one under way meanwhile,
// it is not known then whether the call has sent the operation, or has changed its record.
func (l *held) Touched(id persist.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.claims {
		c.touched[id] = true
	}
	if at := l.held[id]; at != nil {
		at.marked = time.Time{}
	}
}

// Unwritten implements Leases. Until the journal takes another change, no earlier mark allows a send: the result could not be written.
func (l *held) Unwritten() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.held {
		at.marked = time.Time{}
	}
}

// Marked implements Leases. It sets the fields of the record as the claim has set them in the journal. It returns false if the claim did not
// mark the record, if something has happened to it since, or if the claim is older than a lease: the time for sends would have begun too early.
// Only a fair Run with the place of the operation may ask. A call from before the claim would send it at the revision at which the Run gives it back.
func (l *held) Marked(rec *persist.Record) bool {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.held[rec.ID]
	switch {
	case at == nil || at.runs || at.lost || at.marked.IsZero() || at.revision != rec.Revision:
		return false
	case !now.Before(at.until) || now.Sub(at.marked) > l.host.Length:
		return false
	}
	rec.MaybeSent, rec.FirstSent, rec.LeaseUntil = true, at.marked, at.until
	rec.ExtendSendUntil(at.marked.Add(l.host.ClaimSending()))
	at.users++
	at.begin(rec)
	return true
}

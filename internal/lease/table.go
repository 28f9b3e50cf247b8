package lease

import (
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// table holds the leases of one client, as this process knows them. It asks no journal.
type table struct {
	clock *Clock
	mu    sync.Mutex
	of    map[persist.ID]*lease // each with at least one user
}

// lease is one lease of this client. table.mu guards its fields.
type lease struct {
	users int       // the run of the operation, and its claiming pass
	until time.Time // it lasts until then, by the journal's clock
	lost  bool      // another has it, or has had it
	runs  bool      // the operation is being run, and the run has not written its last
	// lapsed: since Begin it has ended, and was renewed too late. Meanwhile others may have taken the operation for an abandoned one.
	lapsed bool
	// revision, drives and enqueued are those of the record while it runs. Only the run and the claims of this client change them.
	revision uint64
	drives   int
	enqueued bool
	// marked is the time at which the claim of this revision set MaybeSent. Zero: it did not, or a call has had the record since.
	marked time.Time
}

// begin notes a run of the record. The mark of its claim, by which one send needs no further write, is used up. The caller holds table.mu, and has
// called hold for the run.
func (at *lease) begin(rec *persist.Record) {
	at.lapsed = false
	at.runs, at.revision, at.drives, at.enqueued, at.marked = true, rec.Revision, rec.Drives, rec.Enqueued, time.Time{}
}

// hold adds a user to the lease of a record of this client. release must follow once for each hold. The caller holds mu, and sets the
// other fields of a new lease.
func (t *table) hold(rec *persist.Record) *lease {
	at := t.of[rec.ID]
	if at == nil {
		at = &lease{}
		t.of[rec.ID] = at
	}
	at.users++
	return at
}

// release ends one hold. Without another hold, the lease is renewed no more; in the journal it ends by itself, or
// by a write of the caller. The caller holds mu.
func (t *table) release(id persist.ID, at *lease) {
	if at.users--; at.users <= 0 {
		delete(t.of, id)
	}
}

// running returns the lease of an operation that is being run; nil if it is not. The caller holds mu.
func (t *table) running(id persist.ID) *lease {
	if at := t.of[id]; at != nil && at.runs {
		return at
	}
	return nil
}

// state returns the facts about a lease: it is known to this client, it is lost to another owner, it is over by
// the clock. Of an unknown lease the others are false.
func (t *table) state(id persist.ID) (known, lost, over bool) {
	now := t.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[id]
	if at == nil {
		return false, false, false
	}
	return true, at.lost, !now.Before(at.until)
}

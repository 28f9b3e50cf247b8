package lease

import (
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/persist"
)

// Marking claims set MaybeSent of their records. A fair Run may send such a record without a further write, as long as nothing has happened to it.

// Claim is a marking claim under way.
type Claim struct {
	touched map[persist.ID]bool // by calls since Claiming, see Claims.Touched; guarded by table.mu
}

// claims are the claims of one client in a shared journal. They are safe for concurrent use.
type claims struct {
	host     *Host
	table    *table
	renewal  *renewal
	underway map[*Claim]bool // guarded by table.mu
}

// Claiming implements Claims. It returns a new claim, to be given to Claimed once the journal has answered. Meanwhile the claim notes each operation
// that a call of this process takes up.
func (c *claims) Claiming() *Claim {
	claim := &Claim{touched: map[persist.ID]bool{}}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.underway[claim] = true
	return claim
}

// Claimed implements Claims. It returns the records for the pass, and holds their leases. A record left out runs in this process already: the journal could not
// renew its lease in time, and the claim has taken it for its own client. That run gets the new lease and revision, and goes on. marked is the time at which the
// claim has marked its records as maybe sent, to save the write before a send; it does not count for a nil claim, and for a record that a call has had since.
func (c *claims) Claimed(batch []persist.Record, claim *Claim, marked time.Time) []persist.Record {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	delete(c.underway, claim)
	return slices.DeleteFunc(batch, func(rec persist.Record) bool {
		touched := claim != nil && claim.touched[rec.ID]
		return c.handOver(&rec, acts.MarkAt(&rec, claim != nil, touched, marked))
	})
}

// handOver gives a record that this client has just claimed to the run of it that is still under way here, if acts.Running allows that; running is true then.
// Else the lease is held for the pass that claimed. A run that does not know of a later Enqueue keeps its old revision: its next write is refused, and it reads
// the record. marked is the time at which the claim has marked the record as maybe sent; zero: it has not. The caller holds table.mu.
func (c *claims) handOver(rec *persist.Record, marked time.Time) (running bool) {
	at := c.table.running(rec.ID)
	var run acts.Running
	if at != nil {
		run = acts.Running{Runs: true, Lost: at.lost, Revision: at.revision, Enqueued: at.enqueued}
	}
	switch run.GoesOn(rec) {
	case acts.PassGoesOn:
		at = c.renewal.hold(rec)
		at.until, at.lost = rec.LeaseUntil, false
		at.revision, at.marked = rec.Revision, marked
		return false
	case acts.RunStops:
		c.renewal.hold(rec).lost = true
		return false
	case acts.RunGoesOn:
		// The claim has raised the record's revision and counted a drive: the run's next write must start from these.
		at.revision, at.drives = max(at.revision, rec.Revision), max(at.drives, rec.Drives)
	}
	if rec.LeaseUntil.After(at.until) {
		at.until = rec.LeaseUntil
	}
	return true
}

// Drop implements Claims: it ends this client's lease of a claimed operation that is not run. Without a lease of it, it does nothing.
func (c *claims) Drop(id persist.ID) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if at := c.table.of[id]; at != nil {
		c.table.release(id, at)
	}
}

// Touched implements Claims. A call says so at its begin and before its end. For an earlier claim, or one under way meanwhile, it is not known then whether the
// call has sent the operation, or has changed its record: their marks (maybe sent, written by the claim) allow no send of it any more.
func (c *claims) Touched(id persist.ID) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	for claim := range c.underway {
		claim.touched[id] = true
	}
	if at := c.table.of[id]; at != nil {
		at.marked = time.Time{}
	}
}

// Unwritten implements Claims. Until the journal takes another change, no earlier mark allows a send: the result could not be written.
func (c *claims) Unwritten() {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	for _, at := range c.table.of {
		at.marked = time.Time{}
	}
}

// Marked implements Claims. It sets the fields of the record as the claim has set them in the journal, if acts.ClaimMark allows a send by the mark. Only a fair
// Run with the place of the operation may ask. A call from before the claim would send it at the revision at which the Run gives it back. The run counts as
// begun then, and End must follow.
func (c *claims) Marked(rec *persist.Record) bool {
	now := c.table.clock.Now()
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	at := c.table.of[rec.ID]
	if at == nil { // not claimed by this client
		return false
	}
	mark := acts.ClaimMark{At: at.marked, Revision: at.revision, Until: at.until, Length: c.host.Length, Runs: at.runs, Lost: at.lost}
	if !mark.AllowsSend(rec, now) {
		return false
	}
	*rec = mark.Marked(*rec, c.host.ClaimSending())
	at.users++
	at.begin(rec)
	return true
}

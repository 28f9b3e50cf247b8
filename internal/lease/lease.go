// Package lease keeps the leases of one client's operations, and the clock for stamps and judgements of records.
//
// In a shared journal (persist.Claimer), a lease names the one process allowed to send an operation. The leases of a client
// are renewed in one call for all, every third of their length. In any other journal each lease holds: see New.
package lease

import (
	"context"
	"log/slog"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Host is the owner of the leases: a client.
type Host struct {
	Length  time.Duration // of a lease
	Sending time.Duration // after its first attempt, a send of a run may be on its way for so long
	Skew    time.Duration // the difference of this process's clock from the journal's before Log is told

	// Log tells the program's logger; err may be nil.
	Log   func(ctx context.Context, level slog.Level, msg string, err error, more ...slog.Attr)
	Guard func(ctx context.Context, doing string, f func()) // calls f, and logs a crash of it
}

// ClaimSending returns the time for which a send may be on its way after a claim that marks its records as maybe sent: within a lease such a record
// may be sent without a further write (see Claims.Marked).
func (h *Host) ClaimSending() time.Duration { return h.Length + h.Sending }

// Leases are those of one client. They are safe for concurrent use.
//
// Only the owner of its lease writes a record. A run calls Begin before it and End after it.
type Leases interface {
	// Stamp returns the owner and the end of a new lease. The caller writes them into the journal with a record; an empty owner is none.
	Stamp() (owner string, until time.Time)
	// Keep lengthens the lease of a record with a run, of any client, before somebody else writes it.
	Keep(*persist.Record)

	// Begin renews the lease of a record from the begin of its run until End. If it was called already, it does nothing.
	Begin(*persist.Record)
	// End ends a Begin, once the run writes its record no more.
	End(persist.ID)
	// Runs reports whether the operation is being run, and its run may still write its record.
	Runs(persist.ID) bool
	// Check returns an error if the operation may not be sent: ErrElsewhere, ErrNone or ErrOver. It renews a lease that has ended.
	Check(context.Context, persist.ID) error
	// Unbroken reports whether the lease of a running record has never ended since Begin.
	Unbroken(persist.ID) bool

	// Latest sets the revision for the next change of a record, and its Drives, by the claims handed over to its run.
	Latest(*persist.Record)
	// Changed notes a change of a record by its run.
	Changed(*persist.Record)

	// Close renews nothing more, and waits for a renewal under way.
	Close()
}

// Claims are those of one client, and the marks of its claims. They are safe for concurrent use.
//
// A claiming pass calls Claiming and Claimed, and Drop for each record returned by Claimed.
type Claims interface {
	// Claiming is called before a marking claim. Its result goes to Claimed.
	Claiming() *Claim
	// Claimed takes the records of a claim, and returns the records to run. The claim is nil if it marks nothing; else marked is the
	// time of the mark.
	Claimed(records []persist.Record, claim *Claim, marked time.Time) []persist.Record
	// Drop ends the hold of Claimed on a record. It gives nothing up in the journal.
	Drop(persist.ID)

	// Touched notes a call other than a fair Run's at the place of the operation.
	Touched(persist.ID)
	// Unwritten notes a change refused by the journal.
	Unwritten()
	// Marked begins the run of a record without a further write before its send. It returns false if the mark has to be written.
	Marked(*persist.Record) bool
}

// New returns the leases and the claims of a client, named owner in its leases. shared: other processes may use its journal. Otherwise there are no leases to keep:
// the methods do nothing, and each Check passes.
func New(host *Host, clock *Clock, owner string) (leases Leases, taken Claims, shared bool) {
	if clock.journal == nil {
		return unshared{}, unclaimed{}, false
	}
	t := &table{clock: clock, of: map[persist.ID]*lease{}}
	r := &renewal{table: t, host: host, journal: clock.journal, owner: owner}
	return &held{host: host, owner: owner, table: t, renewal: r}, &claims{host: host, table: t, renewal: r, underway: map[*Claim]bool{}}, true
}

// unshared stands for the leases in a journal of one process: there are none, and each holds.
type unshared struct{}

// Stamp returns no owner: one process alone opens the journal, so that a record needs no lease.
func (unshared) Stamp() (string, time.Time) { return "", time.Time{} }

// Keep does nothing: there is no lease to renew.
func (unshared) Keep(*persist.Record) {}

// Begin does nothing: there is no lease to renew.
func (unshared) Begin(*persist.Record) {}

// End does nothing: Begin began nothing.
func (unshared) End(persist.ID) {}

// Runs returns false: in a journal of one process no run of an operation holds a lease.
func (unshared) Runs(persist.ID) bool { return false }

// Check returns nil: no other process can send an operation of this journal.
func (unshared) Check(context.Context, persist.ID) error { return nil }

// Unbroken returns true: a journal of one process has no leases, so none ends early.
func (unshared) Unbroken(persist.ID) bool { return true }

// Latest changes nothing: no claim of another process changes a record.
func (unshared) Latest(*persist.Record) {}

// Changed does nothing: no renewal needs the revision of a record.
func (unshared) Changed(*persist.Record) {}

// Close does nothing: no renewal runs.
func (unshared) Close() {}

// unclaimed stands for the claims in a journal of one process: there are none, and no record has a mark.
type unclaimed struct{}

// Claiming returns nil, a claim that marks nothing: in a journal of one process a pass reads the due records without a claim.
func (unclaimed) Claiming() *Claim { return nil }

// Drop does nothing: Claimed holds no record.
func (unclaimed) Drop(persist.ID) {}

// Touched does nothing: no claim skips an operation.
func (unclaimed) Touched(persist.ID) {}

// Unwritten does nothing: in this journal no claim marks records as sent, so there is no mark to stop.
func (unclaimed) Unwritten() {}

// Marked returns false: no claim has set MaybeSent, so each run writes it before its send.
func (unclaimed) Marked(*persist.Record) bool { return false }

// Claimed returns all records: each of them may run.
func (unclaimed) Claimed(records []persist.Record, _ *Claim, _ time.Time) []persist.Record {
	return records
}

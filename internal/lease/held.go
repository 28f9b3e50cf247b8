package lease

import (
	"context"
	"errors"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// held holds the leases of one client in a shared journal. They are safe for concurrent use.
type held struct {
	host    *Host
	owner   string
	table   *table
	renewal *renewal
}

// The reasons to send nothing although a run is under way.
var (
	ErrElsewhere = errors.New("another process has it")
	ErrNone      = errors.New("this client has no lease of it")
	ErrOver      = errors.New("its lease has ended, and the journal could not renew it")
)

// Stamp implements Leases: it returns this client as the owner, and the end of a new lease. The lease has the length of the host, from now on.
func (l *held) Stamp() (owner string, until time.Time) {
	return l.owner, l.table.clock.Now().Round(0).Add(l.host.Length)
}

// Keep implements Leases: it lengthens the lease of a record in memory, before somebody beside its run writes the record: that write must not shorten
// it. The run may have renewed the lease since the record was read, which makes no new revision. The length of its leases is not known. A run that
// renews in time has at least two thirds left, so half of the rest is added: the sum reaches the run's next renewal. A late run gets a lease of the
// default length. The lease of a dead client grows by no more.
func (l *held) Keep(rec *persist.Record) {
	now := l.table.clock.Now().Round(0)
	if !rec.Leased("", now) {
		return
	}
	left, usual := rec.LeaseUntil.Sub(now), min(l.host.Length, Usual)
	rec.LeaseUntil = now.Add(max(left+left/2, usual+usual/Renewals))
}

// Begin implements Leases: it renews the lease of a record until End, while a run may send it. A record with the lease of another owner is ignored, and so is
// one with a run noted already.
func (l *held) Begin(rec *persist.Record) {
	if rec.LeaseOwner != l.owner {
		return
	}
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	if l.table.running(rec.ID) != nil {
		return
	}
	at := l.renewal.hold(rec)
	at.begin(rec)
	at.until, at.lost = rec.LeaseUntil, false
}

// End implements Leases: it ends the run that Begin noted. The lease is renewed no more, unless a claim of this client still holds it.
func (l *held) End(id persist.ID) {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	if at := l.table.running(id); at != nil {
		at.runs, at.lost = false, false // a holder that is left has claimed it meanwhile: it is not lost
		l.table.release(id, at)
	}
}

// Runs implements Leases: it reports whether a run of this client has the operation, between Begin and End.
func (l *held) Runs(id persist.ID) bool {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	return l.table.running(id) != nil
}

// Latest implements Leases: it sets the record's revision to the latest one known, by the claims that this client has made during the run, so that
// the next change is not refused. A record without a run of this client stays as it is.
func (l *held) Latest(rec *persist.Record) {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	if at := l.table.running(rec.ID); at != nil {
		rec.Revision, rec.Drives = max(rec.Revision, at.revision), max(rec.Drives, at.drives)
	}
}

// Changed implements Leases: it notes the revision of a record that a run has changed. A record without a run of this client is ignored, and so is a
// revision lower than the one known.
func (l *held) Changed(rec *persist.Record) {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	if at := l.table.running(rec.ID); at != nil {
		at.revision, at.drives, at.enqueued = max(at.revision, rec.Revision), max(at.drives, rec.Drives), rec.Enqueued
	}
}

// Check implements Leases: it returns an error if the operation may not be sent: ErrNone without a lease, ErrElsewhere if another process has it, ErrOver if it has
// ended and could not be renewed. A run calls it before each attempt, and again when the request is ready. It may wait for a renewal of the lease, until ctx ends.
func (l *held) Check(ctx context.Context, id persist.ID) error {
	known, lost, over := l.table.state(id)
	if known && over && !lost {
		l.renewal.renew(ctx, []persist.ID{id})
		known, lost, over = l.table.state(id)
	}
	switch {
	case !known:
		return ErrNone
	case lost:
		return ErrElsewhere
	case over:
		return ErrOver
	}
	return nil
}

// Unbroken implements Leases: it reports whether this client's lease of the operation has never ended since Begin. It is false without a lease, and for one
// that was renewed too late (lapsed) or is another's by now (lost).
func (l *held) Unbroken(id persist.ID) bool {
	now := l.table.clock.Now()
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	at := l.table.of[id]
	return at != nil && !at.lost && !at.lapsed && now.Before(at.until)
}

// UseClock gives the leases another clock. For tests; not while they are in use.
func (l *held) UseClock(clock *Clock) { l.table.clock = clock }

// Close implements Leases: it ends the renewals. The leases in the journal then end by themselves.
func (l *held) Close() { l.renewal.close() }

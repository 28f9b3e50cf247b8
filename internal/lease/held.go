package lease

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// held holds the leases of one client in a shared journal. One call renews all of them, every third of a lease. No
// goroutine runs while there are none. They are safe for concurrent use.
type held struct {
	host    *Host
	journal persist.Claimer
	clock   *Clock
	owner   string

	mu       sync.Mutex
	held     map[persist.ID]*lease // each with at least one user
	claims   map[*Claim]bool       // under way
	armed    bool                  // a renewal is scheduled
	closed   bool                  // by Close: nothing is renewed any more
	renewing sync.WaitGroup
}

// lease is one lease of this client. held.mu guards its fields.
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

// The reasons to send nothing although a run is under way.
var (
	ErrElsewhere = errors.New("another process has it")
	ErrNone      = errors.New("this client has no lease of it")
	ErrOver      = errors.New("its lease has ended, and the journal could not renew it")
)

// Stamp implements Leases.
func (l *held) Stamp() (owner string, until time.Time) {
	return l.owner, l.clock.Now().Round(0).Add(l.host.Length)
}

// Keep implements Leases. The run may have renewed its lease since the record was read, and a renewal makes no new revision. The length of
// its leases is not known, since its Config.Lease may be another. A run with timely renewals has at least two thirds left. So half of the rest is added:
// the sum is at least the run's next renewal. A late run gets a lease of the default length. The lease of a dead client grows by no more.
func (l *held) Keep(rec *persist.Record) {
	now := l.clock.Now().Round(0)
	if !rec.Leased("", now) {
		return
	}
	left, usual := rec.LeaseUntil.Sub(now), min(l.host.Length, Usual)
	rec.LeaseUntil = now.Add(max(left+left/2, usual+usual/Renewals))
}

// hold adds a user to the lease of a record of this client, and renews it from now on. release must follow once
// for each hold. The caller holds mu, and sets the other fields of a new lease.
func (l *held) hold(rec *persist.Record) *lease {
	at := l.held[rec.ID]
	if at == nil {
		at = &lease{}
		l.held[rec.ID] = at
	}
	at.users++
	l.arm()
	return at
}

// Begin implements Leases.
func (l *held) Begin(rec *persist.Record) {
	if rec.LeaseOwner != l.owner {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.held[rec.ID]; at != nil && at.runs {
		return
	}
	at := l.hold(rec)
	at.begin(rec)
	at.until, at.lost = rec.LeaseUntil, false
}

// begin notes a run of the record, and spends the mark of its claim. The caller holds held.mu, and has a hold for
// the run.
func (at *lease) begin(rec *persist.Record) {
	at.lapsed = false
	at.runs, at.revision, at.drives, at.enqueued, at.marked = true, rec.Revision, rec.Drives, rec.Enqueued, time.Time{}
}

// End implements Leases. A later claim does not belong to that run, although the call may return later.
func (l *held) End(id persist.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.held[id]; at != nil && at.runs {
		at.runs, at.lost = false, false // its other holder has claimed it meanwhile
		l.release(id, at)
	}
}

// Runs implements Leases.
func (l *held) Runs(id persist.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.held[id]
	return at != nil && at.runs
}

// Claimed implements Leases. It returns the records for the pass, and holds their leases. A record left out runs in this process
// already: the journal could not renew its lease in time, and the claim has taken it for its own client. That run gets the new lease and revision,
// and goes on. A claim leaves records unmarked if they were touched since its begin, or need no mark.
func (l *held) Claimed(batch []persist.Record, c *Claim, marked time.Time) []persist.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.claims, c)
	return slices.DeleteFunc(batch, func(rec persist.Record) bool {
		if c == nil || c.touched[rec.ID] || !rec.MarkedByClaim(marked) {
			return l.handOver(&rec, time.Time{})
		}
		return l.handOver(&rec, marked)
	})
}

// handOver gives a claim to the run of its operation. running is false, and the lease is held for the pass, if no run is under way, or if another
// process has changed the record in between (operation.MayRunOn): such a run sends nothing more. marked is as in lease. The caller holds mu.
func (l *held) handOver(rec *persist.Record, marked time.Time) (running bool) {
	at := l.held[rec.ID]
	switch {
	case at == nil || !at.runs:
		at = l.hold(rec)
		at.until, at.lost = rec.LeaseUntil, false
		at.revision, at.marked = rec.Revision, marked
		return false
	case at.lost || !operation.MayRunOn(at.revision, at.enqueued, rec):
		l.hold(rec).lost = true
		return false
	}
	if !rec.Enqueued || at.enqueued { // else the run meets ErrStale, and takes over both
		at.revision, at.drives = max(at.revision, rec.Revision), max(at.drives, rec.Drives)
	}
	if rec.LeaseUntil.After(at.until) {
		at.until = rec.LeaseUntil
	}
	return true
}

// Latest implements Leases.
func (l *held) Latest(rec *persist.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.held[rec.ID]; at != nil && at.runs {
		rec.Revision, rec.Drives = max(rec.Revision, at.revision), max(rec.Drives, at.drives)
	}
}

// Changed implements Leases.
func (l *held) Changed(rec *persist.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.held[rec.ID]; at != nil && at.runs {
		at.revision, at.drives, at.enqueued = max(at.revision, rec.Revision), max(at.drives, rec.Drives), rec.Enqueued
	}
}

// Drop implements Leases.
func (l *held) Drop(id persist.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.held[id]; at != nil {
		l.release(id, at)
	}
}

// release ends one hold. Without another hold, the lease is renewed no more; in the journal it ends by itself, or
// by a write of the caller. The caller holds mu.
func (l *held) release(id persist.ID, at *lease) {
	if at.users--; at.users <= 0 {
		delete(l.held, id)
	}
}

// Check implements Leases. A run calls it before each attempt, and again when the request is ready. It may wait
// for a renewal of the lease, until ctx ends.
func (l *held) Check(ctx context.Context, id persist.ID) error {
	known, lost, over := l.state(id)
	if known && over && !lost {
		l.renew(ctx, []persist.ID{id})
		known, lost, over = l.state(id)
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

// state returns the facts about a lease: it is known to this client, it is lost to another owner, it is over by
// the clock. Of an unknown lease the others are false.
func (l *held) state(id persist.ID) (known, lost, over bool) {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.held[id]
	if at == nil {
		return false, false, false
	}
	return true, at.lost, !now.Before(at.until)
}

// Unbroken implements Leases.
func (l *held) Unbroken(id persist.ID) bool {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.held[id]
	return at != nil && !at.lost && !at.lapsed && now.Before(at.until)
}

// arm schedules the next renewal. The caller holds mu.
func (l *held) arm() {
	if l.armed || l.closed || len(l.held) == 0 {
		return
	}
	l.armed = true
	time.AfterFunc(l.host.Length/Renewals, l.renewAll)
}

// Renewals is the number of renewals in the length of a lease, Usual the length of a lease by default.
const (
	Renewals = 3
	Usual    = 30 * time.Second
)

// renewAll renews all leases but lost ones, in one call of the journal, and schedules the next renewal. It runs on
// a goroutine of its own; Close waits for it.
func (l *held) renewAll() {
	l.mu.Lock()
	l.armed = false
	var ids []persist.ID
	for id, at := range l.held {
		if !at.lost {
			ids = append(ids, id)
		}
	}
	if l.closed || len(ids) == 0 {
		l.mu.Unlock()
		return
	}
	l.renewing.Add(1)
	l.mu.Unlock()
	defer l.renewing.Done()
	ctx, cancel := context.WithTimeout(context.Background(), l.host.Length)
	defer cancel()
	l.host.Guard(ctx, "the journal has crashed in Renew", func() { l.renew(ctx, ids) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arm()
}

// renew renews leases, and notes those not renewed by the journal as lost. After an error, leases without a
// renewal stay as they were. A lease released meanwhile is not found any more, and its renewal has no effect here.
// The caller does not hold mu.
func (l *held) renew(ctx context.Context, ids []persist.ID) {
	l.mu.Lock()
	asked := make(map[persist.ID]*lease, len(ids))
	for _, id := range ids {
		asked[id] = l.held[id]
	}
	l.mu.Unlock()
	before := l.clock.own()
	held, now, err := l.journal.Renew(ctx, l.owner, l.host.Length, ids)
	if err != nil {
		l.host.Log(ctx, slog.LevelWarn, "leases could not be renewed", err)
	}
	l.clock.Learn(ctx, l.host, now, before)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range held {
		if at := asked[id]; at != nil {
			at.lapsed = at.lapsed || !now.Before(at.until)
			at.until = now.Add(l.host.Length)
			delete(asked, id)
		}
	}
	if err != nil {
		return
	}
	for _, at := range asked {
		if at != nil {
			at.lost = true
		}
	}
}

// UseClock gives the leases another clock. For tests; not while they are in use.
func (l *held) UseClock(clock *Clock) { l.clock = clock }

// Close implements Leases.
func (l *held) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.renewing.Wait()
}

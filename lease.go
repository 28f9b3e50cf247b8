package oncehttp

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// leases keeps the leases of one client: it renews those of all operations that the client runs or has claimed, in one
// call for all, every third of Config.Lease. It has no goroutine while there are none. It is safe for concurrent use;
// the methods of a nil *leases do nothing, for a journal without leases.
type leases struct {
	cfg     *Config
	journal persist.Claimer
	clock   *clock
	owner   string

	mu       sync.Mutex
	held     map[persist.ID]*lease
	claims   map[*claim]bool // under way
	armed    bool            // a renewal is due
	closed   bool
	renewing sync.WaitGroup
}

// lease is one that this client has. Its fields are guarded by leases.mu.
type lease struct {
	users int       // the run of the operation, and the pass that claimed it
	until time.Time // it lasts until then, by the journal's clock
	lost  bool      // another has it, or has had it
	runs  bool      // the operation is being run, and the run has not written its last
	// lapsed: it has ended since begin, and was renewed too late. Others may have taken the operation for one that was left.
	lapsed bool
	// revision is that of the record while it runs, as far as only the run and claims of this client have changed it, drives
	// its Drives then, and enqueued its mark.
	revision uint64
	drives   int
	enqueued bool
	// marked is when the claim at revision marked the record as maybe sent; zero: it did not, or a call has had the record since.
	marked time.Time
}

// The reasons why an operation is not sent although its run is under way.
var (
	errElsewhere = errors.New("another process has it")
	errNoLease   = errors.New("this client has no lease of it")
	errLeaseOver = errors.New("its lease has ended, and the journal could not renew it")
)

// newLeases returns the leases of a client; nil if its journal has none.
func newLeases(cfg *Config, clock *clock, owner string) *leases {
	if clock.journal == nil {
		return nil
	}
	return &leases{cfg: cfg, journal: clock.journal, clock: clock, owner: owner, held: map[persist.ID]*lease{}, claims: map[*claim]bool{}}
}

// stamp writes a new lease into a record, which the caller then writes into the journal.
func (l *leases) stamp(rec *persist.Record) {
	if l != nil {
		rec.LeaseOwner, rec.LeaseUntil = l.owner, l.clock.now().Round(0).Add(l.cfg.Lease)
	}
}

// keep lengthens the lease of a record that a run, of whatever client, is going on with, before that is written by somebody
// else: the run may have renewed it since the record was read, and a renewal is no new revision. How long that client's leases
// are is not known: this client's Config.Lease may be another. Where it has renewed in time, at least two thirds are left, so that
// half as long again is what a renewal before this write gives. Where it is late, this is enough for a lease of the default length.
// A dead client's lease grows by no more than that.
func (l *leases) keep(rec *persist.Record) {
	if l == nil {
		return
	}
	now := l.clock.now().Round(0)
	if !rec.Leased("", now) {
		return
	}
	left, usual := rec.LeaseUntil.Sub(now), min(l.cfg.Lease, defaultLease)
	rec.LeaseUntil = now.Add(max(left+left/2, usual+usual/renewals))
}

// hold renews the lease of a record, which is this client's, until release was called as often. The caller holds mu.
func (l *leases) hold(rec *persist.Record) *lease {
	at := l.held[rec.ID]
	if at == nil {
		at = &lease{}
		l.held[rec.ID] = at
	}
	at.users++
	l.arm()
	return at
}

// begin renews the lease of a record that is run from now on, until end is called. If it was called already, it does nothing.
func (l *leases) begin(rec *persist.Record) {
	if l == nil || rec.LeaseOwner != l.owner {
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

// begin notes that the record is being run.
func (at *lease) begin(rec *persist.Record) {
	at.lapsed = false
	at.runs, at.revision, at.drives, at.enqueued, at.marked = true, rec.Revision, rec.Drives, rec.Enqueued, time.Time{}
}

// end ends what begin began, once the run writes its record no more. A claim that comes later is none of that run's, although
// the call may take a while to return. Of what has ended already, it does nothing.
func (l *leases) end(id persist.ID) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.held[id]; at != nil && at.runs {
		at.runs, at.lost = false, false // who still holds it has claimed it meanwhile
		l.release(id, at)
	}
}

// runs reports whether the operation is being run, and its run may still write its record.
func (l *leases) runs(id persist.ID) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.held[id]
	return at != nil && at.runs
}

// claimed is called for all that a claim has taken; c is nil if the claim marks nothing, and else marked is when it marked the
// records of which Record.MarkedByClaim says so. It returns what is to be run: of that it renews the lease until drop is called for each. The others run
// already: the journal could not renew their leases in time, and the claim has taken them for their own client. So their runs get the
// new lease and the new revision, and go on.
func (l *leases) claimed(batch []persist.Record, c *claim, marked time.Time) []persist.Record {
	if l == nil {
		return batch
	}
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

// handOver gives a claim to the run that is under way with its operation. It returns false, and holds the lease for the
// pass, where there is none, and where another process has changed the record in between: that run may send nothing more.
// marked is as in lease. The caller holds mu.
func (l *leases) handOver(rec *persist.Record, marked time.Time) bool {
	at := l.held[rec.ID]
	enqueued := at != nil && rec.Enqueued && !at.enqueued // by an Enqueue, which changes the record once
	switch {
	case at == nil || !at.runs:
		at = l.hold(rec)
		at.until, at.lost = rec.LeaseUntil, false
		at.revision, at.marked = rec.Revision, marked
		return false
	case at.lost || rec.Revision > at.revision+2 || rec.Revision == at.revision+2 && !enqueued:
		l.hold(rec).lost = true
		return false
	}
	if !enqueued { // else the run meets ErrStale, and takes over both
		at.revision, at.drives = max(at.revision, rec.Revision), max(at.drives, rec.Drives)
	}
	if rec.LeaseUntil.After(at.until) {
		at.until = rec.LeaseUntil
	}
	return true
}

// latest sets the revision at which a record has to be changed, and its Drives: those which are known of it, or later ones by
// claims of this client that its run got.
func (l *leases) latest(rec *persist.Record) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.held[rec.ID]; at != nil && at.runs {
		rec.Revision, rec.Drives = max(rec.Revision, at.revision), max(rec.Drives, at.drives)
	}
}

// changed notes that a run has changed its record.
func (l *leases) changed(rec *persist.Record) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.held[rec.ID]; at != nil && at.runs {
		at.revision, at.drives, at.enqueued = max(at.revision, rec.Revision), max(at.drives, rec.Drives), rec.Enqueued
	}
}

// drop ends what claimed began. It gives nothing up in the journal.
func (l *leases) drop(id persist.ID) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.held[id]; at != nil {
		l.release(id, at)
	}
}

// release ends one use of a lease. The caller holds mu.
func (l *leases) release(id persist.ID, at *lease) {
	if at.users--; at.users <= 0 {
		delete(l.held, id)
	}
}

// check is called before each attempt, and again when its request is ready to be sent. Where the lease has ended, as after
// a process was frozen, it is renewed first.
// Errors: errElsewhere, errLeaseOver, errNoLease.
func (l *leases) check(ctx context.Context, id persist.ID) error {
	if l == nil {
		return nil
	}
	known, lost, over := l.state(id)
	if known && over && !lost {
		l.renew(ctx, []persist.ID{id})
		known, lost, over = l.state(id)
	}
	switch {
	case !known:
		return errNoLease
	case lost:
		return errElsewhere
	case over:
		return errLeaseOver
	}
	return nil
}

// state says what is known of a lease.
func (l *leases) state(id persist.ID) (known, lost, over bool) {
	now := l.clock.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.held[id]
	if at == nil {
		return false, false, false
	}
	return true, at.lost, !now.Before(at.until)
}

// unbroken reports whether the lease of a record that is run has never ended since begin. Without leases it is true.
func (l *leases) unbroken(id persist.ID) bool {
	if l == nil {
		return true
	}
	now := l.clock.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.held[id]
	return at != nil && !at.lost && !at.lapsed && now.Before(at.until)
}

// arm sees to the next renewal. The caller holds mu.
func (l *leases) arm() {
	if l.armed || l.closed || len(l.held) == 0 {
		return
	}
	l.armed = true
	time.AfterFunc(l.cfg.Lease/renewals, l.renewAll)
}

// renewals is how often a lease is renewed before it would end.
const renewals = 3

// renewAll renews all leases, and sees to the next time.
func (l *leases) renewAll() {
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
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Lease)
	defer cancel()
	l.cfg.guard(ctx, "the journal has crashed in Renew", func() { l.renew(ctx, ids) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arm()
}

// renew renews leases, and notes which are lost. An error leaves those as they were that the journal has not renewed.
func (l *leases) renew(ctx context.Context, ids []persist.ID) {
	l.mu.Lock()
	asked := make(map[persist.ID]*lease, len(ids))
	for _, id := range ids {
		asked[id] = l.held[id]
	}
	l.mu.Unlock()
	before := l.clock.own()
	held, now, err := l.journal.Renew(ctx, l.owner, l.cfg.Lease, ids)
	if err != nil {
		l.cfg.log(ctx, slog.LevelWarn, "leases could not be renewed", "", err)
	}
	l.clock.learn(ctx, l.cfg, now, before)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range held {
		if at := asked[id]; at != nil {
			at.lapsed = at.lapsed || !now.Before(at.until)
			at.until = now.Add(l.cfg.Lease)
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

// close renews nothing more, and waits for a renewal that is under way.
func (l *leases) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.renewing.Wait()
}

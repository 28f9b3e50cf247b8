package oncehttp

import (
	"context"
	"errors"
	"log/slog"
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
	armed    bool // a renewal is due
	closed   bool
	renewing sync.WaitGroup
}

// lease is one that this client has. Its fields are guarded by leases.mu.
type lease struct {
	users int       // the run of the operation, and the pass that claimed it
	until time.Time // it lasts until then, by the journal's clock
	lost  bool      // another has it
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
	return &leases{cfg: cfg, journal: clock.journal, clock: clock, owner: owner, held: map[persist.ID]*lease{}}
}

// stamp writes a new lease into a record, which the caller then writes into the journal.
func (l *leases) stamp(rec *persist.Record) {
	if l != nil {
		rec.LeaseOwner, rec.LeaseUntil = l.owner, l.clock.now().Round(0).Add(l.cfg.Lease)
	}
}

// hold renews the lease of a record, which is this client's, until drop was called as often.
func (l *leases) hold(rec *persist.Record) {
	if l == nil || rec.LeaseOwner != l.owner {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.held[rec.ID]
	if at == nil {
		at = &lease{}
		l.held[rec.ID] = at
	}
	at.users++
	at.until, at.lost = rec.LeaseUntil, false
	l.arm()
}

// drop ends what hold began. It gives nothing up in the journal.
func (l *leases) drop(id persist.ID) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.held[id]; at != nil {
		if at.users--; at.users <= 0 {
			delete(l.held, id)
		}
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
	l.renew(ctx, ids)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arm()
}

// renew renews leases, and notes which are lost. An error leaves them as they were.
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
		return
	}
	l.clock.learn(ctx, l.cfg, now, before)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range held {
		if at := asked[id]; at != nil {
			at.until, at.lost = now.Add(l.cfg.Lease), false
			delete(asked, id)
		}
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

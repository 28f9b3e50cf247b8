package lease

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Renewals is the number of renewals in the length of a lease, Usual the length of a lease by default.
const (
	Renewals = 3
	Usual    = 30 * time.Second
)

// renewal renews the leases of a table. One call of the journal renews all of them, every third of a lease. No goroutine runs while there are none.
type renewal struct {
	table   *table
	host    *Host
	journal persist.Claimer
	owner   string

	armed    bool // the next is scheduled; guarded by table.mu
	closed   bool // nothing is renewed any more; guarded by table.mu
	underway sync.WaitGroup
}

// hold adds a user to the lease of a record, as table.hold does, and renews the lease from now on. The caller holds table.mu.
func (r *renewal) hold(rec *persist.Record) *lease {
	at := r.table.hold(rec)
	r.arm()
	return at
}

// arm schedules the next renewal. The caller holds table.mu.
func (r *renewal) arm() {
	if r.armed || r.closed || len(r.table.of) == 0 {
		return
	}
	r.armed = true
	time.AfterFunc(r.host.Length/Renewals, r.renewAll)
}

// renewAll renews all leases but lost ones, in one call of the journal, and schedules the next renewal. It runs on a goroutine of its own; close waits for it.
// A crash of the journal is logged (Guard), and ends nothing else.
func (r *renewal) renewAll() {
	r.table.mu.Lock()
	r.armed = false
	var ids []persist.ID
	for id, at := range r.table.of {
		if !at.lost {
			ids = append(ids, id)
		}
	}
	if r.closed || len(ids) == 0 {
		r.table.mu.Unlock()
		return
	}
	r.underway.Add(1)
	r.table.mu.Unlock()
	defer r.underway.Done()
	ctx, cancel := context.WithTimeout(context.Background(), r.host.Length)
	defer cancel()
	r.host.Guard(ctx, "the journal has crashed in Renew", func() { r.renew(ctx, ids) })
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	r.arm()
}

// renew renews leases in the journal. A lease that the journal has not renewed is noted as lost; one renewed only after its end as lapsed, since others may
// have acted on it meanwhile. After an error none is, and the leases stay as they were. A lease that was released meanwhile is left alone. The caller must not
// hold table.mu.
func (r *renewal) renew(ctx context.Context, ids []persist.ID) {
	r.table.mu.Lock()
	asked := make(map[persist.ID]*lease, len(ids))
	for _, id := range ids {
		asked[id] = r.table.of[id]
	}
	r.table.mu.Unlock()
	before := r.table.clock.own()
	held, now, err := r.journal.Renew(ctx, r.owner, r.host.Length, ids)
	if err != nil {
		r.host.Log(ctx, slog.LevelWarn, "leases could not be renewed", err)
	}
	r.table.clock.Learn(ctx, r.host, now, before)
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	for _, id := range held {
		if at := asked[id]; at != nil {
			at.lapsed = at.lapsed || !now.Before(at.until)
			at.until = now.Add(r.host.Length)
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

// close renews nothing more, and waits for a renewal under way.
func (r *renewal) close() {
	r.table.mu.Lock()
	r.closed = true
	r.table.mu.Unlock()
	r.underway.Wait()
}

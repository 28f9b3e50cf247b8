package run

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/persist"
)

// feeder hands the due operations of a pass to its workers, one after the other. In a fair pass only the held
// ones go through it.
type feeder struct {
	pass   *pass
	drives *drives

	fed      bool                 // every due record was handed to a worker; written by feed, read after workers
	clockErr error                // of the journal, asked for the time and for the origins
	jobs     chan *persist.Record // to run; of a fair Run only held records; closed by its only sender
	asks     chan struct{}        // a free worker takes it, and runs nothing
}

// feed hands the due operations to the workers: listed ones, or claimed ones if other processes share the journal; then only held ones are listed (pending, the
// first of the query's states, is left out). It closes jobs, and sets fed if all were handed over. Errors of the journal are yielded. It is the only sender of
// jobs, and runs on one goroutine of the pass.
func (f *feeder) feed() {
	p := f.pass
	defer close(f.jobs)
	if f.clockErr != nil {
		p.failed(f.clockErr)
		return
	}
	claimer, shared := persist.As[persist.Claimer](p.c.cfg.Journal)
	query := p.query
	if shared {
		query.States = query.States[1:] // a held operation has no lease
	}
	if len(query.States) > 0 && !f.list(query, p.failed) {
		return
	}
	if shared { // last, so as not to meet again an operation left held by this pass
		f.claim(claimer)
	}
	f.fed = p.draining.Err() == nil
}

// list hands the records of the query to the workers, and calls failed with each error but those told by Run itself (silent): of all records together that this
// client cannot read or act on. The listing goes on after an error. A record is left out if its origin takes no connections, and another operation tries it
// (tryNow). list returns false if the pass was broken off. A listed record is not leased: the run reads it again, and its adoption fails if another process was
// faster.
func (f *feeder) list(query persist.Query, failed func(error)) bool {
	p := f.pass
	for rec, err := range p.c.cfg.Journal.List(p.draining, query) {
		switch {
		case err != nil && p.silent && unread(err): // Run tells of all of them together
		case err != nil:
			failed(err)
		case p.silent && p.lacks(&rec): // Run tells of all of them together
		case !p.tryNow(&rec):
		case p.lanes != nil && rec.State != persist.StateHeld: // it has changed since: a fair pass claims it, and has no lane for it yet
		case !f.hand(&rec):
			return false
		}
	}
	return true
}

// claim claims the due operations served by this client, and runs them. If the journal tells needs, and some groups are not for this client, it claims group by
// group and, in a Resume (not silent), yields an error for each operation of the others; else it claims all at once (the zero group). It ends early if the pass
// is stopped (draining). Without that, the operations of others would be claimed and given back again and again.
func (f *feeder) claim(j persist.Claimer) {
	p := f.pass
	served, others, err := f.groups()
	if err != nil {
		p.failed(err)
		return
	}
	if len(others) == 0 {
		f.claimGroup(j, group{})
		return
	}
	for _, g := range served {
		f.claimGroup(j, g)
	}
	for _, g := range others {
		if p.draining.Err() == nil && !p.silent {
			f.tellOf(g)
		}
	}
}

// groups returns the due groups, first those that this client can act on, then the others. A group is the operations of one account, origin and
// needs. Both are empty if the journal does not tell groups. Groups due after the start of the pass are left to the next one.
func (f *feeder) groups() (served, others []group, err error) {
	p := f.pass
	times, knows := persist.As[persist.DueTimes](p.c.cfg.Journal)
	if !knows {
		return nil, nil, nil
	}
	all, err := times.DueTimes(p.draining, persist.Query{Account: p.query.Account})
	for _, t := range all {
		g := group{t.Origin, t.Needs}
		switch {
		case t.At.After(p.query.DueBy):
		case p.lacksFor(g):
			others = append(others, g)
		default:
			served = append(served, g)
		}
	}
	return served, others, err
}

// tellOf reports each operation of a group that this client cannot act on, as an error of the Resume. It lists them and claims none, and leaves out those under
// a lease of anybody (""): the call or process with the lease runs them.
func (f *feeder) tellOf(g group) {
	p := f.pass
	query := p.query
	query.Origin, query.Needs, query.States = g.origin, g.needs, []persist.State{persist.StatePending}
	for rec, err := range p.c.cfg.Journal.List(p.draining, query) {
		switch {
		case err != nil:
			p.failed(err)
		case rec.Leased("", p.c.engine.now()):
		case p.lacks(&rec):
			p.yieldUnserved(&rec)
		}
	}
}

// claimGroup claims due operations of one group, or of all with the zero group, in batches of twice the workers, and hands them out. After a wait for a worker,
// the next batch is of one, and each later one twice as large. It ends when no more are due (this pass runs none of a batch that is not full, or brings none
// not met before), the pass is broken off, or the journal fails, which it yields. An operation not run by this pass is given back with a due time after the
// start of the pass, so as not to be claimed again. Operations not served by this client are given back unchanged; later batches are larger by their number.
func (f *feeder) claimGroup(j persist.Claimer, g group) {
	p := f.pass
	e, query, most := p.c.engine, p.query, 2*p.c.cfg.ResumeWorkers
	query.States, query.Origin, query.Needs = []persist.State{persist.StatePending}, g.origin, g.needs
	left := map[persist.ID]bool{} // operations given back unchanged
	for n := most; p.draining.Err() == nil && len(left) <= aloneBatchMax; n = min(max(2*n, 1), most) {
		before := e.clock.Own()
		known := len(left)
		batch, now, err := j.Claim(p.draining, query, e.owner, p.c.cfg.Lease, n+known)
		if err != nil {
			p.failed(err)
			return
		}
		// now is the journal's time during the claim.
		e.clock.Learn(p.ctx, p.c.engine.host, now, before)
		taken := len(batch)
		passed, busy := f.handOut(e.claims.Claimed(batch, nil, time.Time{}), left)
		switch {
		case busy && !f.awaitWorker(): // broken off
			return
		case !busy && passed == taken && (taken < n+known || len(left) == known): // there is nothing else
			return
		case busy:
			n = 0
		}
	}
}

// handOut gives claimed operations to the workers, and gives the others back to the journal. passed counts those that this pass does not run; left gets the IDs
// of those given back unchanged. An operation begun after the start of a Resume (not silent) is not run by it, nor one that a worker waits for (waits). busy is
// true if no worker was free for a third of a lease, or the pass was stopped. After handOut, no lease of batch is the caller's any more.
func (f *feeder) handOut(batch []persist.Record, left map[persist.ID]bool) (passed int, busy bool) {
	p := f.pass
	for i := range batch {
		rec := &batch[i]
		switch begun := rec.Created.After(p.query.DueBy); { // since the pass started
		case begun && !p.silent:
			passed++
			p.giveBack(rec, rec.Created)
		case p.lacks(rec):
			passed++
			p.passBy(rec, left[rec.ID])
			left[rec.ID] = true
		case f.drives.waits.has(rec.ID): // for its turn: the waiting worker takes it then
			passed++
			p.giveBack(rec, time.Time{})
			left[rec.ID] = true
		case !p.tryNow(rec):
			p.giveBack(rec, p.again())
		case !f.handSoon(rec):
			p.giveBackAll(pointers(batch[i:]))
			return passed, true
		}
	}
	return passed, false
}

// handSoon hands a record to a worker, and waits a third of a lease at most, so that the record's lease does not run out. After false no worker took
// it in that time, or the pass is being stopped; the caller then releases the record in the journal.
func (f *feeder) handSoon(rec *persist.Record) bool {
	timer := time.NewTimer(f.pass.c.cfg.Lease / lease.Renewals)
	defer timer.Stop()
	select {
	case f.jobs <- rec:
		return true
	case <-f.pass.draining.Done():
	case <-timer.C:
	}
	return false
}

// hand waits for a free worker and gives it a record. After false the pass (Resume or Run) was broken off, and the caller still has the
// record. It is for records without a lease, which can be lost by no wait; see handSoon for claimed ones.
func (f *feeder) hand(rec *persist.Record) bool {
	select {
	case f.jobs <- rec:
		return true
	case <-f.pass.draining.Done():
		return false
	}
}

// awaitWorker waits until a worker is free, before anything is claimed: a claimed operation without a worker would have to be given back.
// After false the pass (Resume or Run) was broken off.
func (f *feeder) awaitWorker() bool {
	select {
	case f.asks <- struct{}{}:
		return true
	case <-f.pass.draining.Done():
		return false
	}
}

// work runs the records of jobs until jobs is closed. Each worker of the pass does so on a goroutine of its
// own, and the runs on others: a crash of one does not end the worker. Who sends to asks learns that a worker is free (awaitWorker).
func (f *feeder) work() {
	for {
		select {
		case <-f.asks:
		case rec, more := <-f.jobs:
			if !more {
				return
			}
			if r, over := f.drives.driveOn(rec); over {
				f.pass.yield(r)
			}
		}
	}
}

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/lanes"
	"github.com/oncehttp/oncehttp/persist"
)

// errPassEnded cuts the waits of a Resume that was broken off.
var errPassEnded = errors.New("the resume was broken off")

// pass is one Resume under way.
type pass struct {
	c        *Client
	ctx      context.Context // its end cuts off the attempts on the wire
	underWay *inflight.Work  // the pass, as seen by functions called from its operations
	draining context.Context // its end stops the waits and the listing
	drain    context.CancelCauseFunc
	silent   bool                 // begun by Run: only errors are yielded
	fed      bool                 // every due record was handed to a worker; written by feed, read after workers
	clockErr error                // of the journal, asked for the time and for the origins
	query    persist.Query        // the due operations of the account; DueBy is the start of the pass
	jobs     chan *persist.Record // to run; of a fair Run only held records; closed by its only sender
	asks     chan struct{}        // a free worker takes it, and runs nothing
	lanes    *lanes.Lanes         // of the claims of a fair Run; nil for any other pass
	results  chan resumed         // closed after the last worker
	workers  sync.WaitGroup       // all goroutines started by begin
	runs     goroutines           // each runs an operation
	waits    waiting              // operations whose limiter is waited for without them
}

// resumed is one result of a pass, as it is yielded.
type resumed struct {
	result Result
	err    error
}

// drove is the end of one drive of a pass over an operation.
type drove struct {
	over    bool // the operation was run, and resumed is its result so far; else it was left to others, or there was nothing to do
	resumed resumed
	turn    *turn // the limiter takes long, and the operation was given back; nil else. The receiver waits for it, or stops it
}

// turns returns the turns that bound the sends of the pass.
func (p *pass) turns() lanes.Turns {
	if p.lanes == nil {
		return lanes.Free{}
	}
	return p.lanes
}

// newPass starts a pass over the operations due now. Nothing more is begun once draining ends or the client is
// closed; the attempts on the wire end with ctx. silent: the pass belongs to a Run. The caller reads results, and
// calls end in every case, also after results is closed. Errors of the start come through results.
func newPass(ctx, draining context.Context, c *Client, silent bool) *pass {
	work := inflight.NewPass(ctx, c)
	ctx, draining = work.Context(ctx), work.Context(draining)
	p := &pass{c: c, ctx: ctx, underWay: work, silent: silent, jobs: make(chan *persist.Record), asks: make(chan struct{}), results: make(chan resumed)}
	p.draining, p.drain = context.WithCancelCause(draining)
	if c.draining.Err() != nil {
		p.drain(ErrClosed)
	}
	stop := context.AfterFunc(c.draining, func() { p.drain(ErrClosed) })
	p.clockErr = cmp.Or(c.engine.clock.Sync(ctx, c.engine.host), c.cfg.authorized.Look(ctx), c.cfg.authorized.HoldListed(ctx))
	p.query = persist.Query{Account: c.account(ctx), States: []persist.State{persist.StatePending}, DueBy: c.engine.now()}
	if c.cfg.Reconcile != nil {
		p.query.States = append(p.query.States, persist.StateHeld)
	}
	if fair, ok := fairly(c.cfg.Journal); ok && silent {
		p.startFairly(fair)
	} else {
		p.begin(p.feed)
		for range c.cfg.ResumeWorkers {
			p.begin(p.work)
		}
	}
	go func() {
		p.workers.Wait()
		p.runs.close()
		stop()
		if !p.fed && p.draining.Err() != nil {
			p.results <- resumed{err: fmt.Errorf("oncehttp: resume: %w", cmp.Or(p.ctx.Err(), context.Cause(p.draining)))}
		}
		close(p.results)
	}()
	return p
}

// end breaks the pass off, if it is not over, and waits for its workers. Attempts on the wire have an
// AttemptTimeout to end; then they are given up. end reads the rest of the results, and drops them.
func (p *pass) end() {
	defer p.underWay.End()
	p.drain(errPassEnded)
	cut := time.AfterFunc(p.c.cfg.Retry.AttemptTimeout, func() { p.c.engine.shared.calls.GiveUpDraining(p.c) })
	defer cut.Stop()
	for range p.results { // the rest
	}
}

// feed hands the due operations to the workers: listed ones, or claimed ones if other processes share the journal.
// It closes jobs, and sets fed if all were handed over. Errors of the journal are yielded.
func (p *pass) feed() {
	defer close(p.jobs)
	if p.clockErr != nil {
		p.failed(p.clockErr)
		return
	}
	claimer, shared := persist.As[persist.Claimer](p.c.cfg.Journal)
	query := p.query
	if shared {
		query.States = query.States[1:] // a held operation has no lease
	}
	if len(query.States) > 0 && !p.list(query, p.failed) {
		return
	}
	if shared { // last, so as not to meet again an operation left held by this pass
		p.claim(claimer)
	}
	p.fed = p.draining.Err() == nil
}

// list hands the records of the query to the workers, and calls failed with each error but those told by Run
// itself. The listing goes on after an error. list returns false if the pass was broken off.
func (p *pass) list(query persist.Query, failed func(error)) bool {
	for rec, err := range p.c.cfg.Journal.List(p.draining, query) {
		switch {
		case err != nil && p.silent && unread(err): // likewise
		case err != nil:
			failed(err)
		case p.silent && p.lacks(&rec): // Run tells of all of them together
		case !p.tryNow(&rec):
		case p.lanes != nil && rec.State != persist.StateHeld: // it has changed since: a fair pass claims it, and has no lane for it yet
		case !p.hand(&rec):
			return false
		}
	}
	return true
}

// tryNow reports whether a pass may try the record's origin now. In a Run, an origin that takes no connections is
// tried by one operation at a time; true reserves that try for rec. A Resume tries any: its caller asked for it
// now.
func (p *pass) tryNow(rec *persist.Record) bool {
	return !p.silent || rec.State != persist.StatePending ||
		p.c.engine.origins.Try(rec.Origin, rec.ID, p.c.engine.now(), p.c.cfg.Retry.AttemptTimeout)
}

// claim claims the due operations served by this client, and runs them. If the journal tells needs, and some
// groups are not for this client, it claims group by group and, in a Resume, yields an error for each operation of
// the others.
func (p *pass) claim(j persist.Claimer) {
	served, others, err := p.groups()
	if err != nil {
		p.failed(err)
		return
	}
	if len(others) == 0 {
		p.claimGroup(j, group{})
		return
	}
	for _, g := range served {
		p.claimGroup(j, g)
	}
	for _, g := range others {
		if p.draining.Err() == nil && !p.silent {
			p.tellOf(g)
		}
	}
}

// tellOf yields an error for each operation of a group not served by this client. They are listed, not claimed: the lease of one belongs to the
// call or process running it, and stays, also if this is a call of this client.
func (p *pass) tellOf(g group) {
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

// groups returns the due groups, first the ones served by this client, then the others. Both are empty if the
// journal does not tell groups.
func (p *pass) groups() (served, others []group, err error) {
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

// claimGroup claims due operations of one group, or of all with the zero group, in batches of twice the workers,
// and hands them out. It ends when no more are due, the pass is broken off, or the journal fails, which it yields.
// An operation not run by this pass is given back with a due time after the start of the pass, so as not to be
// claimed again. Operations not served by this client are given back unchanged; later batches are larger by their
// number.
func (p *pass) claimGroup(j persist.Claimer, g group) {
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
		e.clock.Learn(p.ctx, p.c.engine.host, now, before)
		taken := len(batch)
		passed, busy := p.handOut(e.leases.Claimed(batch, nil, time.Time{}), left)
		switch {
		case busy && !p.awaitWorker(): // broken off
			return
		case !busy && passed == taken && (taken < n+known || len(left) == known): // there is nothing else
			return
		case busy:
			n = 0
		}
	}
}

// handOut gives claimed operations to the workers, and gives back the others. passed is the number of operations
// not to be run by this pass; left gets the IDs of those given back unchanged. If no worker was free for a third
// of a lease, or the pass was broken off, busy is true. After handOut, no lease of batch is the caller's any more.
func (p *pass) handOut(batch []persist.Record, left map[persist.ID]bool) (passed int, busy bool) {
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
		case p.waits.has(rec.ID): // for its turn: the waiting worker takes it then
			passed++
			p.giveBack(rec, time.Time{})
			left[rec.ID] = true
		case !p.tryNow(rec):
			p.giveBack(rec, p.again())
		case !p.handSoon(rec):
			p.giveBackAll(pointers(batch[i:]))
			return passed, true
		}
	}
	return passed, false
}

// unread reports whether an error is about an intact record, unreadable here for a reason given by its needs.
func unread(err error) bool {
	var e *persist.UnreadError
	return errors.As(err, &e)
}

// failed yields an error of the journal, unless the pass was broken off. An error of one record names the record,
// and the listing goes on after it; any other error ends a round of Run.
func (p *pass) failed(err error) {
	if p.draining.Err() != nil {
		return // the pass ends with this error
	}
	if persist.OfOneRecord(err) {
		var about persist.Record
		if e := new(persist.UnreadError); errors.As(err, &e) {
			about = e.Record
		}
		err = newError("resume", unclear(about.Key), err)
		p.c.cfg.blocked(p.ctx, &about, err)
	}
	p.results <- resumed{err: err}
}

// hand waits for a free worker and gives it a record. After false the pass was broken off, and the caller still
// has the record.
func (p *pass) hand(rec *persist.Record) bool {
	select {
	case p.jobs <- rec:
		return true
	case <-p.draining.Done():
		return false
	}
}

// awaitWorker waits for a free worker. After false the pass was broken off.
func (p *pass) awaitWorker() bool {
	select {
	case p.asks <- struct{}{}:
		return true
	case <-p.draining.Done():
		return false
	}
}

// work runs the records of jobs until jobs is closed.
func (p *pass) work() {
	for {
		select {
		case <-p.asks:
		case rec, more := <-p.jobs:
			if !more {
				return
			}
			if r, over := p.driveOn(rec); over {
				p.yield(r)
			}
		}
	}
}

// yield hands over the result of an operation; in a pass of Run only an error. It waits for the reader of results:
// the caller, or end.
func (p *pass) yield(r resumed) {
	if !p.silent || r.err != nil {
		p.results <- r
	}
}

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
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// errPassEnded cuts the waits of a Resume that was broken off.
var errPassEnded = errors.New("the resume was broken off")

// pass is one Resume under way.
type pass struct {
	c        *Client
	ctx      context.Context // its end cuts off the attempts on the wire
	underWay *inflight.Work  // the pass, for those that its operations call
	draining context.Context // its end stops the waits and the listing
	drain    context.CancelCauseFunc
	silent   bool  // begun by Run: no caller gets the results
	fed      bool  // every due record was handed to a worker
	clockErr error // of the journal, which did not tell the time
	query    persist.Query
	jobs     chan *persist.Record // to run; of a fair Run only what is held
	lanes    *lanes.Lanes         // of what a fair Run has claimed; nil for any other pass
	results  chan resumed
	workers  sync.WaitGroup
	runs     goroutines // on which the operations run
	waits    waiting    // for their limiter, without their operation
}

// resumed is what a pass yields.
type resumed struct {
	result  Result
	err     error
	crashed *crash // of the run: it has no other result
	sends   int    // of a run that has crashed
	turn    *turn  // the limiter takes long, and the operation was given back, after err or with no other result
}

// turns returns the turns that bound the sends of the pass.
func (p *pass) turns() lanes.Turns {
	if p.lanes == nil {
		return lanes.Free{}
	}
	return p.lanes
}

// newPass starts a pass over what is due now. Nothing more is begun once draining ends; the attempts on the wire end with
// ctx. Its end must be called.
func newPass(ctx, draining context.Context, c *Client, silent bool) *pass {
	work := inflight.NewPass(ctx, c)
	ctx, draining = work.Context(ctx), work.Context(draining)
	p := &pass{c: c, ctx: ctx, underWay: work, silent: silent, jobs: make(chan *persist.Record), results: make(chan resumed)}
	p.draining, p.drain = context.WithCancelCause(draining)
	if c.draining.Err() != nil {
		p.drain(ErrClosed)
	}
	stop := context.AfterFunc(c.draining, func() { p.drain(ErrClosed) })
	p.clockErr = cmp.Or(c.engine.clock.Sync(ctx, c.engine.host), c.engine.lookAtOrigins(ctx), c.engine.holdOrigins(ctx))
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

// end breaks the pass off, if it is not over, and waits for its workers.
func (p *pass) end() {
	defer p.underWay.End()
	p.drain(errPassEnded)
	cut := time.AfterFunc(p.c.cfg.Retry.AttemptTimeout, func() { p.c.engine.shared.calls.GiveUpDraining(p.c) })
	defer cut.Stop()
	for range p.results { // what is left
	}
}

// feed lists what is due, or claims it where other processes share the journal.
func (p *pass) feed() {
	defer close(p.jobs)
	if p.clockErr != nil {
		p.failed(p.clockErr)
		return
	}
	claimer, shared := persist.As[persist.Claimer](p.c.cfg.Journal)
	query := p.query
	if shared {
		query.States = query.States[1:] // what is held has no lease
	}
	if len(query.States) > 0 && !p.list(query, p.failed) {
		return
	}
	if shared { // last, so that what this pass leaves held is not met again
		p.claim(claimer)
	}
	p.fed = p.draining.Err() == nil
}

// list hands out what the query selects, and calls failed with each error. It returns false if the pass was broken off.
func (p *pass) list(query persist.Query, failed func(error)) bool {
	for rec, err := range p.c.cfg.Journal.List(p.draining, query) {
		switch {
		case err != nil && p.silent && unread(err): // likewise
		case err != nil:
			failed(err)
		case p.silent && p.lacks(&rec): // Run tells of those together
		case !p.tryNow(&rec):
		case p.lanes != nil && rec.State != persist.StateHeld: // it has changed since: a fair pass claims it, and has no lane for it yet
		case !p.hand(&rec):
			return false
		}
	}
	return true
}

// tryNow reports whether a pass of Run may try the record's origin. Resume tries
// any: its caller asked for it now.
func (p *pass) tryNow(rec *persist.Record) bool {
	return !p.silent || rec.State != persist.StatePending ||
		p.c.engine.origins.Try(rec.Origin, rec.ID, p.c.engine.now(), p.c.cfg.Retry.AttemptTimeout)
}

// claim claims what the client can act on. Where the journal tells the needs of what is due, and some of that is not for this client,
// it claims group by group; a Resume reads the others, so that it yields an error for each.
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

// tellOf yields an error for each operation of a group that this client cannot act on. They are listed, not claimed: a lease that one has is that of
// whoever runs it, and stays, also if that is a call of this client.
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

// groups returns what is due, apart by whether this client can act on it; nothing where the journal does not tell.
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

// claimGroup takes leases in batches of twice the workers, of one group or of all; one after another while no worker is free for long. What it
// does not run it gives back with a time after the start of the pass, so that it does not meet it again; what it cannot act on as it was, and
// takes so many more at a time.
func (p *pass) claimGroup(j persist.Claimer, g group) {
	e, query, most := p.c.engine, p.query, 2*p.c.cfg.ResumeWorkers
	query.States, query.Origin, query.Needs = []persist.State{persist.StatePending}, g.origin, g.needs
	left := map[persist.ID]bool{} // what was given back as it was
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
		case busy && !p.hand(nil): // broken off
			return
		case !busy && passed == taken && (taken < n+known || len(left) == known): // there is nothing else
			return
		case busy:
			n = 0
		}
	}
}

// handOut gives claimed operations to the workers. What is not run it gives back: passed counts those that this pass does not run, which left has
// if they are as they were. busy is true where no worker was free for long, or the pass was broken off.
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
		case p.waits.has(rec.ID): // for its turn: the worker that waits takes it then
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

// lacks reports whether this client cannot act on a record that the pass has met, and notes why.
func (p *pass) lacks(rec *persist.Record) bool {
	lack := p.c.cfg.lacksClaimed(rec)
	p.c.engine.lacking.meet(lack)
	return lack.Need != operation.Nothing
}

// lacksFor is lacks of a group.
func (p *pass) lacksFor(g group) bool {
	if g.needs == "" {
		return false // each of its records is looked at
	}
	lack := p.c.cfg.lacksFor(g.origin, g.needs)
	p.c.engine.lacking.meet(lack)
	return lack.Need != operation.Nothing
}

// passBy gives a claimed operation back as it was that this client cannot act on. A Resume yields an error for it, once.
func (p *pass) passBy(rec *persist.Record, again bool) {
	p.giveBack(rec, time.Time{})
	if !p.silent && !again {
		p.yieldUnserved(rec)
	}
}

// yieldUnserved yields the error for an operation that this client cannot act on.
func (p *pass) yieldUnserved(rec *persist.Record) {
	if lack := p.c.cfg.lacksClaimed(rec); lack.Need != operation.Nothing {
		err := newError("resume", subjectOf(rec, operation.Same), lack.Err(), ErrConfig)
		p.c.cfg.blocked(p.ctx, rec, err)
		p.results <- resumed{result: Result{Key: rec.Key}, err: err}
	}
}

// unread reports whether an error is about a record that is intact and cannot be read here, and of which its needs say why.
func unread(err error) bool {
	var e *persist.UnreadError
	return errors.As(err, &e)
}

// giveBack gives up the lease of a claimed operation that is not run, which is then due again at that time.
func (p *pass) giveBack(rec *persist.Record, again time.Time) {
	p.c.engine.giveBack(p.ctx, *rec, again)
	p.c.engine.leases.Drop(rec.ID)
}

// tryGiveBack gives back what was not run. Where the journal crashes, the lease ends by itself.
func (p *pass) tryGiveBack(rec *persist.Record) {
	p.c.cfg.guard(p.ctx, "an operation could not be given back", func() { p.giveBack(rec, time.Time{}) })
}

// giveBackAll gives back, all at once, so that it takes no longer than one call where the journal does not answer. What could
// not be given back is free when its lease has ended.
func (p *pass) giveBackAll(recs []*persist.Record) {
	var calls sync.WaitGroup
	for _, rec := range recs {
		calls.Go(func() { p.tryGiveBack(rec) })
	}
	calls.Wait()
}

// pointers are those to the elements of a slice.
func pointers(recs []persist.Record) []*persist.Record {
	all := make([]*persist.Record, 0, len(recs))
	for i := range recs {
		all = append(all, &recs[i])
	}
	return all
}

// again is when an operation is due again that this pass cannot go on with: after the moment at which the pass began, so
// that the next one meets it; of one that does not end, a while later.
func (p *pass) again() time.Time {
	if p.lanes != nil {
		_ = p.c.engine.clock.Notice(p.ctx, p.c.engine.host) // where the journal cannot be asked, nothing can be given back either
		return p.c.engine.now().Add(pauseMax)
	}
	return p.query.DueBy.Add(1)
}

// failed yields the journal's error. One damaged record does not end the pass.
func (p *pass) failed(err error) {
	if p.draining.Err() != nil {
		return // that is what the pass ends with
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

// hand gives a record to a worker. It returns false if the pass was broken off.
func (p *pass) hand(rec *persist.Record) bool {
	select {
	case p.jobs <- rec:
		return true
	case <-p.draining.Done():
		return false
	}
}

// work runs what is handed to it; nil is nothing, and says that a worker is free.
func (p *pass) work() {
	for rec := range p.jobs {
		if rec == nil {
			continue
		}
		if r, over := p.driveOn(rec); over {
			p.yield(r)
		}
	}
}

// yield hands over what came of an operation; of a pass of Run only an error, since nobody gets the rest. It is always received:
// end reads what the caller does not.
func (p *pass) yield(r resumed) {
	if !p.silent || r.err != nil {
		p.results <- r
	}
}

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
	underWay *inflight.Work  // the pass, as seen by functions called from its operations
	draining context.Context // its end stops the waits and the listing
	drain    context.CancelCauseFunc
	silent   bool  // begun by Run: no caller gets the results
	fed      bool  // every due record was handed to a worker
	clockErr error // of the journal, asked for the time and for the origins
	query    persist.Query
	jobs     chan *persist.Record // to run; of a fair Run only held records
	lanes    *lanes.Lanes         // of the claims of a fair Run; nil for any other pass
	results  chan resumed
	workers  sync.WaitGroup
	runs     goroutines // for the operations
	waits    waiting    // for their limiter, without their operation
}

// resumed is one result of a pass.
type resumed struct {
	result  Result
	err     error
	crashed *crash // of the run: it has no other result
	sends   int    // of a crashed run
	turn    *turn  // the limiter takes long, and the operation was given back, after err or with no other result
}

// turns returns the turns that bound the sends of the pass.
func (p *pass) turns() lanes.Turns {
	if p.lanes == nil {
		return lanes.Free{}
	}
	return p.lanes
}

// newPass starts a pass over the operations due now. Nothing more is begun once draining ends; the attempts on the wire end with
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
	for range p.results { // the rest
	}
}

// feed lists the due operations, or claims them if other processes share the journal.
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

// list hands out the records of the query, and calls failed with each error. It returns false if the pass was broken off.
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

// tryNow reports whether a pass of Run may try the record's origin. Resume tries
// any: its caller asked for it now.
func (p *pass) tryNow(rec *persist.Record) bool {
	return !p.silent || rec.State != persist.StatePending ||
		p.c.engine.origins.Try(rec.Origin, rec.ID, p.c.engine.now(), p.c.cfg.Retry.AttemptTimeout)
}

// claim claims the operations served by this client. If the journal tells the needs of the due operations, and some of these are not for this
// client, it claims group by group. A Resume reads the others, to yield an error for each.
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

// groups returns the due groups, first the ones served by this client, then the others; nothing if the journal does not tell them.
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

// claimGroup takes leases in batches of twice the workers, of one group or of all; one after another while no worker is free for long. It gives
// back operations not run with a time after the start of the pass, so as not to meet them again. Operations not served by this client it gives
// back unchanged, and takes so many more at a time.
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
		case busy && !p.hand(nil): // broken off
			return
		case !busy && passed == taken && (taken < n+known || len(left) == known): // there is nothing else
			return
		case busy:
			n = 0
		}
	}
}

// handOut gives claimed operations to the workers, and gives back the others. It returns in passed the number of operations not to be run by
// this pass; left gets the unchanged ones of them. If no worker was free for long, or the pass was broken off, busy is true.
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

// lacks reports whether this client can not serve a record of the pass, and notes the reason.
func (p *pass) lacks(rec *persist.Record) bool {
	lack := p.c.cfg.lacksClaimed(rec)
	p.c.engine.lacking.meet(lack)
	return lack.Need != operation.Nothing
}

// lacksFor is lacks of a group.
func (p *pass) lacksFor(g group) bool {
	if g.needs == "" {
		return false // each of its records is checked by itself
	}
	lack := p.c.cfg.lacksFor(g.origin, g.needs)
	p.c.engine.lacking.meet(lack)
	return lack.Need != operation.Nothing
}

// passBy gives back a claimed operation not served by this client, unchanged. A Resume yields an error for it, once.
func (p *pass) passBy(rec *persist.Record, again bool) {
	p.giveBack(rec, time.Time{})
	if !p.silent && !again {
		p.yieldUnserved(rec)
	}
}

// yieldUnserved yields the error for an operation not served by this client.
func (p *pass) yieldUnserved(rec *persist.Record) {
	if lack := p.c.cfg.lacksClaimed(rec); lack.Need != operation.Nothing {
		err := newError("resume", subjectOf(rec, operation.Same), lack.Err(), ErrConfig)
		p.c.cfg.blocked(p.ctx, rec, err)
		p.results <- resumed{result: Result{Key: rec.Key}, err: err}
	}
}

// unread reports whether an error is about an intact record, unreadable here for a reason given by its needs.
func unread(err error) bool {
	var e *persist.UnreadError
	return errors.As(err, &e)
}

// giveBack gives up the lease of a claimed operation without a run. The operation is then due again at the time again.
func (p *pass) giveBack(rec *persist.Record, again time.Time) {
	p.c.engine.giveBack(p.ctx, *rec, again)
	p.c.engine.leases.Drop(rec.ID)
}

// tryGiveBack gives back an operation without a run. If the journal crashes, the lease ends by itself.
func (p *pass) tryGiveBack(rec *persist.Record) {
	p.c.cfg.guard(p.ctx, "an operation could not be given back", func() { p.giveBack(rec, time.Time{}) })
}

// giveBackAll gives operations back, all at once: if the journal does not answer, this takes no longer than one call. An operation not
// given back is free when its lease has ended.
func (p *pass) giveBackAll(recs []*persist.Record) {
	var calls sync.WaitGroup
	for _, rec := range recs {
		calls.Go(func() { p.tryGiveBack(rec) })
	}
	calls.Wait()
}

// pointers returns pointers to the elements of a slice.
func pointers(recs []persist.Record) []*persist.Record {
	all := make([]*persist.Record, 0, len(recs))
	for i := range recs {
		all = append(all, &recs[i])
	}
	return all
}

// again returns the next due time of an operation if this pass cannot go on with it. It is just after the beginning of the pass, for the next
// pass to meet the operation. Of a pass without an end, it is pauseMax from now.
func (p *pass) again() time.Time {
	if p.lanes != nil {
		_ = p.c.engine.clock.Notice(p.ctx, p.c.engine.host) // if the journal cannot be asked, nothing can be given back either
		return p.c.engine.now().Add(pauseMax)
	}
	return p.query.DueBy.Add(1)
}

// failed yields the journal's error. One damaged record does not end the pass.
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

// hand gives a record to a worker. It returns false if the pass was broken off.
func (p *pass) hand(rec *persist.Record) bool {
	select {
	case p.jobs <- rec:
		return true
	case <-p.draining.Done():
		return false
	}
}

// work runs the records handed to it; nil is no record, and says only: a worker is free.
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

// yield hands over the result of an operation; of a pass of Run only an error, since nobody gets the rest. It is always received:
// end reads the results not read by the caller.
func (p *pass) yield(r resumed) {
	if !p.silent || r.err != nil {
		p.results <- r
	}
}

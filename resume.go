package oncehttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/persist"
)

// errPassEnded cuts the waits of a Resume that was broken off.
var errPassEnded = errors.New("the resume was broken off")

// Resume makes one pass over the operations of this account that were due when
// it started, ResumeWorkers at a time, and yields each with what came of it. An
// operation that another call runs meanwhile is left to that call.
//
// An operation whose next attempt is not due yet is not yielded: right after a Do
// that failed there is nothing to resume. Error.NextAttempt and the NextAttempt of
// a record of Unfinished say when there is.
//
// A *Error is one operation's, and the pass goes on; any other error ends it.
// After a break nothing more is started; Resume waits, for the attempt timeout
// at most, for the attempts on the wire and records what they learn. When ctx
// ends the attempts on the wire are cut off. Then, and after Close, the last error
// says why there was no more.
//
// Operations whose credentials were left out of the journal need
// Config.Authorize; without it each yields an error, and stays pending. Held
// operations are asked of Config.Reconcile, and otherwise left alone.
func (c *Client) Resume(ctx context.Context) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		p := newPass(ctx, ctx, c, false)
		defer p.end()
		for r := range p.results {
			if r.panicked != nil {
				panic(r.panicked)
			}
			if !yield(r.result, r.err) {
				return
			}
		}
	}
}

// pass is one Resume under way.
type pass struct {
	c        *Client
	ctx      context.Context // its end cuts off the attempts on the wire
	draining context.Context // its end stops the waits and the listing
	drain    context.CancelCauseFunc
	silent   bool  // begun by Run: no caller gets the results
	fed      bool  // every due record was handed to a worker
	clockErr error // of the journal, which did not tell the time
	query    persist.Query
	jobs     chan persist.Record // nil where there are lanes
	lanes    *lanes              // of a fair Run; nil for any other pass
	results  chan resumed
	workers  sync.WaitGroup
}

// resumed is what a pass yields.
type resumed struct {
	result   Result
	err      error
	panicked any // of a function of the Config; the goroutine that called Resume or Run panics with it
}

// newPass starts a pass over what is due now. Nothing more is begun once draining ends; the attempts on the wire end with
// ctx. Its end must be called.
func newPass(ctx, draining context.Context, c *Client, silent bool) *pass {
	p := &pass{c: c, ctx: ctx, silent: silent, results: make(chan resumed)}
	p.draining, p.drain = context.WithCancelCause(draining)
	if c.draining.Err() != nil {
		p.drain(ErrClosed)
	}
	stop := context.AfterFunc(c.draining, func() { p.drain(ErrClosed) })
	p.clockErr = c.engine.clock.sync(ctx, &c.cfg)
	p.query = persist.Query{Account: c.accountBase, States: []persist.State{persist.StatePending}, DueBy: c.engine.now()}
	if c.cfg.Reconcile != nil {
		p.query.States = append(p.query.States, persist.StateHeld)
	}
	workers := c.cfg.ResumeWorkers
	if fair, ok := fairly(c.cfg.Journal); ok && silent {
		workers *= 2 // half of them send, while the journal works for the others
		p.lanes = newLanes(workers, 2*c.cfg.OriginWorkers)
		p.workers.Go(func() { p.feedFairly(fair) })
	} else {
		p.jobs = make(chan persist.Record)
		p.workers.Go(p.feed)
	}
	for range workers {
		p.workers.Go(p.work)
	}
	go func() {
		p.workers.Wait()
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
	p.drain(errPassEnded)
	cut := time.AfterFunc(p.c.cfg.Retry.AttemptTimeout, p.c.engine.shared.calls.GiveUpDraining)
	defer cut.Stop()
	var panicked any
	for r := range p.results {
		if panicked == nil {
			panicked = r.panicked
		}
	}
	if panicked != nil {
		panic(panicked)
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
	if len(query.States) > 0 && !p.list(query) {
		return
	}
	if shared { // last, so that what this pass leaves held is not met again
		p.claim(claimer)
	}
	p.fed = p.draining.Err() == nil
}

// list hands out what the query selects. It returns false if the pass was broken off.
func (p *pass) list(query persist.Query) bool {
	for rec, err := range p.c.cfg.Journal.List(p.draining, query) {
		switch {
		case err != nil:
			p.failed(err)
		case !p.tryNow(&rec):
		case !p.hand(rec):
			return false
		}
	}
	return true
}

// tryNow reports whether a pass of Run may try the record's origin. Resume tries
// any: its caller asked for it now.
func (p *pass) tryNow(rec *persist.Record) bool {
	return !p.silent || rec.State != persist.StatePending ||
		p.c.engine.shared.origins.Try(rec.Origin, p.c.engine.now(), p.c.cfg.Retry.AttemptTimeout)
}

// claim takes leases in batches of twice the workers. What it does not run it gives back with a time after the start of
// the pass, so that it does not meet it again.
func (p *pass) claim(j persist.Claimer) {
	e, query := p.c.engine, p.query
	query.States = []persist.State{persist.StatePending}
	for p.draining.Err() == nil {
		before := e.clock.own()
		batch, now, err := j.Claim(p.draining, query, e.owner, p.c.cfg.Lease, 2*p.c.cfg.ResumeWorkers)
		if err != nil {
			p.failed(err)
			return
		}
		e.clock.learn(p.ctx, &p.c.cfg, now, before)
		for i := range batch {
			e.leases.hold(&batch[i])
		}
		fresh := 0
		for i, rec := range batch {
			switch begun := rec.Created.After(p.query.DueBy); { // since the pass started
			case begun && !p.silent:
				fresh++
				p.giveBack(rec, rec.Created)
			case !p.tryNow(&rec):
				p.giveBack(rec, p.again())
			case !p.hand(rec):
				for _, rec := range batch[i:] { // broken off
					p.giveBack(rec, time.Time{})
				}
				return
			}
		}
		if fresh == len(batch) {
			return
		}
	}
}

// giveBack gives up the lease of a claimed operation that is not run, which is then due again at that time.
func (p *pass) giveBack(rec persist.Record, again time.Time) {
	p.c.engine.giveBack(p.ctx, rec, again)
	p.c.engine.leases.drop(rec.ID)
}

// again is when an operation is due again that this pass cannot go on with: after the moment at which the pass began, so
// that the next one meets it; of one that does not end, a while later.
func (p *pass) again() time.Time {
	if p.lanes != nil {
		return p.c.engine.now().Add(pauseMax)
	}
	return p.query.DueBy.Add(1)
}

// failed yields the journal's error. One damaged record does not end the pass.
func (p *pass) failed(err error) {
	if p.draining.Err() != nil {
		return // that is what the pass ends with
	}
	if errors.Is(err, persist.ErrCorrupt) {
		err = &Error{Op: "resume", Cause: err, is: []error{ErrOutcomeUnknown}}
		p.c.cfg.blocked(p.ctx, &persist.Record{}, err)
	}
	p.results <- resumed{err: err}
}

func (p *pass) hand(rec persist.Record) bool {
	if p.lanes != nil {
		return p.lanes.put(rec)
	}
	select {
	case p.jobs <- rec:
		return true
	case <-p.draining.Done():
		return false
	}
}

func (p *pass) work() {
	for {
		rec, more := p.take()
		if !more {
			return
		}
		if p.lanes != nil && !p.tryNow(&rec) { // the origin has failed since it was claimed
			p.giveBack(rec, time.Time{})
			p.lanes.done(rec.Origin)
			continue
		}
		r, over := p.resume(rec)
		if p.lanes != nil {
			p.lanes.done(rec.Origin)
		}
		if over {
			p.results <- r // always received: end reads what the caller does not
		}
	}
}

// take waits for the next record to run; more is false if none will come.
func (p *pass) take() (rec persist.Record, more bool) {
	if p.lanes != nil {
		return p.lanes.take()
	}
	rec, more = <-p.jobs
	return rec, more
}

// resume runs one record. over is false if it was left to another call.
func (p *pass) resume(listed persist.Record) (r resumed, over bool) {
	defer p.c.engine.leases.drop(listed.ID)
	if !p.c.enter() {
		p.c.engine.giveBack(p.ctx, listed, time.Time{})
		return resumed{}, false
	}
	defer p.c.running.Done()
	caller, arrival := p.c.engine.shared.calls.Enter(inflight.Entry{
		Record: &listed, Context: p.ctx, Draining: p.draining, InDoubt: true,
	}, nil)
	if arrival == inflight.Refused {
		p.c.engine.giveBack(p.ctx, listed, p.again())
		return resumed{}, false
	}
	defer context.AfterFunc(p.ctx, func() { caller.Leave() })()
	call := caller.Call()
	var res *result
	call.Run(func() *result {
		res, over = p.run(call, &listed)
		return res
	}, crashed("resume", listed.Key))
	switch {
	case call.Panicked() != nil:
		return resumed{panicked: call.Panicked()}, true
	case res == nil: // a function of the Config called runtime.Goexit
		return resumed{}, false
	case res.err != nil:
		return resumed{Result{Key: Key(listed.Key)}, res.err, nil}, over
	case !over:
		return resumed{}, false
	}
	if rest := res.answer.takeRest(); rest != nil {
		_ = rest.Close()
	}
	return resumed{result: res.answer.resultWithAnswer(&p.c.cfg)}, true
}

// resultWithAnswer returns the Result of a resumed operation, with a copy of its answer.
func (a *answer) resultWithAnswer(cfg *Config) Result {
	result := a.result
	if a.status == 0 { // settled by Config.Reconcile, without an answer
		return result
	}
	result.Answer = &persist.Answer{
		Status: a.status, Header: a.header.Clone(), Body: slices.Clone(a.body), BodyDropped: a.partial,
		AlreadyDone: result.AlreadyDone, Replayed: result.Source == SourceReplay,
	}
	cfg.keepAnswer(result.Answer)
	return result
}

// run runs one operation of the pass. It reads the record again, since that may have changed since it was listed. took is
// false if there was nothing to do. If the pass cannot go on with the operation, Config.Observe gets an EventBlocked.
func (p *pass) run(call callers, listed *persist.Record) (res *result, took bool) {
	res, took, ran := p.resolve(call, listed.ID)
	if took && !ran && res.err != nil {
		p.c.cfg.blocked(call.Values(), listed, res.err)
	}
	res.notShared = res.notShared || !ran
	return res, took
}

// resolve decides what to do with one operation of the pass, and does it. took is as for run; ran reports that the
// attempt loop ran.
func (p *pass) resolve(call callers, id persist.ID) (res *result, took, ran bool) {
	const name = "resume"
	e := p.c.engine
	rec, err := e.journal.Get(call.Values(), id)
	r := &run{engine: e, call: call, name: name, rec: rec, fromResume: true, stopIfOriginDown: p.silent, lanes: p.lanes}
	switch {
	case errors.Is(err, persist.ErrNotFound) || err == nil && rec.State.Final():
		return &result{}, false, false
	case err != nil:
		return &result{err: journalError(name, Key(id.Key), err)}, true, false
	case rec.Sealed() != nil:
		e.giveBack(call.Values(), rec, p.again())
		return &result{err: journalError(name, Key(id.Key), rec.Sealed())}, true, false
	case rec.NextAttempt.After(e.now()):
		e.giveBack(call.Values(), rec, time.Time{})
		return &result{}, false, false
	case rec.State == persist.StateHeld:
		res, took = reconcile(r)
		return res, took, false
	}
	if err := e.missing(&rec); err != nil {
		e.giveBack(call.Values(), rec, p.again())
		return refuse(name, &rec, err, ErrOutcomeUnknown, ErrConfig), true, false
	}
	if res := (existing{r}).adopt(); res != nil {
		e.giveBack(call.Values(), r.rec, p.again())
		return res, !errors.Is(res.err, persist.ErrStale), false // another process was faster
	}
	if p.lanes != nil && r.admit() != nil { // broken off: it was never sent, and stays as it was
		r.rec.MaybeSent, r.rec.FirstSent = rec.MaybeSent, rec.FirstSent
		e.giveBack(call.Values(), r.rec, time.Time{})
		return &result{}, false, false
	}
	return r.execute(), true, true
}

// reconcile asks Config.Reconcile about a held operation, and settles it if that knows the effect. took is as for run.
func reconcile(r *run) (res *result, took bool) {
	if r.cfg.Reconcile == nil || r.rec.HoldReason == persist.HoldCaller {
		return &result{}, false
	}
	said, err := r.cfg.Reconcile(r.call.Context(), r.rec.Clone())
	switch {
	case err != nil:
		return refuse(r.name, &r.rec, sanitized(err), ErrOutcomeUnknown, ErrHeld), true
	case said.Effect == EffectUnknown:
		return refuse(r.name, &r.rec, nil, ErrOutcomeUnknown, ErrHeld), true
	}
	if err := said.check(r.cfg); err != nil {
		return refuse(r.name, &r.rec, fmt.Errorf("from Reconcile: %w", err), ErrOutcomeUnknown, ErrHeld), true
	}
	r.rec.Unreported = said.Effect == EffectHappened && r.rec.Generated
	ctx := r.call.Values()
	err = change(ctx, r.journal, &r.rec, func() error { return resolve(ctx, r.engine, r.rec, said) })
	if err != nil { // the record may be final all the same
		return &result{err: journalError(r.name, Key(r.rec.Key), err)}, true
	}
	a := &answer{result: r.resultWith(OutcomeConfirmed, SourceJournal)}
	if said.Effect == EffectAbsent {
		a.result.Outcome = OutcomeNotSent
	}
	if said.Answer != nil {
		a.status, a.header, a.body = said.Answer.Status, said.Answer.Header, said.Answer.Body
	}
	r.tell(EventFinished, func(e *Event) { e.Outcome, e.Status = a.result.Outcome, a.status })
	return &result{answer: a}, true
}

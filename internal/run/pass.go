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
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
)

// errPassEnded cuts the waits of a Resume that was broken off.
var errPassEnded = errors.New("the resume was broken off")

// pass is one Resume under way, or one round of a Run. Its feeder or fairFeeder brings the due operations to
// the workers, a worker's drives bring each to its end, and a resumption runs it. They all have the pass: what
// it may begin, and where its results go. It is safe for concurrent use once newPass has returned.
type pass struct {
	c        *Client
	ctx      context.Context         // its end cuts off the attempts on the wire
	underWay *inflight.Work          // the pass, as seen by functions called from its operations
	draining context.Context         // its end stops the waits and the listing
	drain    context.CancelCauseFunc // ends draining; the first cause counts
	silent   bool                    // begun by Run: only errors are yielded
	query    persist.Query           // the due operations of the account; DueBy is the start of the pass
	lanes    *lanes.Lanes            // of the claims of a fair Run; nil for any other pass
	results  chan resumed            // closed after the last worker
	workers  sync.WaitGroup          // all goroutines started by begin
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

// turns returns the bound on the sends of the pass: a Run with shares for each origin (lanes) gives each a number of turns, the permissions to send. A Resume
// has only its workers as a bound.
func (p *pass) turns() lanes.Turns {
	if p.lanes == nil {
		return lanes.Free{}
	}
	return p.lanes.Turns()
}

// newPass starts a pass over the operations due now. After the end of draining, or of the client, it begins nothing more; the attempts on the wire end with
// ctx. silent: the pass belongs to a Run. The caller reads results, and calls end in every case, also after results is closed. Errors of the start come through
// results. Held operations are a part of it only if Config.Reconcile can tell their effect.
func newPass(ctx, draining context.Context, c *Client, silent bool) *pass {
	// By its context a call that a function of the user makes in the pass shows that the pass waits for it.
	work := inflight.NewPass(ctx, c)
	ctx, draining = work.Context(ctx), work.Context(draining)
	p := &pass{c: c, ctx: ctx, underWay: work, silent: silent, results: make(chan resumed)}
	p.draining, p.drain = context.WithCancelCause(draining)
	if c.draining.Err() != nil {
		p.drain(ErrClosed)
	}
	stop := context.AfterFunc(c.draining, func() { p.drain(ErrClosed) })
	// Look reads where other clients send with Authorize, and HoldListed tells them where this one does.
	clockErr := cmp.Or(c.engine.clock.Sync(ctx, c.engine.host), c.cfg.authorized.Look(ctx), c.cfg.authorized.HoldListed(ctx))
	p.query = persist.Query{Account: c.account(ctx), States: []persist.State{persist.StatePending}, DueBy: c.engine.now()}
	if c.cfg.Reconcile != nil {
		p.query.States = append(p.query.States, persist.StateHeld)
	}
	s := &resumption{pass: p}
	d := &drives{pass: p, resumption: s}
	f := &feeder{pass: p, drives: d, clockErr: clockErr, jobs: make(chan *persist.Record), asks: make(chan struct{})}
	if fair, ok := fairly(c.cfg.Journal); ok && silent {
		d.claims = &claims{pass: p, journal: fair}
		(&fairFeeder{pass: p, claims: d.claims, drives: d, feeder: f}).start()
	} else {
		p.begin(f.feed)
		for range c.cfg.ResumeWorkers {
			p.begin(f.work)
		}
	}
	// The results end after the last worker. A run that goes on for others keeps its goroutine until its own
	// end. A pass that was broken off says so, unless all was handed out.
	go func() {
		p.workers.Wait()
		s.runs.close()
		stop()
		if !f.fed && p.draining.Err() != nil {
			p.results <- resumed{err: fmt.Errorf("oncehttp: resume: %w", cmp.Or(p.ctx.Err(), sanitize.Cause(p.draining)))}
		}
		close(p.results)
	}()
	return p
}

// end stops the pass, if it is not over, and waits for its workers. Attempts on the wire may go on for AttemptTimeout; then they are given up. It
// drops the results that nobody has read, since a worker may wait for a reader.
func (p *pass) end() {
	defer p.underWay.End()
	p.drain(errPassEnded)
	cut := time.AfterFunc(p.c.cfg.Retry.AttemptTimeout, func() { p.c.engine.shared.calls.GiveUpDraining(p.c) })
	defer cut.Stop()
	for range p.results { // the rest
	}
}

// tryNow reports whether a pass may send to the record's origin now. In a Run (silent), an origin that takes no connections is tried by one
// operation at a time; true reserves that try for rec. A Resume tries any: its caller asked for it now. A held record always passes: it is not sent.
func (p *pass) tryNow(rec *persist.Record) bool {
	return !p.silent || rec.State != persist.StatePending ||
		p.c.engine.origins.Try(rec.Origin, rec.ID, p.c.engine.now(), p.c.cfg.Retry.AttemptTimeout)
}

// unread reports whether an error is about an intact record that this client cannot read, such as one sealed with a key that it lacks. The record's
// needs say so.
func unread(err error) bool {
	var e *persist.UnreadError
	return errors.As(err, &e)
}

// failed hands an error of the journal to the reader of the pass, unless the pass was stopped. An error of one record names the record, and the
// listing goes on after it; any other error ends a round of Run. It waits for the reader.
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
		blocked(p.ctx, &p.c.cfg, &about, err)
	}
	p.results <- resumed{err: err}
}

// yield hands the result of an operation to the reader of the pass; in a Run (silent) only an error. It waits for the reader: the caller's loop, or end.
func (p *pass) yield(r resumed) {
	if !p.silent || r.err != nil {
		p.results <- r
	}
}

// begin starts f as one of the goroutines of a pass; the end of the pass waits for it. If f crashes, the reader of the pass gets an error,
// as for a failure of the journal.
func (p *pass) begin(f func()) {
	p.workers.Go(func() {
		if crashed := p.c.cfg.guard(p.ctx, "a pass has crashed", f); crashed != nil {
			p.failed(fmt.Errorf("oncehttp: resume: %w", crashed.err()))
		}
	})
}

package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/persist"
)

// Run is oncehttp.Client.Run. It makes one pass after the other until ctx ends, the client closes, or the journal accepts nothing more. A pause after a failed
// pass is not cut short by notifications of other processes (pausing). At the end it waits for its helpers: sweeps, reports, deliveries, and the listener.
func (c *Client) Run(ctx context.Context) error {
	if err := checkPass(ctx, c, "run"); err != nil {
		return err
	}
	if !c.visits.enter("Run") {
		return fmt.Errorf("oncehttp: run: %w", ErrClosed)
	}
	defer c.visits.leave("Run")
	if inflight.From(ctx) != nil { // whoever waits for this function waits for ctx to end
		return notWaited("run", inflight.ErrCircle)
	}
	// A function of the Config that runs in this pass, and calls the client, must not wait for the pass.
	work := inflight.NewPass(ctx, c)
	defer work.End()
	ctx = work.Context(ctx)
	// Its counts are of this Run alone: two Runs of a client are told of independently.
	r := runner{Client: c, toldDefault: map[acts.Lack]bool{}}
	defer r.help(ctx)()
	for {
		began := time.Now()
		due, err := r.round(ctx)
		if time.Since(began) > pauseMax { // so it has worked: one of a fair journal ends only with an error
			r.failures = 0
		}
		switch {
		case ctx.Err() != nil:
			return r.ended(ctx)
		case c.draining.Err() != nil:
			return fmt.Errorf("oncehttp: run: %w", ErrClosed)
		case takesNoMore(err):
			c.cfg.log(ctx, slog.LevelError, "run has ended", "", err)
			return err
		case err != nil:
			blocked(ctx, &c.cfg, &persist.Record{}, err)
			c.cfg.log(ctx, slog.LevelError, "a pass failed; it is made again", "", err)
			// The pass says nothing of what is due then.
			due = r.afterFailure()
			r.pausing.Store(true)
		default:
			r.failures = 0
		}
		select {
		case <-ctx.Done():
		case <-c.draining.Done():
		// Something was enqueued, or has fallen due, in this process or another.
		case <-c.due:
		case <-time.After(due):
		}
		r.pausing.Store(false)
	}
}

// help starts the helpers of a Run beside its passes: sweeps, reports, deliveries, and the listener for notifications. end stops them, and waits for
// them.
func (r *runner) help(ctx context.Context) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() { r.sweepHourly(ctx) })
	helpers.Go(func() { r.tellHourly(ctx) })
	if r.cfg.OnResult != nil {
		helpers.Go(func() { r.deliverAll(ctx) })
	}
	if r.engine.notifier != nil {
		helpers.Go(func() { (&hearing{runner: r, woken: make(chan struct{}, 1)}).listen(ctx) })
	}
	return func() {
		stop()
		helpers.Wait()
	}
}

// round makes one pass, and returns the time until the next one; pauseMax or less. After an error, due has no meaning. A crash of the journal is one
// of the errors.
func (r *runner) round(ctx context.Context) (due time.Duration, err error) {
	crashed := r.cfg.guard(ctx, "a pass has crashed", func() {
		var tried time.Time
		due = pauseMax
		if tried, err = r.pass(ctx); err == nil {
			due, err = r.nextDue(ctx, tried)
		}
	})
	if crashed != nil {
		err = fmt.Errorf("oncehttp: run: %w", crashed.err())
	}
	return due, err
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// takesNoMore reports whether a journal returns this error until it is opened again. Any other error may be temporary.
func takesNoMore(err error) bool {
	return errors.Is(err, persist.ErrUncertain) || errors.Is(err, persist.ErrClosed) || errors.Is(err, persist.ErrLocked)
}

// runner is one Run under way.
type runner struct {
	*Client
	failures int         // failed passes in a row
	pausing  atomic.Bool // Run waits after a failed pass; read by listen

	toldDefault map[acts.Lack]bool // the lacks told to slog.Default; used by tellHourly's goroutine

	saidUnassigned bool // slog.Default was told of operations under no account; used by sweepHourly's goroutine
}

// afterFailure counts a failed pass, and returns the pause after it: a second at first, doubled each time up to
// pauseMax. A database started anew answers again within seconds.
func (r *runner) afterFailure() time.Duration {
	r.failures++
	return failedPause(r.failures)
}

// failedPause returns the pause after a number of failures in a row. failures is 1 or more; 10 bounds the shift, and pauseMax is reached before.
func failedPause(failures int) time.Duration {
	return min(failedPauseMin<<min(failures-1, 10), pauseMax)
}

// sweepHourly sweeps the journal now and every hour, until ctx ends. It also ends the holds for answers unread by
// another client, and tells of operations under no account. A crash in one of these ends neither the others nor
// the Run.
func (r *runner) sweepHourly(ctx context.Context) {
	for ctx.Err() == nil {
		r.cfg.guard(ctx, "a sweep has crashed", func() { r.sweep(ctx) })
		r.cfg.guard(ctx, "a reading of held operations has crashed", func() { endUnread(ctx, r.Client) })
		r.cfg.guard(ctx, "a listing of operations under no account has crashed", func() { sayUnassigned(ctx, r) })
		select {
		case <-ctx.Done():
		// Nothing of this is urgent. A sweep of a large journal is work.
		case <-time.After(time.Hour):
		}
	}
}

// sweep removes the parts of records whose time is over from the journal, once. A failure is reported and logged, unless the Run ends
// anyway.
func (r *runner) sweep(ctx context.Context) {
	if _, err := r.Sweep(ctx); err != nil && ctx.Err() == nil && r.draining.Err() == nil {
		blocked(ctx, &r.cfg, &persist.Record{}, err)
		r.cfg.log(ctx, slog.LevelError, "sweep failed", "", err)
	}
}

// pass makes one pass over the due operations, and returns after all its runs are over. Over a fair journal, it
// returns only after an error or when the Run ends. When ctx ends, the pass starts nothing more, and its attempts
// on the wire go on. tried is the time of the pass: it tries the operations due by then. Errors of single
// operations are logged, not returned.
func (r *runner) pass(ctx context.Context) (tried time.Time, err error) {
	if ctx.Err() != nil || r.draining.Err() != nil {
		return time.Time{}, nil
	}
	// The end of ctx lets the attempts on the wire go on: it only drains.
	p := newPass(context.WithoutCancel(ctx), ctx, r.Client, true)
	defer p.end()
	for {
		select {
		case <-ctx.Done():
			return p.query.DueBy, nil
		case res, more := <-p.results:
			var e *Error
			switch {
			case !more:
				return p.query.DueBy, nil
			// An error of one operation: it is due again, and the others go on.
			case errors.As(res.err, &e):
				r.logNotResumed(ctx, e, res.err)
			case res.err != nil:
				return p.query.DueBy, res.err
			}
		}
	}
}

// logNotResumed logs the error of an operation that a pass could not finish. Of many operations with the same refused credentials only the
// one that was tried has a warning; the others wait for it, and get a debug line.
func (r *runner) logNotResumed(ctx context.Context, e *Error, err error) {
	if errors.Is(err, errCredentialsRefused) {
		r.cfg.log(ctx, slog.LevelDebug, "resume", e.Key, err)
		return
	}
	r.cfg.log(ctx, slog.LevelWarn, "resume", e.Key, err)
}

// The least and the longest pause between two passes of Run.
const (
	pauseMin = 100 * time.Millisecond
	pauseMax = time.Minute

	failedPauseMin = time.Second // after a failed pass, or a failed listing of held operations; it doubles up to pauseMax
	endingPause    = time.Second // before a new try of an operation, if its last run has written its end, and has not returned yet
)

// nextDue returns the time until the next pending operation is due, pauseMin or more. An operation due at tried has just failed, so it waits for the longest
// pause, or for its origin. On a journal shared by several processes the time is a third of a lease at most: another process may have the operation, and may
// die. Next is the time of the first one due after tried, from a journal of this process alone. Errors: the journal's.
func (r *runner) nextDue(ctx context.Context, tried time.Time) (time.Duration, error) {
	// At most: a claim of another process may end without a word.
	due := r.engine.pollEvery()
	now := r.engine.now()
	see := func(origin string, at time.Time) {
		if wait := max(at.Sub(now), r.engine.origins.Wait(origin, now)); wait > 0 || at.After(tried) {
			due = min(due, wait)
		}
	}
	if times, knows := persist.As[persist.DueTimes](r.cfg.Journal); knows {
		all, err := times.DueTimes(ctx, persist.Query{Account: r.account(ctx), DueBy: tried})
		for _, t := range all {
			if t.Needs != "" && r.cfg.gate().lacksOfGroup(t.Origin, t.Needs).Need != acts.Nothing {
				continue
			}
			if see(t.Origin, t.At); !t.Next.IsZero() {
				see(t.Origin, t.Next)
			}
		}
		return max(due, pauseMin), err
	}
	soon := persist.Query{Account: r.account(ctx), States: []persist.State{persist.StatePending}, DueBy: now.Add(due)}
	for rec, err := range r.cfg.Journal.List(ctx, soon) {
		if err != nil && !persist.OfOneRecord(err) {
			return due, err
		}
		if err == nil && r.cfg.gate().lacksClaimed(&rec).Need == acts.Nothing {
			see(rec.Origin, later(rec.NextAttempt, restsUntil(r.engine, rec.ID)))
		}
	}
	return max(due, pauseMin), nil
}

package run

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file delivers the results owed to Config.OnResult.

const (
	resultPoll     = 500 * time.Millisecond // between two looks for owed results, at least
	resultPollMost = 30 * time.Second       // and at most
	resultCost     = 20                     // a look takes at most such a part of the time
	resultsNoted   = 1024                   // results known to be owed without a look
	resultPauseMin = time.Second            // after a failed delivery; it doubles
	resultsKept    = 1024                   // failed deliveries with a pause of their own
	resultMargin   = 5 * time.Second        // after AnswerTimeout, until another process may deliver what this one has taken
)

// checkResults refuses OnResult if the journal does not find the results owed.
func checkResults(c *Config) error {
	if _, finds := persist.As[persist.Results](c.Journal); c.OnResult != nil && !finds {
		return fmt.Errorf("OnResult is set, and a %T does not find the results that are owed (persist.Results); want one of this module, sealed or not", c.Journal)
	}
	return nil
}

// owedAt returns the record's revision if its result has still to be delivered to Config.OnResult (owed), else zero.
func owedAt(rec *persist.Record) uint64 {
	if !rec.Owed() {
		return 0
	}
	return rec.Revision
}

// owedResults writes the deliveries of owed results into a journal. It is safe for concurrent use.
type owedResults struct {
	journal persist.Journal // finds results (persist.Results)
	cfg     *Config
	now     func() time.Time // by the journal's clock
}

// markDelivered notes in the journal that a caller or OnResult has got the result of a revision. It returns false if the record has changed since,
// and after an error, which it logs: OnResult then gets the result again. The journal must be a persist.Results.
func (o *owedResults) markDelivered(ctx context.Context, id persist.ID, revision uint64) bool {
	journal, _ := persist.As[persist.Results](o.journal)
	marked, err := journal.MarkDelivered(ctx, id, revision)
	if err != nil {
		o.cfg.log(ctx, slog.LevelError, "that a result was delivered could not be recorded; it is delivered again", id.Key, err)
	}
	return marked
}

// onlyDelivered reports whether a delivery is the only change of the record since it was read. Then rec gets the
// new revision and OwedFrom, and may be written; else rec stays as it is.
func onlyDelivered(ctx context.Context, journal persist.Journal, rec *persist.Record) bool {
	now, err := journal.Get(ctx, rec.ID)
	if err != nil || !acts.OnlyDelivered(rec, &now) {
		return false
	}
	rec.Revision, rec.OwedFrom = now.Revision, now.OwedFrom
	return true
}

// deliveries are the deliveries of all clients of a journal in this process. The zero value is ready. It is safe for concurrent use.
type deliveries struct {
	mu    sync.Mutex
	known map[persist.ID]*delivery // under way, or failed
	noted map[persist.ID]uint64    // owed since the last look, resultsNoted at most; see note
}

// note notes that a result may be owed. own is the revision of a result kept from other processes until it is
// delivered; zero: none is. If there are resultsNoted already, the note is dropped: a later look finds the result
// in the journal.
func (d *deliveries) note(id persist.ID, own uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.noted == nil {
		d.noted = map[persist.ID]uint64{}
	}
	if len(d.noted) < resultsNoted {
		d.noted[id] = own
	}
}

// full reports whether so many results are noted for delivery to Config.OnResult that no more fit; later ones are found in the journal.
func (d *deliveries) full() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.noted) >= resultsNoted
}

// take returns the noted results of the accounts that q selects, and removes their notes: the caller delivers them. The value of each is
// the record's revision if this process alone may deliver it, else zero.
func (d *deliveries) take(q persist.Query) map[persist.ID]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := map[persist.ID]uint64{}
	for id, own := range d.noted {
		// A record with nothing but its ID: the query selects accounts alone.
		if q.Match(&persist.Record{ID: id, Seq: 1}) {
			taken[id] = own
			delete(d.noted, id)
		}
	}
	return taken
}

// delivery is the delivery of one operation's results.
type delivery struct {
	underWay bool      // OnResult has it now
	failures int       // in a row
	next     time.Time // not before, by the journal's clock
}

// begin reports whether a delivery of a result may begin now, by the journal's clock: no other of this operation is in progress, and no pause after a
// failure. After true, end must follow.
func (d *deliveries) begin(id persist.ID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.known[id]
	switch {
	case of == nil:
		of = &delivery{}
		if d.known == nil {
			d.known = map[persist.ID]*delivery{}
		}
		d.known[id] = of
	case of.underWay || of.next.After(now):
		return false
	}
	of.underWay = true
	return true
}

// end ends a delivery begun by begin. After a failure the next one waits, twice as long each time, at most most.
// If too many have failed, the failure is forgotten, and the next look tries again.
func (d *deliveries) end(id persist.ID, failed bool, now time.Time, most time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.known[id]
	of.underWay = false
	if !failed || len(d.known) > resultsKept {
		delete(d.known, id)
		return
	}
	// 20 bounds the shift: more would overflow.
	of.next = now.Add(min(resultPauseMin<<min(of.failures, 20), max(most, resultPauseMin)))
	of.failures++
}

// delivering are the deliveries of one Run. One goroutine uses waited; the deliveries under way have goroutines of
// their own.
type delivering struct {
	*runner
	places   chan struct{}  // one for each delivery under way
	underWay sync.WaitGroup // for the end of Run
	waited   time.Duration  // for places, during a look
}

// deliverAll delivers results to Config.OnResult during a Run, until ctx ends or the client is closing. It returns when the last delivery
// is over.
func (r *runner) deliverAll(ctx context.Context) {
	d := &delivering{runner: r, places: make(chan struct{}, r.cfg.ResultWorkers)}
	defer d.underWay.Wait()
	defer d.tellUnowed(ctx)
	d.engine.delivering.Add(1)
	defer d.leaveOwn(ctx)
	for ctx.Err() == nil && r.draining.Err() == nil {
		began := time.Now()
		d.waited = 0
		r.cfg.guard(ctx, "a listing of owed results has crashed", func() { d.look(ctx) })
		// Without the time for places: a slow OnResult must not make the looks rare.
		took := time.Since(began) - d.waited
		d.untilLook(ctx, min(max(resultPoll, resultCost*took), resultPollMost))
		d.tellUnowed(ctx)
	}
}

// untilLook waits until the next look, for pause, and starts deliveries of the results noted meanwhile by this process. It returns sooner if ctx ends or the
// client drains; such results stay noted.
func (d *delivering) untilLook(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.draining.Done():
			return
		case <-timer.C:
			return
		case <-d.owed:
		}
		d.cfg.guard(ctx, "the deliveries of new results have crashed", func() {
			for id, own := range d.engine.shared.results.take(persist.Query{Account: d.account(ctx)}) {
				if !d.start(ctx, id, own) { // it ends
					d.engine.shared.results.note(id, own)
				}
			}
		})
	}
}

// look reads the results to be delivered from the journal, and starts a delivery of each that is due, as workers become free. It returns early if ctx
// ends, the client drains, or the journal fails, which is logged.
func (d *delivering) look(ctx context.Context) {
	e := d.engine
	for rec, err := range e.journal.List(ctx, persist.Query{Account: d.account(ctx), Owed: true}) {
		switch {
		case persist.OfOneRecord(err): // a pass tells of it
		case err != nil:
			if ctx.Err() == nil && d.draining.Err() == nil {
				d.cfg.log(ctx, slog.LevelError, "owed results could not be listed", "", err)
			}
			return
		// It is left to the Do that has the answer, or to the process that delivers it.
		case rec.OwedFrom.After(e.now()):
		case !d.start(ctx, rec.ID, 0):
			return
		}
	}
}

// start waits for a free worker and starts the delivery of a result, unless one of the operation is in progress or pauses after a failure. own is the
// revision that this process alone may deliver. It returns false, with nothing started, if ctx has ended or the client drains.
func (d *delivering) start(ctx context.Context, id persist.ID, own uint64) bool {
	e := d.engine
	if !e.shared.results.begin(id, e.now()) {
		return true
	}
	began := time.Now()
	select {
	case d.places <- struct{}{}:
	case <-ctx.Done():
	case <-d.draining.Done():
	}
	d.waited += time.Since(began)
	if ctx.Err() != nil || d.draining.Err() != nil {
		// It has not failed (false): nothing was tried, and no pause follows.
		e.shared.results.end(id, false, e.now(), 0)
		return false
	}
	d.underWay.Go(func() {
		defer func() { <-d.places }()
		failed := true
		defer func() { e.shared.results.end(id, failed, e.now(), d.cfg.Retry.MaxPause) }()
		d.cfg.guard(ctx, "a result could not be delivered", func() { failed = !d.deliver(ctx, id, own) })
	})
	return true
}

// deliver hands the state of a record to Config.OnResult, if that is still owed and durable, and marks it as delivered. own is the revision that no other
// process delivers until OwedFrom; zero: none is. It returns false if this process has to try again; true also if nothing is owed, if another process has it,
// or if the record cannot be read: a later look finds it. A result may be delivered twice: if its mark fails, or the process dies before it.
func (r *runner) deliver(ctx context.Context, id persist.ID, own uint64) bool {
	rec, err := r.engine.journal.Get(ctx, id)
	if err != nil || !rec.Owed() {
		return true
	}
	op := operation.OpOf(&rec, 0)
	hands := acts.HandsOver(&op, own != 0 && rec.Revision == own, r.cfg.Retry.AnswerTimeout, r.engine.now())
	if hands == acts.HandsLater {
		return true // a later look has it
	}
	// OnResult may act on the result: a crash of this machine must not take it back.
	if err := r.engine.journal.Flush(ctx); err != nil {
		r.cfg.log(ctx, slog.LevelError, "a result is not delivered before its record is durable", id.Key, err)
		return false
	}
	// The record was written by this process, and reserved for it: nothing has to be taken.
	mine := hands == acts.HandsOwn
	if !mine {
		mine, err = r.engine.results.takeResult(ctx, &rec, r.cfg.Retry.AnswerTimeout+resultMargin)
	}
	if err != nil {
		r.cfg.log(ctx, slog.LevelError, "a result could not be taken from the journal for its delivery", id.Key, err)
	}
	if err != nil || !mine {
		return err == nil
	}
	delivered := false
	// Also after a panic of OnResult: then it is delivered again.
	defer func() { r.engine.results.releaseResult(context.WithoutCancel(ctx), &rec, delivered) }()
	// The end of the time also bounds how long no other process may take the result.
	within, stop := context.WithTimeout(withAccountOf(ctx, &rec), r.cfg.Retry.AnswerTimeout)
	defer stop()
	if err := r.cfg.OnResult(within, rec.Clone()); err != nil {
		err = sanitized(err)
		r.cfg.log(ctx, slog.LevelWarn, "OnResult has failed; the result is delivered again", id.Key, err)
		tellDelivered(ctx, &r.cfg, &rec, err)
		return false
	}
	delivered = true
	tellDelivered(ctx, &r.cfg, &rec, nil)
	return true
}

// takeResult postpones a result in the journal by d, so that no other process delivers it meanwhile. mine is false
// if another was faster. It updates rec. In a journal that is not shared, the result is this process's already.
// releaseResult must follow after mine.
func (o *owedResults) takeResult(ctx context.Context, rec *persist.Record, d time.Duration) (mine bool, err error) {
	shared, is := persist.As[persist.SharedResults](o.journal)
	if !is {
		return true, nil
	}
	until := o.now().Round(0).Add(d)
	mine, err = shared.Postpone(ctx, rec.ID, rec.Revision, until)
	if mine {
		rec.OwedFrom = until
		rec.Revision++
	}
	return mine, err
}

// releaseResult ends a delivery: the state handed over is marked, if it was delivered. If the record is owed all
// the same, since it has changed or the delivery has failed, other processes may take it now, or after
// resultPauseMin. It tries three times, since others may change the record. An error leaves it postponed until rec.OwedFrom.
func (o *owedResults) releaseResult(ctx context.Context, rec *persist.Record, delivered bool) {
	if delivered && o.markDelivered(ctx, rec.ID, rec.Revision) {
		return
	}
	shared, is := persist.As[persist.SharedResults](o.journal)
	for tries := 0; is && tries < 3; tries++ {
		now, err := o.journal.Get(ctx, rec.ID)
		if err != nil || !now.OwedFrom.Equal(rec.OwedFrom) {
			return // taken by others, or delivered in a transaction of OnResult's own
		}
		from := o.now().Round(0)
		if !delivered {
			from = from.Add(resultPauseMin)
		}
		// The revision read just now: a change since then makes another round.
		if done, err := shared.Postpone(ctx, rec.ID, now.Revision, from); done || err != nil {
			return
		}
	}
}

package run

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/oncehttp/oncehttp/internal/lanes"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/persist"
)

// fairFeeder feeds the workers of a fair pass: it claims due operations, of each origin its share, and queues
// them in the lanes of the pass. Held operations go through the feeder's queue, to workers of their own.
type fairFeeder struct {
	pass   *pass
	claims *claims // of due operations
	drives *drives // run them
	feeder *feeder // lists the held ones
}

// start starts the goroutines of a pass that gives each origin its share of the workers. Half of the workers send, while the journal works for the
// others. If Config.Reconcile is set, more workers go through the held operations: a quarter of ResumeWorkers, at least one. Their queue is separate,
// so a slow Reconcile delays no send.
func (f *fairFeeder) start() {
	p := f.pass
	// lanes.Turns lets half of them send: so there are twice as many, also for one origin.
	workers := 2 * p.c.cfg.ResumeWorkers
	p.lanes = lanes.New(workers, 2*p.c.cfg.OriginWorkers)
	p.begin(f.feedFairly)
	for range workers {
		p.begin(f.workFairly)
	}
	if p.c.cfg.Reconcile == nil {
		return
	}
	p.begin(f.feedHeld)
	for range max(p.c.cfg.ResumeWorkers/4, 1) {
		p.begin(f.feeder.work)
	}
}

// feedHeld lists the held operations, again and again, with a pause after each round, until the pass is broken
// off or the journal takes nothing more. Any other failure of a listing prevents no send: feedHeld tells of it,
// and lists again after a growing pause.
func (f *fairFeeder) feedHeld() {
	p := f.pass
	defer close(f.feeder.jobs)
	failures := 0 // in a row
	for {
		query := p.query
		// Anew in each round: a round takes as long as Reconcile does.
		query.States, query.DueBy = []persist.State{persist.StateHeld}, p.c.engine.now()
		var failed error
		if !f.feeder.list(query, func(err error) { failed = cmp.Or(failed, f.failedHeld(err)) }) {
			return
		}
		wait := pauseMax
		switch {
		case takesNoMore(failed):
			p.failed(failed)
			return
		case failed == nil:
			failures = 0
		case p.draining.Err() == nil:
			blocked(p.ctx, &p.c.cfg, &persist.Record{}, failed)
			p.c.cfg.log(p.ctx, slog.LevelError, "held operations could not be listed; that is done again", "", failed)
			failures++
			wait = failedPause(failures)
		}
		if pause(p.draining, wait) != nil {
			return
		}
	}
}

// failedHeld handles an error of a listing of held operations. It reports a damaged record and returns nil, so the listing goes on. Any other error
// is returned, and ends this listing.
func (f *fairFeeder) failedHeld(err error) error {
	if persist.OfOneRecord(err) {
		f.pass.failed(err)
		return nil
	}
	return err
}

// feedFairly claims due operations, of each origin its share, whenever a worker is free, something was enqueued, or something falls due. Operations queued for
// a third of a lease behind a function of the user are given back (Overdue). It returns when the pass is stopped, or after it has reported a failure of the
// journal. Then the leases of operations without a worker are given up, so that none is queued any more.
func (f *fairFeeder) feedFairly() {
	p := f.pass
	defer context.AfterFunc(p.draining, p.lanes.Shut)()
	defer func() { p.giveBackAll(p.lanes.Close()) }()
	var known dueOrigins
	for p.draining.Err() == nil {
		// Others can send them meanwhile: here they wait behind a function of the user.
		p.giveBackAll(p.lanes.Overdue(p.c.cfg.Lease / lease.Renewals))
		// A client with Authorize may have appeared: its origins are not sent to without it.
		if err := p.c.cfg.authorized.Look(p.ctx); err != nil {
			p.failed(err)
			return
		}
		wait, err := f.claimShares(&known)
		if err != nil {
			p.failed(err)
			return
		}
		select {
		case <-p.draining.Done():
		case <-p.c.due:
		case <-p.lanes.Wanted:
		case <-time.After(wait):
		}
	}
}

// workFairly runs claimed operations, one after the other, until their queues (lanes, one for each origin) are closed. If an origin has failed
// since the claim, the operation's lease is given up and it stays due: one operation alone makes the next try of the origin.
func (f *fairFeeder) workFairly() {
	p := f.pass
	for {
		rec, more := p.lanes.Take()
		if !more {
			return
		}
		var r resumed
		over := false
		if p.tryNow(rec) {
			r, over = f.drives.driveOn(rec)
		} else { // the origin has failed since it was claimed
			p.tryGiveBack(rec)
		}
		// Before the result is yielded: whoever takes results may be slow, and the lane is free.
		p.lanes.Done(rec.Origin)
		if over {
			p.yield(r)
		}
	}
}

// dueOrigins are the origins with something due, by the journal's last answer. Only the claiming goroutine uses
// it. The zero value knows of nothing, and asks at once.
type dueOrigins struct {
	due   map[string][]string // by origin: the needs of each group
	next  time.Time           // when something else falls due, by the journal's clock; zero: nothing does
	asked time.Time           // when the journal answered, by this process's own clock
	took  time.Duration       // the length of the question
}

// After an answer of the journal, a fair pass waits this many times as long as the answer took before it asks
// again. With ten thousand origins an answer takes a good part of a second.
const (
	askPause     = 1 // if it knows of nothing due
	askPauseBusy = 4 // if it knows of something due
)

// until returns the time left until the journal may be asked again for origins with due operations; zero: it may be asked now. The pause is a multiple of the
// time of the last such question, so that the questions take a small share of the journal's time. While origins of the last answer have more to do, the pause
// is longer (askPauseBusy).
func (d *dueOrigins) until() time.Duration {
	pause := askPause * d.took
	if len(d.due) > 0 {
		pause = askPauseBusy * d.took
	}
	return max(pause-time.Since(d.asked), 0)
}

// ask asks the journal for the origins with something due, and replaces the former answer. It leaves out groups of operations that this client cannot act on,
// and takes origins in a pause as due later: after a failed try (origins), and with operations that this client leaves alone for now (passesBy). After an error
// the former answer stays.
func (d *dueOrigins) ask(p *pass, j fairJournal) error {
	e, began := p.c.engine, time.Now()
	times, err := j.DueTimes.DueTimes(p.draining, persist.Query{Account: p.query.Account})
	if err != nil {
		return err
	}
	// The answer is complete: an origin that is not in it has nothing due.
	d.due, d.next = map[string][]string{}, time.Time{}
	d.asked, d.took = time.Now(), time.Since(began)
	for _, t := range times {
		if p.lacksFor(group{t.Origin, t.Needs}) {
			continue
		}
		now := e.now()
		alone, _ := e.alone.wait(group{t.Origin, t.Needs})
		if until := max(t.At.Sub(now), e.origins.Wait(t.Origin, now), e.passesBy.Wait(t.Origin, now), alone); until <= 0 {
			d.due[t.Origin] = append(d.due[t.Origin], t.Needs)
		} else if at := now.Add(until); d.next.IsZero() || at.Before(d.next) {
			d.next = at
		}
	}
	return nil
}

// claimShares claims operations of each origin with something due, as many as there is room for, and queues them. It uses the origins in known, and asks the
// journal for others when it may ask again. An origin in a pause since then (origins, passesBy) is left out. wait is the time until something else falls due, a
// third of a lease at most: the lease of a dead process may end at any time. After an error, the operations claimed before are queued all the same.
func (f *fairFeeder) claimShares(known *dueOrigins) (wait time.Duration, err error) {
	p := f.pass
	e := p.c.engine
	if err := e.clock.Sync(p.draining, p.c.engine.host); err != nil {
		return 0, err
	}
	wait = e.pollEvery()
	if until := known.until(); until > 0 {
		wait = min(wait, until)
	} else if err := known.ask(p, f.claims.journal); err != nil {
		return 0, err
	} else if !known.next.IsZero() {
		wait = min(wait, known.next.Sub(e.now()))
	}
	// Shares for all origins with something due, or at work here.
	p.lanes.Divide(len(known.due) + p.lanes.Active(known.due))
	var claimed []*persist.Record
	for origin := range known.due { // in random order, so that each is first at times
		if p.lanes.Full(len(claimed)) {
			break
		}
		n := p.lanes.Room(origin, len(claimed))
		if n == 0 {
			continue
		}
		if pause := max(e.origins.Wait(origin, e.now()), e.passesBy.Wait(origin, e.now())); pause > 0 { // it has failed since
			delete(known.due, origin)
			wait = min(wait, pause)
			continue
		}
		batch, err := f.claims.claimGroups(origin, known, n)
		claimed = append(claimed, batch...)
		if errors.Is(err, persist.ErrCorrupt) { // of one record; the others go on
			p.failed(err)
			continue
		}
		if err != nil {
			f.put(claimed)
			return 0, err
		}
		if len(batch) == 0 { // another process took it, or the journal's clock is a moment behind ours
			wait = min(wait, pauseMin)
		}
	}
	f.put(claimed) // together, so that the workers choose among all origins
	return wait, nil
}

// put hands claimed records to the workers together. If the pass has ended early, it gives them back. In both cases the caller is not responsible for
// their leases any more.
func (f *fairFeeder) put(claimed []*persist.Record) {
	if len(claimed) > 0 && !f.pass.lanes.Put(claimed) {
		f.pass.giveBackAll(claimed)
	}
}

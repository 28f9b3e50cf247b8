package oncehttp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// fairJournal is what a journal that several processes share must be able to do for a fair Run.
type fairJournal struct {
	persist.Claimer
	persist.DueTimes
	toSend persist.SendClaimer // the same as Claimer; nil: its claims mark nothing
}

// fairly returns the journal as a fairJournal; ok is false if it is none.
func fairly(j persist.Journal) (fair fairJournal, ok bool) {
	claimer, claims := persist.As[persist.Claimer](j)
	times, knows := persist.As[persist.DueTimes](j)
	toSend, _ := claimer.(persist.SendClaimer)
	return fairJournal{claimer, times, toSend}, claims && knows
}

// startFairly starts the goroutines of a fair pass. Half of its workers send, while the journal works for the others. Where
// Config.Reconcile is set, others go through what is held: a quarter of ResumeWorkers, one at least, and by a way of their
// own, so that a slow Reconcile keeps nothing from being sent.
func (p *pass) startFairly(j fairJournal) {
	workers := 2 * p.c.cfg.ResumeWorkers
	p.lanes = newLanes(workers, 2*p.c.cfg.OriginWorkers)
	p.workers.Go(func() { p.feedFairly(j) })
	for range workers {
		p.workers.Go(p.workFairly)
	}
	if p.c.cfg.Reconcile == nil {
		return
	}
	p.workers.Go(p.feedHeld)
	for range max(p.c.cfg.ResumeWorkers/4, 1) {
		p.workers.Go(p.work)
	}
}

// feedHeld lists what is held, again and again, with a pause after each round, until the pass is broken off or the journal
// takes nothing more. A listing that fails otherwise keeps nothing from being sent: it is told, and made again after a pause
// that grows.
func (p *pass) feedHeld() {
	defer close(p.jobs)
	failures := 0 // in a row
	for {
		query := p.query
		query.States, query.DueBy = []persist.State{persist.StateHeld}, p.c.engine.now()
		var failed error
		if !p.list(query, func(err error) { failed = cmp.Or(failed, p.failedHeld(err)) }) {
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
			p.c.cfg.blocked(p.ctx, &persist.Record{}, failed)
			p.c.cfg.log(p.ctx, slog.LevelError, "held operations could not be listed; that is done again", "", failed)
			failures++
			wait = failedPause(failures)
		}
		if pause(p.draining, wait) != nil {
			return
		}
	}
}

// failedHeld tells of a damaged record, which does not end the listing, and returns any other error.
func (p *pass) failedHeld(err error) error {
	if errors.Is(err, persist.ErrCorrupt) {
		p.failed(err)
		return nil
	}
	return err
}

// feedFairly goes on until the pass is broken off or the journal fails: it claims what is due, of each origin its share,
// whenever there is room, something was enqueued, or something falls due.
func (p *pass) feedFairly(j fairJournal) {
	defer context.AfterFunc(p.draining, p.lanes.shut)()
	defer func() { p.giveBackAll(p.lanes.close()) }()
	for p.draining.Err() == nil {
		wait, err := p.claimShares(j)
		if err != nil {
			p.failed(err)
			return
		}
		select {
		case <-p.draining.Done():
		case <-p.c.due:
		case <-p.lanes.wanted:
		case <-time.After(wait):
		}
	}
}

// workFairly runs what was claimed, in the order of the lanes.
func (p *pass) workFairly() {
	for {
		rec, more := p.lanes.take()
		if !more {
			return
		}
		var r resumed
		over := false
		if p.tryNow(rec) {
			r, over = p.resume(rec)
		} else { // the origin has failed since it was claimed
			p.giveBack(rec, time.Time{})
		}
		p.lanes.done(rec.Origin)
		if over {
			p.yield(r)
		}
	}
}

// claimShares claims of each origin with something due what there is room for, and returns how long it is until
// something else falls due; a third of a lease at most, since the lease of a process that has died may end at any time.
func (p *pass) claimShares(j fairJournal) (wait time.Duration, err error) {
	e := p.c.engine
	if err := e.clock.sync(p.draining, &p.c.cfg); err != nil {
		return 0, err
	}
	times, err := j.DueTimes.DueTimes(p.draining, persist.Query{Account: p.query.Account})
	if err != nil {
		return 0, err
	}
	wait = e.pollEvery()
	due := map[string]bool{}
	for _, t := range times {
		now := e.now()
		if until := max(t.At.Sub(now), e.shared.origins.Wait(t.Origin, now)); until > 0 {
			wait = min(wait, until)
		} else {
			due[t.Origin] = true
		}
	}
	p.lanes.divide(len(due) + p.lanes.active(due))
	var claimed []*persist.Record
	for origin := range due { // in random order, so that each is first at times
		n := p.lanes.room(origin, len(claimed))
		if n == 0 {
			continue
		}
		batch, err := p.claimShare(j, origin, n)
		claimed = append(claimed, pointers(batch)...)
		if errors.Is(err, persist.ErrCorrupt) { // of one record; the others go on
			p.failed(err)
			continue
		}
		if err != nil {
			p.put(claimed)
			return 0, err
		}
		if len(batch) == 0 { // another process took it, or the journal's clock is a moment behind ours
			wait = min(wait, pauseMin)
		}
	}
	p.put(claimed) // together, so that the workers choose among all origins
	return wait, nil
}

// put hands claimed records to the workers, or gives them back where the pass was broken off.
func (p *pass) put(claimed []*persist.Record) {
	if len(claimed) > 0 && !p.lanes.put(claimed) {
		p.giveBackAll(claimed)
	}
}

// claimShare claims up to n operations of one origin. Of an origin that took no connections when it was tried last it
// claims one.
func (p *pass) claimShare(j fairJournal, origin string, n int) ([]persist.Record, error) {
	e := p.c.engine
	if e.shared.origins.Failing(origin) {
		n = 1
	}
	query := persist.Query{Account: p.query.Account, Origin: origin}
	before := e.clock.own()
	if j.toSend == nil {
		batch, now, err := j.Claim(p.draining, query, e.owner, p.c.cfg.Lease, n)
		e.clock.learn(p.ctx, &p.c.cfg, now, before)
		return e.leases.claimed(batch, nil, time.Time{}), err
	}
	claim := e.leases.claiming()
	batch, now, err := j.toSend.ClaimToSend(p.draining, query, e.owner, p.c.cfg.Lease, n)
	e.clock.learn(p.ctx, &p.c.cfg, now, before)
	return e.leases.claimed(batch, claim, now), err
}

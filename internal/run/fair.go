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

// fairJournal holds the methods of a journal shared by several processes, as needed for a fair Run.
type fairJournal struct {
	persist.Claimer
	persist.DueTimes
	toSend persist.SendClaimer // the same as Claimer; nil: its claims mark nothing
}

// fairly returns the methods of a journal for a fair Run. ok is false if the journal lacks claims or due times;
// fair is then of no use.
func fairly(j persist.Journal) (fair fairJournal, ok bool) {
	claimer, claims := persist.As[persist.Claimer](j)
	times, knows := persist.As[persist.DueTimes](j)
	toSend, _ := claimer.(persist.SendClaimer)
	return fairJournal{claimer, times, toSend}, claims && knows
}

// startFairly starts the goroutines of a fair pass. Half of its workers send, while the journal works for the others. If Config.Reconcile
// is set, more workers go through the held operations: a quarter of ResumeWorkers, at least one. They have a queue of their own, so a slow
// Reconcile delays no send.
func (p *pass) startFairly(j fairJournal) {
	workers := 2 * p.c.cfg.ResumeWorkers
	p.lanes = lanes.New(workers, 2*p.c.cfg.OriginWorkers)
	p.begin(func() { p.feedFairly(j) })
	for range workers {
		p.begin(p.workFairly)
	}
	if p.c.cfg.Reconcile == nil {
		return
	}
	p.begin(p.feedHeld)
	for range max(p.c.cfg.ResumeWorkers/4, 1) {
		p.begin(p.work)
	}
}

// feedHeld lists the held operations, again and again, with a pause after each round, until the pass is broken off or the journal takes
// nothing more. Any other failure of a listing prevents no send: feedHeld tells of it, and lists again after a growing pause.
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

// failedHeld tells of a damaged record and returns nil, so the listing goes on. It returns any other error.
func (p *pass) failedHeld(err error) error {
	if persist.OfOneRecord(err) {
		p.failed(err)
		return nil
	}
	return err
}

// feedFairly claims due operations, of each origin its share, whenever there is room, something was enqueued, or
// something falls due. It returns when the pass is broken off, or after it has yielded a failure of the journal.
// Then no operation is queued any more: the ones without a worker are given back.
func (p *pass) feedFairly(j fairJournal) {
	defer context.AfterFunc(p.draining, p.lanes.Shut)()
	defer func() { p.giveBackAll(p.lanes.Close()) }()
	var known dueOrigins
	for p.draining.Err() == nil {
		p.giveBackAll(p.lanes.Overdue(p.c.cfg.Lease / lease.Renewals))
		if err := p.c.cfg.authorized.Look(p.ctx); err != nil {
			p.failed(err)
			return
		}
		wait, err := p.claimShares(j, &known)
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

// workFairly takes claimed operations from the lanes and runs each, until the lanes are shut. An operation of an
// origin that has failed since its claim is given back.
func (p *pass) workFairly() {
	for {
		rec, more := p.lanes.Take()
		if !more {
			return
		}
		var r resumed
		over := false
		if p.tryNow(rec) {
			r, over = p.driveOn(rec)
		} else { // the origin has failed since it was claimed
			p.tryGiveBack(rec)
		}
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

// After an answer of the journal, a fair pass waits this many times as long as the answer took before it asks again. With ten thousand
// origins an answer takes a good part of a second.
const (
	askPause     = 1 // if it knows of nothing due
	askPauseBusy = 4 // if it knows of something due
)

// until returns the time left until the journal may be asked again; zero: it may be asked now.
func (d *dueOrigins) until() time.Duration {
	pause := askPause * d.took
	if len(d.due) > 0 {
		pause = askPauseBusy * d.took
	}
	return max(pause-time.Since(d.asked), 0)
}

// ask asks the journal for the due origins, and replaces the former answer. It leaves out groups not served by
// this client, and takes resting origins as due later. After an error the former answer stays.
func (d *dueOrigins) ask(p *pass, j fairJournal) error {
	e, began := p.c.engine, time.Now()
	times, err := j.DueTimes.DueTimes(p.draining, persist.Query{Account: p.query.Account})
	if err != nil {
		return err
	}
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

// claimShares claims operations of each origin with something due, as many as there is room for, and queues them.
// It uses the origins in known, and asks the journal for others when it may ask again. wait is the time until
// something else falls due, a third of a lease at most: the lease of a dead process may end at any time. After an
// error, the operations claimed before are queued all the same.
func (p *pass) claimShares(j fairJournal, known *dueOrigins) (wait time.Duration, err error) {
	e := p.c.engine
	if err := e.clock.Sync(p.draining, p.c.engine.host); err != nil {
		return 0, err
	}
	wait = e.pollEvery()
	if until := known.until(); until > 0 {
		wait = min(wait, until)
	} else if err := known.ask(p, j); err != nil {
		return 0, err
	} else if !known.next.IsZero() {
		wait = min(wait, known.next.Sub(e.now()))
	}
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
		batch, err := p.claimGroups(j, origin, known, n)
		claimed = append(claimed, batch...)
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

// put hands claimed records to the workers together. If the pass was broken off, it gives them back.
func (p *pass) put(claimed []*persist.Record) {
	if len(claimed) > 0 && !p.lanes.Put(claimed) {
		p.giveBackAll(claimed)
	}
}

// claimGroups claims up to n operations of one origin, of its groups in turn; one alone if the last try of the
// origin failed. It removes groups with nothing more due from known, and the origin with its last group. claimed
// may hold records also if err is set; the caller owns their leases.
func (p *pass) claimGroups(j fairJournal, origin string, known *dueOrigins, n int) (claimed []*persist.Record, err error) {
	if p.c.engine.origins.Failing(origin) {
		n = 1
	}
	groups := known.due[origin]
	for len(groups) > 0 && len(claimed) < n && err == nil {
		var batch []*persist.Record
		want, taken := n-len(claimed), 0
		batch, taken, err = p.claimServed(j, group{origin, groups[0]}, want)
		claimed = append(claimed, batch...)
		if taken >= want { // there may be more
			groups = append(groups[1:], groups[0])
			break
		}
		groups = groups[1:]
	}
	if known.due[origin] = groups; len(groups) == 0 {
		delete(known.due, origin)
	}
	return claimed, err
}

// claimServed claims up to n operations of one group, and returns the ones served by this client: the caller owns
// their leases. It gives the others back, unchanged, and leaves the group alone for a while; taken is zero then,
// else the number of claimed operations. For a group left alone before, it claims a single operation, or, if the
// journal does not tell needs, as many more as it gave back.
func (p *pass) claimServed(j fairJournal, g group, n int) (served []*persist.Record, taken int, err error) {
	_, more := p.c.engine.alone.wait(g)
	if more > 0 && g.needs != "" { // all of the group need the same: one tells
		n, more = 1, 0
	}
	batch, err := p.claimShare(j, g, n+more)
	var others []*persist.Record
	for _, rec := range pointers(batch) {
		if p.lacks(rec) {
			others = append(others, rec)
		} else {
			served = append(served, rec)
		}
	}
	if len(others) == 0 {
		return served, len(batch), err
	}
	p.c.engine.alone.note(g, len(others))
	p.giveBackAll(others)
	return served, 0, err // the group is left alone, whatever else is due
}

// claimShare claims up to n operations of one group, and corrects the clock by the journal's answer. If the
// journal can mark, the claim also writes that the operations may be sent, see lease.Leases.Marked. The returned
// records are held in leases; each needs a Drop. Records may be returned with an error.
func (p *pass) claimShare(j fairJournal, g group, n int) ([]persist.Record, error) {
	e := p.c.engine
	query := persist.Query{Account: p.query.Account, Origin: g.origin, Needs: g.needs}
	before := e.clock.Own()
	if j.toSend == nil {
		batch, now, err := j.Claim(p.draining, query, e.owner, p.c.cfg.Lease, n)
		e.clock.Learn(p.ctx, p.c.engine.host, now, before)
		return e.leases.Claimed(batch, nil, time.Time{}), err
	}
	claim := e.leases.Claiming()
	batch, now, err := j.toSend.ClaimToSend(p.draining, query, e.owner, p.c.cfg.Lease, p.c.engine.host.ClaimSending(), n)
	e.clock.Learn(p.ctx, p.c.engine.host, now, before)
	return e.leases.Claimed(batch, claim, now), err
}

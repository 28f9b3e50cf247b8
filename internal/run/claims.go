package run

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// claims are the claims of a fair pass: of its own feeder, and of a worker with a turn and without its
// operation. They are safe for concurrent use.
type claims struct {
	pass    *pass
	journal fairJournal
}

// claimGroups claims up to n due operations of one origin: one alone if the last try of the origin failed. A group is the operations of one account
// and needs there; groups with more to do take turns. Groups with nothing more due are removed from known. claimed may hold records also if err is
// set; the caller owns their leases.
func (c *claims) claimGroups(origin string, known *dueOrigins, n int) (claimed []*persist.Record, err error) {
	if c.pass.c.engine.origins.Failing(origin) {
		n = 1
	}
	groups := known.due[origin]
	for len(groups) > 0 && len(claimed) < n && err == nil {
		var batch []*persist.Record
		want, taken := n-len(claimed), 0
		batch, taken, err = c.claimServed(group{origin, groups[0]}, want)
		claimed = append(claimed, batch...)
		if taken >= want { // it may have more, and comes last the next time
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

// claimServed claims up to n operations of one group (one account, origin and needs). It returns those that this client can act on: the caller owns their
// leases. It gives up the leases of the others, unchanged, and leaves the group alone for a while; taken is zero then, else the number of claimed operations.
// Of a group left alone before, it claims one. If the journal does not tell needs, it claims as many more as it gave up: they may come first again.
func (c *claims) claimServed(g group, n int) (served []*persist.Record, taken int, err error) {
	p := c.pass
	_, more := p.c.engine.alone.wait(g)
	if more > 0 && g.needs != "" { // all of the group need the same: one tells
		n, more = 1, 0
	}
	batch, err := c.claimShare(g, n+more)
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

// claimShare claims up to n operations of one group (one account, origin and needs), and corrects the clock by the journal's answer. If the journal
// can, the claim also writes that the operations may be sent (lease.Claims.Marked), which saves a write before the send; Claiming comes before it, to note what calls of this
// process do to the same records meanwhile. draining ends first, and so stops new claims; ctx ends when attempts under way are given up. Each record needs a Drop. Records may be
// returned with an error; a failed claim has no time, which Learn ignores.
func (c *claims) claimShare(g group, n int) ([]persist.Record, error) {
	p := c.pass
	e := p.c.engine
	query := persist.Query{Account: p.query.Account, Origin: g.origin, Needs: g.needs}
	before := e.clock.Own()
	if c.journal.toSend == nil {
		batch, now, err := c.journal.Claim(p.draining, query, e.owner, p.c.cfg.Lease, n)
		e.clock.Learn(p.ctx, p.c.engine.host, now, before)
		// nil: this claim has marked nothing as maybe sent.
		return e.claims.Claimed(batch, nil, time.Time{}), err
	}
	claim := e.claims.Claiming()
	batch, now, err := c.journal.toSend.ClaimToSend(p.draining, query, e.owner, p.c.cfg.Lease, p.c.engine.host.ClaimSending(), n)
	e.clock.Learn(p.ctx, p.c.engine.host, now, before)
	return e.claims.Claimed(batch, claim, now), err
}

// fairJournal holds the methods of a journal shared by several processes, as needed for a fair Run.
type fairJournal struct {
	persist.Claimer
	persist.DueTimes
	toSend persist.SendClaimer // the same as Claimer; nil: its claims mark nothing
}

// fairly returns the methods of a shared journal by which a Run gives each origin its share of the workers. toSend is nil if its claims cannot mark records as maybe sent. ok is
// false if the journal lacks claims or due times (the times at which something falls due, by origin and needs); the passes of a Run then list or claim without shares.
func fairly(j persist.Journal) (fair fairJournal, ok bool) {
	claimer, claims := persist.As[persist.Claimer](j)
	times, knows := persist.As[persist.DueTimes](j)
	toSend, _ := claimer.(persist.SendClaimer)
	return fairJournal{claimer, times, toSend}, claims && knows
}

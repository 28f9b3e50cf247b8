package company_test

import (
	"cmp"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// end lets what is left be done by whoever can, once the faults have stopped: within the pauses that the records have, and a lease,
// nothing may be left of it but what waits for a person, or for a client with what it needs.
func (c *cell) end() {
	time.Sleep(c.server.takes + 10*time.Second) // what is on its way arrives, and its call ends
	late := c.tooLate()
	c.runs(c.bound(), 0, 1)
	for _, o := range late {
		if c.server.happened(c.intent(o)) > 0 {
			c.Errorf("%s is sent for the first time past its time", o.key)
		}
	}
	c.live()
	for _, o := range c.ops {
		if !o.settled {
			c.last(o)
		}
	}
	c.runs(time.Minute, 0)
}

// tooLate are the ops of which no first send may happen any more: their beginner has said so. An act of a person that begins one
// once more is a beginning of its own.
func (c *cell) tooLate() (ops []*op) {
	for _, o := range c.ops {
		if c.name == "EnqueueMaxAge" && c.side(0) == one && o.queued && !o.settled && !c.server.asked(c.intent(o)) {
			ops = append(ops, o)
		}
	}
	return ops
}

// bound is how long an operation may wait for its next attempt at most: its pause, the wait for another's lease, and a round.
func (c *cell) bound() time.Duration {
	bound := time.Duration(0)
	for _, rec := range c.records() {
		if !rec.State.Final() {
			frozen := cmp.Or(rec.Pauses, persist.Pauses{Attempts: 6, First: 30 * time.Second, Most: 15 * time.Minute})
			runs := min(rec.Attempts/frozen.Attempts+2, 20)
			bound = max(bound, min(frozen.First<<runs, frozen.Most))
		}
	}
	lease := 30 * time.Second
	if c.row.lease != 0 {
		lease = c.row.lease
	}
	return bound + lease + 2*time.Minute + c.row.more
}

// live checks that nothing is left that a client could do.
func (c *cell) live() {
	for _, rec := range c.records() {
		beginner := 0
		if rec.Key == "beside" {
			beginner = 1
		}
		switch {
		case rec.State.Final() || c.mayWait(&rec) || !c.canSend(beginner):
		default:
			c.Errorf("%q is %v %s after %v, attempts %d, due in %v", rec.Key, rec.State, rec.HoldReason, c.bound(), rec.Attempts, time.Until(rec.NextAttempt))
		}
	}
}

// mayWait reports whether a record may wait for a person.
func (c *cell) mayWait(rec *persist.Record) bool {
	switch rec.HoldReason {
	case persist.HoldExpired:
		return c.scenario.expired || c.row.expires
	case persist.HoldRekey, persist.HoldRekeyHeld, persist.HoldUndo:
		return true
	}
	return rec.HoldReason != "" && c.row.holds
}

// canSend reports whether one of the two clients can send what the n-th began.
func (c *cell) canSend(n int) bool {
	for runner := range c.clients {
		if c.row.stuck == nil || !c.row.stuck(c.side(n), c.side(runner)) {
			return true
		}
	}
	return false
}

// last is the last call of an op's caller, by the client that began it. Its time is over where the scenario says so.
func (c *cell) last(o *op) {
	forgotten := c.row.forgets && c.side(0) == one && c.act.name == "sweeps"
	if o.known && (o.key == "" || forgotten) { // it would be another order
		return
	}
	err := c.call(0, o)
	if err != nil && o.key == "" && o.named != "" {
		err = c.call(0, o) // with the key that was named
	}
	happened := c.server.happened(c.intent(o))
	switch {
	case c.name == "KeepAnswer" && c.side(0) == other && o.by == 0 && o.known && err != nil:
		c.Errorf("the answer is gone within the time for which its client keeps it: %v", err)
	case o.queued && happened == 0 && !c.row.expires && c.canSend(0) && !c.final(o) && !c.waits(o):
		c.Errorf("%s was enqueued and has not happened: %v", o.key, err)
	case err != nil && !o.known && !c.scenario.expired && c.act.name != "sweeps" && !c.row.unanswered && c.act.name != "another request under the key" && c.canItself():
		c.Errorf("its caller is told at the end: %v", err)
	}
}

// canItself reports whether the first client can send its own.
func (c *cell) canItself() bool { return c.row.stuck == nil || !c.row.stuck(c.side(0), c.side(0)) }

// waits reports whether an op may wait for a person, and does.
func (c *cell) waits(o *op) bool {
	for _, rec := range c.records() {
		if rec.Key == string(o.key) && rec.State == persist.StateHeld {
			return c.mayWait(&rec)
		}
	}
	return false
}

// final reports whether a person, or the API, has decided otherwise.
func (c *cell) final(o *op) bool {
	unauthorized := c.server.auth && c.side(0) == one // a refusal is of what was sent without its credentials
	for _, rec := range c.records() {
		if rec.Key == string(o.key) && rec.State.Final() && rec.FinalEffect() != oncehttp.EffectHappened && !unauthorized {
			return true
		}
	}
	return false
}

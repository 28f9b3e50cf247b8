package oncehttp

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// SetNow gives c another clock, by which it judges records, whatever the journal's clock shows. Not while c is in use.
func SetNow(c *Client, now func() time.Time) {
	c.engine.clock = &clock{own: func() moment { return moment{wall: now()} }}
	c.engine.now = now
	if c.engine.leases != nil {
		c.engine.leases.clock = c.engine.clock
	}
}

// SetOwnClock gives the process of c, and of all clients on its journal, another wall clock of its own. Not while one is
// in use.
func SetOwnClock(c *Client, wall func() time.Time) {
	c.engine.clock.own = func() moment { return moment{wall(), ownClock().monotonic} }
}

// Running is how many operations are being run over c's journal in this process.
func Running(c *Client) int { return c.engine.shared.calls.Len() }

// DropLease lets c forget a lease.
func DropLease(c *Client, id persist.ID) { c.engine.leases.drop(id) }

// SetMostNotes bounds what the clients on c's journal note of operations that the journal may not have. Not while one is in use.
func SetMostNotes(c *Client, most int) { c.engine.shared.notes.Most = most }

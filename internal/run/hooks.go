package run

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds access for tests to parts of a client not visible from outside. Nothing else calls it.

// SetNow gives c another clock, now, to judge records by, whatever the journal's clock shows. Not while c is in use.
func (c *Client) SetNow(now func() time.Time) {
	c.engine.clock, c.engine.now = lease.OwnClock(now), now
	if held, shared := c.engine.leases.(interface{ UseClock(*lease.Clock) }); shared {
		held.UseClock(c.engine.clock)
	}
}

// SetOwnClock gives the process of c, and of all clients on its journal, another wall clock, for tests. It must not be called while a client is in
// use.
func (c *Client) SetOwnClock(wall func() time.Time) {
	c.engine.clock.SetOwn(wall)
}

// DropLease lets c forget a lease, for tests: as if the process had lost it.
func (c *Client) DropLease(id persist.ID) { c.engine.claims.Drop(id) }

// SetMostNotes bounds, for tests, the number of notes kept in memory by all clients on c's journal. A note says that an operation may be missing in
// the journal. It must not be called while a client is in use.
func (c *Client) SetMostNotes(most int) { c.engine.shared.notes.Most = most }

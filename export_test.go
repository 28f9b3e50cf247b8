package oncehttp

import "time"

// SetNow gives c another wall clock. Not while c is in use.
func SetNow(c *Client, now func() time.Time) { c.now = now }

// Flying is how many operations are being driven over c's journal in this
// process.
func Flying(c *Client) int {
	c.flights.mu.Lock()
	defer c.flights.mu.Unlock()
	return len(c.flights.m)
}

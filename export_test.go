package oncehttp

import "time"

// SetNow gives c another wall clock. Not while c is in use.
func SetNow(c *Client, now func() time.Time) { c.engine.now = now }

// Running is how many operations are being run over c's journal in this process.
func Running(c *Client) int { return c.engine.shared.calls.Len() }

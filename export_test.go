package oncehttp

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// The hooks of package run, for the tests of this package.

func SetNow(c *Client, now func() time.Time) { c.run.SetNow(now) }

func SetOwnClock(c *Client, wall func() time.Time) { c.run.SetOwnClock(wall) }

func DropLease(c *Client, id persist.ID) { c.run.DropLease(id) }

func SetMostNotes(c *Client, most int) { c.run.SetMostNotes(most) }

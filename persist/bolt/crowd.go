package bolt

import "time"

// crowd counts those who wait for a commit, and tells whether it is worth waiting
// for those whom the last one served: only if, the time before, as many were back
// soon. So a wait in vain is not repeated, and callers who have better to do between
// two commits than to come back are never waited for.
type crowd struct {
	here   int // who wait, for the commit under way or for the next
	around int // how many that were when the last commit ended, with those it served
	since  time.Time
	back   time.Duration // how long it took until as many were there again; 0: they are not
	soon   bool          // the time before, no fewer were back in time
	full   chan struct{} // closed when they are, if somebody waits for that
}

func (c *crowd) join() {
	c.here++
	if c.here != c.around || c.back != 0 {
		return
	}
	c.back = max(time.Since(c.since), 1)
	if c.full != nil {
		close(c.full)
	}
}

// release ends a commit that served so many.
func (c *crowd) release(served int, wait time.Duration) {
	c.soon = c.back != 0 && c.back <= wait && c.here <= c.around
	c.around, c.since, c.back = c.here, time.Now(), 0
	c.here -= served
}

// missing says that somebody is to be waited for.
func (c *crowd) missing() bool { return c.soon && c.here < c.around }

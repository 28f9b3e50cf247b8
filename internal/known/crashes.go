package known

import (
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Crashes are operations with a run ended by a panic or a runtime.Goexit. This process leaves each of them alone until
// its time. The zero value has none. It is safe for concurrent use.
type Crashes struct {
	mu    sync.Mutex
	until map[persist.ID]time.Time
}

// crashesMost bounds the number of operations kept. Of more, some are tried again sooner.
const crashesMost = 10_000

// Note keeps an operation whose run has ended in a panic: this process leaves it alone until that time.
func (c *Crashes) Note(id persist.ID, until, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil {
		c.until = map[persist.ID]time.Time{}
	}
	if len(c.until) >= crashesMost {
		c.makeRoom(now)
	}
	c.until[id] = until
}

// makeRoom drops the operations after their time, and then others until there is room for one more. The caller
// holds mu.
func (c *Crashes) makeRoom(now time.Time) {
	for id, until := range c.until {
		if !until.After(now) {
			delete(c.until, id)
		}
	}
	for id := range c.until {
		if len(c.until) < crashesMost {
			break
		}
		delete(c.until, id)
	}
}

// Until returns the time until which the operation is left alone; zero if it may be tried.
func (c *Crashes) Until(id persist.ID, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := c.until[id]
	if until.After(now) {
		return until
	}
	delete(c.until, id)
	return time.Time{}
}

package known

import (
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/pauses"
	"github.com/oncehttp/oncehttp/persist"
)

// Aside keeps the operations one client alone cannot send now, for a reason of its own and no fact about them: its
// Authorize fails, or its time limits do not fit any more. Their records stay as they are, and this client leaves them
// alone for a while. The zero value has none. It is safe for concurrent use.
type Aside struct {
	mu  sync.Mutex
	all map[persist.ID]aside
}

// aside is one operation.
type aside struct {
	failures int // in a row
	until    time.Time
}

// asideMost bounds the number of operations kept. Of more, some are tried again sooner.
const asideMost = 10_000

// Note keeps an operation that this client alone could not send just now, so that it is left alone: until least after now for the
// first failure, twice as long for each further failure in a row, and never longer than most. If there are too many, it forgets
// others.
func (a *Aside) Note(id persist.ID, now time.Time, least, most time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[persist.ID]aside{}
	}
	for other := range a.all {
		if len(a.all) < asideMost {
			break
		}
		delete(a.all, other)
	}
	failures := a.all[id].failures + 1
	a.all[id] = aside{failures, now.Add(pauses.After(failures, least, most))}
}

// Drop forgets an operation after its send.
func (a *Aside) Drop(id persist.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, id)
}

// Until returns the time until which the operation is left alone; zero if it may be tried.
func (a *Aside) Until(id persist.ID, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if until := a.all[id].until; until.After(now) {
		return until
	}
	return time.Time{}
}

package run

import (
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// group is the unit of claims: the operations of one origin with the same needs. needs is empty if the journal does not tell.
type group struct{ origin, needs string }

// The bounds of leftAlone.
const (
	aloneMax      = 1024 // groups
	aloneBatchMax = 256  // additional operations of a claim, to reach the operations behind those left alone
)

// leftAlone are groups of operations claimed by this client, but given back as they were, since the client cannot act on them. It
// leaves such a group alone for a pause. The pause doubles each time, up to pauseMax. leftAlone is safe for concurrent use.
type leftAlone struct {
	mu sync.Mutex
	of map[group]alone // of groups that were given back, aloneMax at most
}

// alone is the state of one group left alone until a time.
type alone struct {
	until time.Time     // nothing of the group is claimed before
	pause time.Duration // the last one
	n     int           // how many operations were given back
}

// note notes that n claimed operations of a group were released, since this client cannot act on them. A group is the operations of one account, origin and
// needs. Its pause doubles each time, from failedPauseMin to pauseMax; the largest n so far is kept, up to aloneBatchMax. If there are aloneMax groups, any
// other one is forgotten.
func (l *leftAlone) note(g group, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, known := l.of[g]
	if !known && len(l.of) >= aloneMax {
		for other := range l.of { // any
			delete(l.of, other)
			break
		}
	}
	a.pause = min(max(2*a.pause, failedPauseMin), pauseMax)
	a.until, a.n = time.Now().Add(a.pause), min(max(a.n, n), aloneBatchMax)
	if l.of == nil {
		l.of = map[group]alone{}
	}
	l.of[g] = a
}

// served ends the pause of an operation's group: this client can act on the operation, and so on all of its group. In a journal that does not tell
// needs an origin is one group, whose operations may differ; its pause stays.
func (l *leftAlone) served(rec *persist.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.of) > 0 {
		delete(l.of, group{rec.Origin, rec.Needs().String()})
	}
}

// wait returns the rest of the pause of a group (one account, origin and needs) that this client leaves alone, since it cannot act on it, and
// the largest number of its operations that were claimed and released at once, at most aloneBatchMax. Both are zero for any other group. After
// the pause wait is zero, and n not.
func (l *leftAlone) wait(g group) (wait time.Duration, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, known := l.of[g]
	if !known {
		return 0, 0
	}
	return max(time.Until(a.until), 0), a.n
}

package run

import (
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// group is the unit of claims: the operations of one origin with the same needs. needs is empty where the journal does not tell.
type group struct{ origin, needs string }

// The bounds of leftAlone.
const (
	aloneMax      = 1024 // groups
	aloneBatchMax = 256  // how many more operations a claim takes, to reach what is behind those that are left alone
)

// leftAlone are groups of which a claim brought operations that this client cannot act on, and that were given back as they were. It
// leaves such a group alone for a while, which doubles each time, up to pauseMax. It is safe for concurrent use.
type leftAlone struct {
	mu sync.Mutex
	of map[group]alone
}

// alone says until when a group is left alone.
type alone struct {
	until time.Time
	pause time.Duration // the last one
	n     int           // how many operations were given back
}

// note says that n operations of a group were given back.
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

// served says that this client can act on an operation, and so on all of its group. What a journal that does not tell needs holds
// together stays as it is.
func (l *leftAlone) served(rec *persist.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.of) > 0 {
		delete(l.of, group{rec.Origin, rec.Needs().String()})
	}
}

// wait returns how long a group is still left alone, and how many operations of it were given back last.
func (l *leftAlone) wait(g group) (wait time.Duration, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, known := l.of[g]
	if !known {
		return 0, 0
	}
	return max(time.Until(a.until), 0), a.n
}

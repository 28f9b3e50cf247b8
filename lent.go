package oncehttp

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the turns of operations that are in a function of the user: others have them meanwhile.

// lend gives the turn of an operation that entered to another, until takeBack.
func (l *lanes) lend(origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[origin]
	at.lent++
	l.lent++
	at.sending--
	l.sending--
	l.wakeNext()
}

// takeBack ends lend. It does not wait: for a while more may send than have a turn.
func (l *lanes) takeBack(origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[origin]
	at.blocked = false
	at.lent--
	l.lent--
	at.sending++
	l.sending++
}

// park says that an operation that was taken was given back while its limiter waits, until unpark. Nothing of its origin is claimed meanwhile.
func (l *lanes) park(origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[origin].parked++
}

// unpark ends park.
func (l *lanes) unpark(origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[origin]
	at.parked--
	at.blocked = false
}

// overdue takes out what has been queued for so long behind operations that are in a function of the user, of its own origin or of
// all workers, and returns it. Of such an origin there is no room until one of its operations has moved.
func (l *lanes) overdue(age time.Duration) (left []*persist.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for origin, at := range l.of {
		if at.lent == 0 && at.parked == 0 && l.lent < l.workers {
			continue
		}
		n := 0
		for n < len(at.queue) && time.Since(at.queue[n].put) >= age {
			n++
		}
		if n == 0 {
			continue
		}
		left = append(left, l.unqueue(at, n)...)
		at.blocked = true
		if at.running+len(at.queue) == 0 {
			delete(l.of, origin)
		}
	}
	return left
}

// unqueue takes the first n out of a lane's queue. The caller holds mu.
func (l *lanes) unqueue(at *lane, n int) (first []*persist.Record) {
	for _, queued := range at.queue[:n] {
		first = append(first, queued.rec)
	}
	at.queue = at.queue[n:]
	l.queued -= n
	return first
}

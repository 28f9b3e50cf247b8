package lanes

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Lent turns: while an operation is in a function of the user, another one has its turn.

// Lend implements Turns: an operation that has its turn to send calls a function of the program, which may take long, and lends the turn to others
// meanwhile. TakeBack must follow, before Leave.
func (l *Lanes) Lend(origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[origin]
	at.lent++
	l.lent++
	at.sending--
	l.sending--
	l.wakeNext()
}

// TakeBack implements Turns: the operation has its turn again. It does not wait for it: for a while more operations may send than there are turns.
func (l *Lanes) TakeBack(origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[origin]
	at.blocked = false
	at.lent--
	l.lent--
	at.sending++
	l.sending++
}

// Park implements Turns: an operation to this origin waits for the program's limiter, and no more operations of the origin are claimed meanwhile.
// Unpark must follow once for each Park.
func (l *Lanes) Park(origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[origin].parked++
}

// Unpark implements Turns: an operation that waited for the limiter goes on, or has ended.
func (l *Lanes) Unpark(origin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[origin]
	at.parked--
	at.blocked = false
}

// Overdue removes and returns the records queued for longer than age behind operations in a function of the user:
// of their own origin, or of all workers. The caller then has them, and gives them back. Such an origin has no
// room until one of its operations moves.
func (l *Lanes) Overdue(age time.Duration) (left []*persist.Record) {
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

// unqueue removes the first n records from the queue of an origin, and returns them. The caller holds mu.
func (l *Lanes) unqueue(at *lane, n int) (first []*persist.Record) {
	for _, queued := range at.queue[:n] {
		first = append(first, queued.rec)
	}
	at.queue = at.queue[n:]
	l.queued -= n
	return first
}

package set2

import (
	"net/http"
	"sync"
	"time"
)

// leased has keys that expire unless their worker renews them. Its fault: it renews once only.
type leased struct {
	next http.Handler
	rows *table
}

// newLeased returns a server with keys that expire unless their worker renews them. Its fault: it renews a key only once.
func newLeased() http.Handler { return &leased{next: newService(), rows: newTable()} }

// ServeHTTP executes a request whose key has no live row (an earlier request with its outcome). The row expires after 150 ms, and is renewed once,
// after 100 ms, for 200 ms more: the fault, since longer work is then executed again.
func (l *leased) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := open(w, r, l.next)
	if !ok {
		return
	}
	had, mine := l.rows.insert(c.id(), row{print: c.print, until: time.Now().Add(150 * time.Millisecond)})
	if !mine {
		c.settle(had)
		return
	}
	renewal := time.AfterFunc(100*time.Millisecond, func() { l.rows.extend(c.id(), 200*time.Millisecond) })
	outcome := c.execute(l.next)
	renewal.Stop()
	if outcome.good() {
		l.rows.set(c.id(), outcome)
	} else {
		l.rows.remove(c.id())
	}
	c.give(outcome)
}

// locks is a set of named locks, safe for concurrent use.
type locks struct {
	mu    sync.Mutex
	taken map[string]bool
}

// try takes a lock without waiting; false if it is taken.
func (l *locks) try(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken[name] {
		return false
	}
	l.taken[name] = true
	return true
}

// release frees a lock, even one taken by another request: the fault.
func (l *locks) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.taken, name)
}

// loser has a row and a lock for each key. A row at work with a free lock counts as abandoned.
// Its fault: a refused request frees the lock, too.
type loser struct {
	next  http.Handler
	rows  *table
	locks locks
}

// newLoser returns a server with a stored answer and a lock for each key. Its fault, which the test suite must find: a request that is refused since
// the key is in use frees the lock of the running one.
func newLoser() http.Handler {
	return &loser{next: newService(), rows: newTable(), locks: locks{taken: map[string]bool{}}}
}

// ServeHTTP executes a key whose lock it gets and whose row has no outcome. It always releases
// the lock in the end: the fault.
func (l *loser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := open(w, r, l.next)
	if !ok {
		return
	}
	locked := l.locks.try(c.id())
	defer l.locks.release(c.id()) // whether it was taken here or not
	had, found := l.rows.get(c.id())
	if found && (had.done || had.print != c.print) {
		c.settle(had)
		return
	}
	if !locked {
		c.settle(row{print: c.print}) // a row without an outcome: 409
		return
	}
	l.rows.set(c.id(), row{print: c.print})
	outcome := c.execute(l.next)
	if outcome.good() {
		l.rows.set(c.id(), outcome)
	} else {
		l.rows.remove(c.id())
	}
	c.give(outcome)
}

// work is one execution in a slot. outcome is set before done is closed.
type work struct {
	done    chan struct{}
	outcome row
}

// slotted has 8 slots, so that a burst of one request is one execution. Its fault: it does not
// compare the keys in a slot.
type slotted struct {
	next http.Handler
	rows *table
	mu   sync.Mutex
	at   [8]*work
}

// newSlotted returns a server with 8 slots for requests at work. Its fault: it does not compare the keys in a slot.
func newSlotted() http.Handler { return &slotted{next: newService(), rows: newTable()} }

// ServeHTTP executes a request with a new key in the key's slot, one of 8, and answers others from the key's row: the first request with its outcome.
// A failure frees the key.
func (s *slotted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := open(w, r, s.next)
	if !ok {
		return
	}
	had, mine := s.rows.insert(c.id(), row{print: c.print})
	if !mine {
		c.settle(had)
		return
	}
	outcome := s.do(c)
	outcome.print = c.print
	if outcome.good() {
		s.rows.set(c.id(), outcome)
	} else {
		s.rows.remove(c.id())
	}
	c.give(outcome)
}

// do executes a call in its slot. If another call is at work there, it waits and returns that call's outcome. The fault: the other call may have
// another key.
func (s *slotted) do(c *call) row {
	slot := c.hash() % uint64(len(s.at))
	s.mu.Lock()
	if other := s.at[slot]; other != nil {
		s.mu.Unlock()
		<-other.done
		return other.outcome
	}
	mine := &work{done: make(chan struct{})}
	s.at[slot] = mine
	s.mu.Unlock()
	mine.outcome = c.execute(s.next)
	s.mu.Lock()
	s.at[slot] = nil
	s.mu.Unlock()
	close(mine.done)
	return mine.outcome
}

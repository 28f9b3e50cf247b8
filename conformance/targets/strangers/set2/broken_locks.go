package set2

import (
	"net/http"
	"sync"
	"time"
)

// leased has keys that expire if their worker does not renew them.
type leased struct {
	next http.Handler
	rows *table
}

func newLeased() http.Handler { return &leased{next: newService(), rows: newTable()} }

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

// locks are names that are taken.
type locks struct {
	mu    sync.Mutex
	taken map[string]bool
}

// try takes a name, if it is free.
func (l *locks) try(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken[name] {
		return false
	}
	l.taken[name] = true
	return true
}

// release frees a name.
func (l *locks) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.taken, name)
}

// loser has a row for each key and a lock beside it. A row at work whose lock is free is of a worker that died.
type loser struct {
	next  http.Handler
	rows  *table
	locks locks
}

func newLoser() http.Handler {
	return &loser{next: newService(), rows: newTable(), locks: locks{taken: map[string]bool{}}}
}

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
		c.settle(row{print: c.print})
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

// work is what a slot is at.
type work struct {
	done    chan struct{}
	outcome row
}

// slotted has 8 slots in which requests are at work, so that a burst of one request is one work.
type slotted struct {
	next http.Handler
	rows *table
	mu   sync.Mutex
	at   [8]*work
}

func newSlotted() http.Handler { return &slotted{next: newService(), rows: newTable()} }

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

// do executes a call in its slot, or waits for what the slot is at. That it is the same call is taken for granted.
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

package mockserver

import (
	"sync"
	"time"
)

// claim is what the store says of a request.
type claim uint8

const (
	fresh    claim = iota // not seen: the caller holds the key until it finishes or releases it
	running               // the same request is being handled
	replayed              // the same request was answered
	mismatch              // the key belongs to another request
	unkeyed               // no key was looked up
)

// entry is one key of one principal.
type entry struct {
	id          digest
	fingerprint digest
	first       time.Time
	answer      *answer // nil while the request is handled
	note        *answer // what some bugs keep beside it
}

// store keeps the keys of all principals. It is safe for concurrent use, and
// every method is one atomic step: of many callers with one key, exactly one is
// told fresh.
type store struct {
	window time.Duration
	limit  int // how many keys are remembered; 0: all

	mu      sync.Mutex
	entries map[digest]*entry
	order   []*entry // by age, so that expired ones are found
}

func newStore(window time.Duration) *store {
	return &store{window: window, entries: map[digest]*entry{}}
}

// begin claims the key, or says why not. The entry is a copy in all but fresh.
func (t *store) begin(id, fingerprint digest, now time.Time) (*entry, claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	standing, known := t.entries[id]
	if !known {
		e := &entry{id: id, fingerprint: fingerprint, first: now}
		t.entries[id] = e
		t.order = append(t.order, e)
		if t.limit > 0 && len(t.order) > t.limit {
			t.drop()
		}
		return e, fresh
	}
	seen := *standing
	switch {
	case standing.fingerprint != fingerprint:
		return &seen, mismatch
	case standing.answer == nil:
		return &seen, running
	default:
		return &seen, replayed
	}
}

// finish stores the answer under the entry's key.
func (t *store) finish(e *entry, a *answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.answer = a
}

// release forgets the entry's key, so that the next request executes.
func (t *store) release(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[e.id] == e {
		delete(t.entries, e.id)
	}
}

// expire forgets a key that is not being handled.
func (t *store) expire(id digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[id]; known && e.answer != nil {
		delete(t.entries, id)
	}
}

// expireAll forgets every key that is not being handled.
func (t *store) expireAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, e := range t.entries {
		if e.answer != nil {
			delete(t.entries, id)
		}
	}
}

// reset forgets everything.
func (t *store) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.order = map[digest]*entry{}, nil
}

// sweep drops keys whose window has passed; one that is being handled stays.
func (t *store) sweep(now time.Time) {
	for len(t.order) > 0 {
		e := t.order[0]
		if now.Sub(e.first) < t.window {
			return
		}
		if t.entries[e.id] == e && e.answer == nil {
			return
		}
		t.drop()
	}
}

// drop forgets the oldest key; the lock is held.
func (t *store) drop() {
	if e := t.order[0]; t.entries[e.id] == e {
		delete(t.entries, e.id)
	}
	t.order[0] = nil
	t.order = t.order[1:]
}

// peek is a copy of the standing entry.
func (t *store) peek(id digest) (entry, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[id]; known {
		return *e, true
	}
	return entry{}, false
}

// note keeps something beside the standing entry.
func (t *store) note(id digest, a *answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[id]; known {
		e.note = a
	}
}

// noted is what note has kept.
func (t *store) noted(e *entry) *answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.note
}

package keylayer

import (
	"slices"
	"sync"
	"time"
)

// Claim is what the store says of a request.
type Claim uint8

const (
	Fresh    Claim = iota // not seen: the caller holds the key until it finishes or releases it
	Running               // the same request is being handled
	Replayed              // the same request was answered
	Mismatch              // the key belongs to another request
	Unkeyed               // no key was looked up
)

// Entry is one key of one principal.
type Entry struct {
	ID          Digest    // of the key and whose it is
	Fingerprint Digest    // of what the key names
	First       time.Time // when its first request came, from which its window counts
	Answer      *Answer   // nil while the request is handled
	Note        *Answer   // what some bugs keep beside it
}

// Store keeps the keys of all principals. It is safe for concurrent use, and
// every method is one atomic step: of many callers with one key, exactly one is
// told fresh.
type Store struct {
	Window time.Duration // how long a key is known after its first request; set before use
	Limit  int           // how many keys are remembered; 0: all

	mu      sync.Mutex
	entries map[Digest]*Entry
	order   []*Entry // by age, so that expired ones are found
}

// NewStore makes an empty store whose keys are known for the window.
func NewStore(window time.Duration) *Store {
	return &Store{Window: window, entries: map[Digest]*Entry{}}
}

// Begin claims the key, or says why not. The entry is a copy in all but fresh.
func (t *Store) Begin(id, fingerprint Digest, now time.Time) (*Entry, Claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	existing, known := t.entries[id]
	if !known {
		e := &Entry{ID: id, Fingerprint: fingerprint, First: now}
		t.entries[id] = e
		t.order = append(t.order, e)
		if t.Limit > 0 && len(t.order) > t.Limit {
			t.drop()
		}
		return e, Fresh
	}
	seen := *existing
	switch {
	case existing.Fingerprint != fingerprint:
		return &seen, Mismatch
	case existing.Answer == nil:
		return &seen, Running
	default:
		return &seen, Replayed
	}
}

// Finish stores the answer under the entry's key.
func (t *Store) Finish(e *Entry, a *Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.Answer = a
}

// Release forgets the entry's key, so that the next request executes.
func (t *Store) Release(e *Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[e.ID] == e {
		delete(t.entries, e.ID)
	}
}

// Expire forgets a key that is not being handled.
func (t *Store) Expire(id Digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[id]; known && e.Answer != nil {
		delete(t.entries, id)
	}
}

// Forget forgets a key, whatever is known of it.
func (t *Store) Forget(id Digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.entries, id)
}

// Renew lets the window of a key begin anew.
func (t *Store) Renew(id Digest, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[id]; known {
		e.First = now
		at := slices.Index(t.order, e)
		t.order = append(slices.Delete(t.order, at, at+1), e)
	}
}

// ExpireAll forgets every key that is not being handled.
func (t *Store) ExpireAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, e := range t.entries {
		if e.Answer != nil {
			delete(t.entries, id)
		}
	}
}

// Reset forgets everything.
func (t *Store) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.order = map[Digest]*Entry{}, nil
}

// sweep drops keys whose window has passed; one that is being handled stays.
func (t *Store) sweep(now time.Time) {
	for len(t.order) > 0 {
		e := t.order[0]
		if now.Sub(e.First) < t.Window {
			return
		}
		if t.entries[e.ID] == e && e.Answer == nil {
			return
		}
		t.drop()
	}
}

// drop forgets the oldest key; the lock is held.
func (t *Store) drop() {
	if e := t.order[0]; t.entries[e.ID] == e {
		delete(t.entries, e.ID)
	}
	t.order[0] = nil
	t.order = t.order[1:]
}

// Peek is a copy of the existing entry.
func (t *Store) Peek(id Digest) (Entry, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[id]; known {
		return *e, true
	}
	return Entry{}, false
}

// Known reports whether the key is known at now.
func (t *Store) Known(id Digest, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	_, known := t.entries[id]
	return known
}

// Note keeps something beside the existing entry.
func (t *Store) Note(id Digest, a *Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[id]; known {
		e.Note = a
	}
}

// Noted is what note has kept.
func (t *Store) Noted(e *Entry) *Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.Note
}

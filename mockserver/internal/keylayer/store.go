package keylayer

import (
	"slices"
	"sync"
	"time"
)

// Claim is the result of claiming a key.
type Claim uint8

const (
	Fresh    Claim = iota // the key was free: the caller holds it, and must call Finish or Release
	Running               // the same request is being handled
	Replayed              // the same request was answered before
	Mismatch              // the key belongs to another request
	Unkeyed               // the store was not asked
)

// Entry is one key of one principal in the store. The store's lock guards Answer
// and Note.
type Entry struct {
	ID          Digest    // Layer.Scope
	Fingerprint Digest    // Layer.Fingerprint of the first request
	First       time.Time // when the first request came; the window counts from it
	Answer      *Answer   // nil while the request is handled
	Note        *Answer   // for bugs
}

// Store keeps the keys of all principals. It is safe for concurrent use, and each
// method is one atomic step: of many callers with one key, exactly one gets Fresh.
type Store struct {
	Window time.Duration // the time for which a key is known after its first request; set before use
	Limit  int           // the number of keys that are remembered, the newest; 0: all

	mu      sync.Mutex
	entries map[Digest]*Entry
	order   []*Entry // by age; with entries that were forgotten since
}

// NewStore returns an empty store of keys and answers. It knows each key for this window of time.
func NewStore(window time.Duration) *Store {
	return &Store{Window: window, entries: map[Digest]*Entry{}}
}

// Begin claims the key. Fresh: the key was free, the caller owns its entry, and must call Finish or Release. Otherwise the entry is a copy of the
// existing one: Mismatch (of another request), Running (not yet answered) or Replayed (answered). Expired keys are dropped first. Limit bounds the
// number of keys for a deliberate bug; 0: no bound.
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

// Finish stores the answer under the entry's key, for repeats. e is the entry of a Fresh claim: its caller has taken the key. a must not be changed
// afterwards. If the key was forgotten meanwhile, the answer is lost.
func (t *Store) Finish(e *Entry, a *Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.Answer = a
}

// Release frees the key of a Fresh claim (its caller has taken the key), so that the next request executes. A later claim of the same key is not
// affected.
func (t *Store) Release(e *Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[e.ID] == e {
		delete(t.entries, e.ID)
	}
}

// Expire forgets a key that has an answer. A key whose request is being handled stays.
func (t *Store) Expire(id Digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[id]; known && e.Answer != nil {
		delete(t.entries, id)
	}
}

// Forget forgets a key, claimed or not.
func (t *Store) Forget(id Digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.entries, id)
}

// Renew starts the window of a known key (the time for which it is known) again at now, and moves the entry to the end of the order by age. A correct
// server does not do so: only a deliberate bug calls it.
func (t *Store) Renew(id Digest, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[id]; known {
		e.First = now
		at := slices.Index(t.order, e)
		t.order = append(slices.Delete(t.order, at, at+1), e)
	}
}

// ExpireAll forgets every key that has an answer. Keys whose requests are being handled stay.
func (t *Store) ExpireAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, e := range t.entries {
		if e.Answer != nil {
			delete(t.entries, id)
		}
	}
}

// Reset forgets everything, claimed keys included.
func (t *Store) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.order = map[Digest]*Entry{}, nil
}

// sweep drops the keys whose window (the time for which a key is known) is over, the oldest first. It stops at a key whose request is being handled:
// later ones stay, too. An entry of the order may have been forgotten, and its key claimed anew: that does not stop it. The caller holds the lock.
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

// drop forgets the oldest entry of the order; the key stays if a later request has claimed it anew. There must be an entry. The caller holds the
// lock.
func (t *Store) drop() {
	if e := t.order[0]; t.entries[e.ID] == e {
		delete(t.entries, e.ID)
	}
	t.order[0] = nil
	t.order = t.order[1:]
}

// Peek returns a copy of the key's entry, expired or not; false: there is none.
func (t *Store) Peek(id Digest) (Entry, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[id]; known {
		return *e, true
	}
	return Entry{}, false
}

// Known reports whether the key is known at now. It drops expired keys.
func (t *Store) Known(id Digest, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	_, known := t.entries[id]
	return known
}

// Note keeps an answer beside a known key, for deliberate bugs that give it later in the place of the right one.
func (t *Store) Note(id Digest, a *Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, known := t.entries[id]; known {
		e.Note = a
	}
}

// Noted returns the answer that a deliberate bug has kept beside an entry by Note, to give it later; nil: none. e is the entry of a caller that has
// taken the key.
func (t *Store) Noted(e *Entry) *Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.Note
}

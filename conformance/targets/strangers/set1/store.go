package set1

import (
	"net/http"
	"sync"
)

// entry is the state of a key in a store.
type entry struct {
	print string        // of the first request
	done  chan struct{} // closed when the request has ended
	reply *reply        // set before done is closed; nil if the key is free again
}

// keeper is a store of keys, safe for concurrent use.
type keeper interface {
	// claim returns the entry of a key. True: it is new, and the caller must work and then
	// call finish once.
	claim(id, print string) (*entry, bool)
	// finish ends the work for an entry: with keep its reply is stored, else the key is free.
	finish(r *http.Request, id string, e *entry, p *reply, keep bool)
	// reply returns the stored reply of an entry that has one.
	reply(e *entry) *reply
}

// memory is a keeper without a bound. mu guards entries, and reply until done is closed.
type memory struct {
	mu      sync.Mutex
	entries map[string]*entry
}

// newMemory returns an empty store of keys and their answers.
func newMemory() *memory { return &memory{entries: map[string]*entry{}} }

// claim reserves a key for the caller, if it is new: then mine is true, and the caller must execute the request and call finish. Otherwise it returns
// the key's entry.
func (m *memory) claim(id, print string) (*entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[id]; e != nil {
		return e, false
	}
	e := &entry{print: print, done: make(chan struct{})}
	m.entries[id] = e
	return e, true
}

// finish stores the answer of a reserved key, or frees the key if keep is false. It wakes the requests that wait for done.
func (m *memory) finish(_ *http.Request, id string, e *entry, p *reply, keep bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if keep {
		e.reply = p
	} else if m.entries[id] == e {
		delete(m.entries, id)
	}
	close(e.done)
}

// reply returns the answer kept in an entry; nil if there is none yet.
func (m *memory) reply(e *entry) *reply { return e.reply }

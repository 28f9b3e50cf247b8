package set1

import (
	"net/http"
	"sync"
)

// entry is what a store has of a key.
type entry struct {
	print string        // of the first request
	done  chan struct{} // closed when the request has ended
	reply *reply        // set before done is closed; nil if the key is free again
}

// keeper is a store of keys.
type keeper interface {
	// claim returns the entry of a key, and whether it was made for this request.
	claim(id, print string) (*entry, bool)
	// finish ends the work for an entry: its reply is kept, or the key is free again.
	finish(r *http.Request, id string, e *entry, p *reply, keep bool)
	// reply returns the reply that was kept in an entry.
	reply(e *entry) *reply
}

// memory is a keeper that forgets nothing.
type memory struct {
	mu      sync.Mutex
	entries map[string]*entry
}

func newMemory() *memory { return &memory{entries: map[string]*entry{}} }

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

func (m *memory) reply(e *entry) *reply { return e.reply }

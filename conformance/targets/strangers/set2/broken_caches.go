package set2

import (
	"net/http"
	"sync"
	"time"
)

// filtered has a small filter for each caller, to skip the table for new keys. Its fault: a
// failure clears bits that other keys share.
type filtered struct {
	next http.Handler
	mu   sync.Mutex
	seen map[string]uint32 // two bits for each key, by caller
	rows map[string]*row
}

// newFiltered returns a server with a small filter for each caller, to skip the table for new keys. Its fault: a failure clears bits that other keys
// share.
func newFiltered() http.Handler {
	return &filtered{next: newService(), seen: map[string]uint32{}, rows: map[string]*row{}}
}

// bits returns the two bits of a key in its caller's filter of 32 bits; they may be the same one. Keys may share bits.
func bits(c *call) uint32 {
	h := c.hash()
	return 1<<(h%32) | 1<<(h>>32%32)
}

// claim returns a copy of a key's row, if there is one. mine is true for a new key: then the caller must work and call end. The filter has two bits
// for each key; without both the table is not asked, so a key whose bits were cleared seems new.
func (f *filtered) claim(c *call) (had row, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := bits(c); f.seen[c.caller]&b == b {
		if o := f.rows[c.id()]; o != nil {
			return *o, false
		}
	}
	f.seen[c.caller] |= bits(c)
	f.rows[c.id()] = &row{print: c.print}
	return row{}, true
}

// end stores a success, or forgets the key of a failure. It clears the key's bits, which may
// be of other keys, too: the fault.
func (f *filtered) end(c *call, outcome row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if outcome.good() {
		f.rows[c.id()] = &outcome
		return
	}
	delete(f.rows, c.id())
	f.seen[c.caller] &^= bits(c)
}

// ServeHTTP executes a request with a new key, and answers others from the key's row: the first request with its outcome.
func (f *filtered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := open(w, r, f.next)
	if !ok {
		return
	}
	had, mine := f.claim(c)
	if !mine {
		c.settle(had)
		return
	}
	outcome := c.execute(f.next)
	f.end(c, outcome)
	c.give(outcome)
}

// hot has a cache for rows that are read often. Its fault: such a row is in the cache only,
// and expires there.
type hot struct {
	next  http.Handler
	mu    sync.Mutex // guards the maps
	rows  map[string]row
	reads map[string]int // of rows, up to the third
	cache map[string]row // its rows expire
}

// newHot returns a server with a cache for rows that are read often. Its fault: such a row is in the cache only, and expires there.
func newHot() http.Handler {
	return &hot{next: newService(), rows: map[string]row{}, reads: map[string]int{}, cache: map[string]row{}}
}

// claim returns the row of a key (its request with the outcome), from the cache or the table. mine is true if there was none: then the caller must
// execute the request. A row that was moved to the cache and has expired there is found nowhere: this is the fault.
func (h *hot) claim(c *call) (had row, mine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := c.id()
	if had, found := h.cache[id]; found && !had.expired() {
		return had, false
	}
	had, found := h.rows[id]
	if !found {
		h.rows[id] = row{print: c.print}
		return row{}, true
	}
	if had.done && had.print == c.print {
		h.warm(id, had)
	}
	return had, false
}

// warm counts a read of a row (a request with its outcome), and moves the row to the cache at the third, for a second. The caller holds h.mu.
func (h *hot) warm(id string, had row) {
	h.reads[id]++
	if h.reads[id] < 3 {
		return
	}
	had.until = time.Now().Add(time.Second)
	h.cache[id] = had
	delete(h.rows, id)
	delete(h.reads, id)
}

// ServeHTTP executes a request with a new key, and answers others from the key's row: the first request with its outcome. A failure frees the key.
func (h *hot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := open(w, r, h.next)
	if !ok {
		return
	}
	had, mine := h.claim(c)
	if !mine {
		c.settle(had)
		return
	}
	outcome := c.execute(h.next)
	h.mu.Lock()
	if outcome.good() {
		h.rows[c.id()] = outcome
	} else {
		delete(h.rows, c.id())
	}
	h.mu.Unlock()
	c.give(outcome)
}

// cached is a cache of outcomes in front of a layer. Its fault: method and path are not
// compared in the cache.
type cached struct {
	layer *layer
	mu    sync.Mutex     // guards fresh
	fresh map[string]row // outcomes of the last second, by id and body
}

// newCached returns a server with a cache of outcomes in front of a layer. Its fault: the cache does not compare method and path.
func newCached() http.Handler {
	return &cached{layer: newLayer(), fresh: map[string]row{}}
}

// ServeHTTP answers from a cache, or else from the layer of idempotency keys behind it. Its fault, which the test suite must find: the name of a
// cache entry has the key and the body, but not the method and the path.
func (h *cached) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := open(w, r, h.layer.next)
	if !ok {
		return
	}
	name := c.id() + "\n" + c.digest() // the fault: without method and path
	if had, found := h.get(name); found {
		c.give(had)
		return
	}
	h.layer.serve(c)
	if had, found := h.layer.rows.get(c.id()); found && had.done && had.print == c.print {
		h.put(name, had)
	}
}

// get returns a cached outcome; false if there is none of the last second.
func (h *cached) get(name string) (row, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	had, found := h.fresh[name]
	if found && had.expired() {
		delete(h.fresh, name)
		return row{}, false
	}
	return had, found
}

// put caches an outcome for a second.
func (h *cached) put(name string, had row) {
	h.mu.Lock()
	defer h.mu.Unlock()
	had.until = time.Now().Add(time.Second)
	h.fresh[name] = had
}

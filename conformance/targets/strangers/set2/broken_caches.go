package set2

import (
	"net/http"
	"sync"
	"time"
)

// filtered has a small filter for each caller, which says of most keys that they were never seen.
type filtered struct {
	next http.Handler
	mu   sync.Mutex
	seen map[string]uint32 // two bits for each key, by caller
	rows map[string]*row
}

func newFiltered() http.Handler {
	return &filtered{next: newService(), seen: map[string]uint32{}, rows: map[string]*row{}}
}

// bits returns the bits of a key.
func bits(c *call) uint32 {
	h := c.hash()
	return 1<<(h%32) | 1<<(h>>32%32)
}

// claim returns a copy of a key's row, or makes one. A key whose bits are not all set needs no look into the table.
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

// end stores an outcome, or has the key forgotten. Its bits are cleared, though they may be of others, too.
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

// hot has a cache for the rows that are read often. A row is in the table or in the cache.
type hot struct {
	next  http.Handler
	mu    sync.Mutex
	rows  map[string]row
	reads map[string]int
	cache map[string]row // with rows that expire
}

func newHot() http.Handler {
	return &hot{next: newService(), rows: map[string]row{}, reads: map[string]int{}, cache: map[string]row{}}
}

// claim returns the row of a key, or makes one.
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

// warm counts a read of a row. The third moves it to the cache.
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

// cached is a cache of outcomes in front of a layer.
type cached struct {
	layer *layer
	mu    sync.Mutex
	fresh map[string]row
}

func newCached() http.Handler {
	return &cached{layer: newLayer(), fresh: map[string]row{}}
}

func (h *cached) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := open(w, r, h.layer.next)
	if !ok {
		return
	}
	name := c.id() + "\n" + c.digest() // a body says all there is to say
	if had, found := h.get(name); found {
		c.give(had)
		return
	}
	h.layer.serve(c)
	if had, found := h.layer.rows.get(c.id()); found && had.done && had.print == c.print {
		h.put(name, had)
	}
}

// get returns an outcome that is not older than a second.
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

// put has an outcome be in the cache for a second.
func (h *cached) put(name string, had row) {
	h.mu.Lock()
	defer h.mu.Unlock()
	had.until = time.Now().Add(time.Second)
	h.fresh[name] = had
}

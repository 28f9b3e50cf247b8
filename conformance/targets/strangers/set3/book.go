package set3

import "sync"

// exchange is the state of a key.
type exchange struct {
	sum  string        // the fingerprint of the first request
	done chan struct{} // closed when the request has ended
	kept *answer       // set before done is closed; nil if the key is free again
}

// ended reports whether the request has ended.
func (x *exchange) ended() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// book has an exchange for each key. It is safe for concurrent use.
type book struct {
	mu    sync.Mutex
	known map[string]*exchange
}

// newBook returns an empty book: an exchange for each key.
func newBook() *book { return &book{known: map[string]*exchange{}} }

// look returns the exchange of a key; nil if there is none.
func (b *book) look(id string) *exchange {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[id]
}

// open returns the exchange (a request with its answer) of a key. True: it is new, and the caller must work and then call end.
func (b *book) open(id, sum string) (*exchange, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x := b.known[id]; x != nil {
		return x, false
	}
	x := &exchange{sum: sum, done: make(chan struct{})}
	b.known[id] = x
	return x, true
}

// put replaces the exchange of a key (a request with its answer) by a new one. The caller must call end for it. Only a server with a deliberate fault
// calls put: it does not look whether the key is free.
func (b *book) put(id, sum string) *exchange {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := &exchange{sum: sum, done: make(chan struct{})}
	b.known[id] = x
	return x
}

// end stores the answer of an exchange; nil frees the key. Call it once for each exchange.
func (b *book) end(id string, x *exchange, kept *answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x.kept = kept
	if kept == nil && b.known[id] == x {
		delete(b.known, id)
	}
	close(x.done)
}

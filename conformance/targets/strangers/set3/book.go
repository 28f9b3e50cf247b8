package set3

import "sync"

// exchange is what is known of a key.
type exchange struct {
	sum  string        // of the first request
	done chan struct{} // closed when the request has ended
	kept *answer       // set before done is closed; nil if the key is free again
}

// ended says whether the request has ended.
func (x *exchange) ended() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// book has an exchange for each key.
type book struct {
	mu    sync.Mutex
	known map[string]*exchange
}

func newBook() *book { return &book{known: map[string]*exchange{}} }

// look returns the exchange of a key, or nil.
func (b *book) look(id string) *exchange {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[id]
}

// open returns the exchange of a key, and whether it was opened for this request.
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

// put has a new exchange for a key, whatever there was.
func (b *book) put(id, sum string) *exchange {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := &exchange{sum: sum, done: make(chan struct{})}
	b.known[id] = x
	return x
}

// end ends an exchange with the answer that is kept, or with none: then the key is free.
func (b *book) end(id string, x *exchange, kept *answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x.kept = kept
	if kept == nil && b.known[id] == x {
		delete(b.known, id)
	}
	close(x.done)
}

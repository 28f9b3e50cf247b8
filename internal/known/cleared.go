package known

import "sync"

// clearedMost bounds Cleared.
const clearedMost = 4_096

// Cleared are requests without anything unresolved, as shown by a look, in a journal used by this process only. So the
// journal need not be asked again until something may be unresolved. The zero value is ready; it is safe for concurrent
// use.
type Cleared[K comparable] struct {
	mu     sync.Mutex
	at     map[K]bool
	doubts uint64
}

// Has reports whether an earlier read has shown that no operation with this request is unresolved, and nothing has put that in
// doubt since.
func (c *Cleared[K]) Has(request K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[request]
}

// Doubts returns the number of calls of Doubt so far, to be handed to Clear after a read of the journal.
func (c *Cleared[K]) Doubts() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doubts
}

// Clear notes that a look found no unresolved operation with this request. doubts is the result of Doubts before the look. After a later Doubt, about any
// request, Clear does nothing: the look proves nothing. If there are clearedMost notes, all others are forgotten first.
func (c *Cleared[K]) Clear(request K, doubts uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doubts != doubts {
		return
	}
	if c.at == nil || len(c.at) >= clearedMost {
		c.at = map[K]bool{}
	}
	c.at[request] = true
}

// Doubt notes that an operation with this request may be unresolved. Looks at the request before this moment count no more.
func (c *Cleared[K]) Doubt(request K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubts++
	delete(c.at, request)
}

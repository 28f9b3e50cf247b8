package known

import "sync"

// clearedMost bounds Cleared.
const clearedMost = 4_096

// Cleared are requests of which a look has shown that nothing is unresolved, in a journal that only this process uses, so that it need
// not be asked again until something may be. The zero value is ready; it is safe for concurrent use.
type Cleared[K comparable] struct {
	mu     sync.Mutex
	at     map[K]bool
	doubts uint64
}

// Has reports whether nothing of the request is unresolved.
func (c *Cleared[K]) Has(request K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[request]
}

// Doubts returns how often there was a doubt, for Clear.
func (c *Cleared[K]) Doubts() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doubts
}

// Clear notes that a look has found nothing unresolved of the request. doubts is what Doubts returned before the look: if there was one
// since, of whatever request, the look proves nothing.
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

// Doubt notes that an operation of the request may be unresolved from now on.
func (c *Cleared[K]) Doubt(request K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubts++
	delete(c.at, request)
}

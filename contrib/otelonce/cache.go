package otelonce

import (
	"maps"
	"sync"
	"sync/atomic"
)

// cacheSize is the bound of a cache. Origins, profiles and statuses are few; a client of very many origins makes values anew.
const cacheSize = 1000

// cache keeps values that are made from their keys, at most cacheSize of them. Reads take no lock and allocate nothing.
type cache[K comparable, V any] struct {
	make func(K) V
	kept atomic.Pointer[map[K]V] // never changed, but replaced
	mu   sync.Mutex              // is held to replace it
}

// newCache returns a cache of the values that make returns. It keeps at most cacheSize of them.
func newCache[K comparable, V any](make func(K) V) *cache[K, V] {
	c := &cache[K, V]{make: make}
	c.kept.Store(&map[K]V{})
	return c
}

// of returns the value of a key. A full cache makes the value of a new key each time. Reads take no lock: the map is never changed, but replaced by a larger
// copy.
func (c *cache[K, V]) of(key K) V {
	if v, found := (*c.kept.Load())[key]; found {
		return v
	}
	v := c.make(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept := *c.kept.Load(); len(kept) < cacheSize {
		more := maps.Clone(kept)
		more[key] = v
		c.kept.Store(&more)
	}
	return v
}

// with returns a slice of the common values and one more. It copies them, since common is shared by others and must not change: its capacity is cut to its
// length.
func with[T any](common []T, more T) []T {
	return append(common[:len(common):len(common)], more)
}

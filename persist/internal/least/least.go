// Package least keeps the item with the least key of a changing set.
package least

// Heap is a set of items by key. The item with the least key is found at once; each change takes the logarithm of their number.
// Not safe for concurrent use.
type Heap[T any] struct {
	items []item[T]
	place func(T) *int32 // the item's place in items, counted from 1; zero: it is not in the set
}

type item[T any] struct {
	key int64
	of  T
}

// New returns an empty heap, ordered by key with the least first. An item remembers its index in the heap: place returns a pointer to that memory. It must be
// zero at first, and only the heap may change it.
func New[T any](place func(T) *int32) Heap[T] { return Heap[T]{place: place} }

// Set enters an item with a key, or changes the key of an item that is in the heap. place returns the item's index plus one; 0 is for "not in the heap".
func (h *Heap[T]) Set(of T, key int64) {
	p := h.place(of)
	if *p == 0 {
		h.items = append(h.items, item[T]{key, of})
		*p = int32(len(h.items))
	}
	i := int(*p) - 1
	h.items[i].key = key
	h.down(h.up(i))
}

// Remove takes an item out. It changes nothing if the item is not in the heap (its place is 0, else its index plus one). The last item fills the gap. If the
// heap has become much smaller, its memory is given back.
func (h *Heap[T]) Remove(of T) {
	p := h.place(of)
	i, last := int(*p)-1, len(h.items)-1
	if i < 0 {
		return
	}
	*p = 0
	moved := h.items[last]
	h.items[last] = item[T]{}
	h.items = h.items[:last]
	if i != last {
		h.put(i, moved)
		h.down(h.up(i))
	}
	if c := cap(h.items); c > roomMin && last < c/4 {
		h.items = append(make([]item[T], 0, c/2), h.items...)
	}
}

// roomMin is the room of a set for items, at which it stops giving back memory.
const roomMin = 64

// Least returns the item with the least key and this key; ok is false if the heap is empty.
func (h *Heap[T]) Least() (of T, key int64, ok bool) {
	if len(h.items) == 0 {
		return of, 0, false
	}
	return h.items[0].of, h.items[0].key, true
}

// put puts an item into a place of the heap's slice, and tells the item its place (from 1 on), so that it can be removed later.
func (h *Heap[T]) put(i int, it item[T]) {
	h.items[i] = it
	*h.place(it.of) = int32(i + 1)
}

// up moves the item at place i towards the root, past all with greater keys, and returns its new place.
func (h *Heap[T]) up(i int) int {
	it := h.items[i]
	for ; i > 0 && it.key < h.items[(i-1)/2].key; i = (i - 1) / 2 {
		h.put(i, h.items[(i-1)/2])
	}
	h.put(i, it)
	return i
}

// down moves the item at place i away from the root, past all with lesser keys.
func (h *Heap[T]) down(i int) {
	it := h.items[i]
	for {
		next := 2*i + 1
		if next+1 < len(h.items) && h.items[next+1].key < h.items[next].key {
			next++
		}
		if next >= len(h.items) || it.key <= h.items[next].key {
			break
		}
		h.put(i, h.items[next])
		i = next
	}
	h.put(i, it)
}

package least

import (
	"math/rand/v2"
	"testing"
)

// TestHeap compares the set with a plain one, over many changes.
func TestHeap(t *testing.T) {
	t.Parallel()
	type thing struct{ place int32 }
	r := rand.New(rand.NewPCG(1, 2))
	things := make([]thing, 100)
	h, plain := New(func(p *thing) *int32 { return &p.place }), map[*thing]int64{}
	for range 50_000 {
		of := &things[r.IntN(len(things))]
		if r.IntN(3) == 0 {
			h.Remove(of)
			delete(plain, of)
		} else {
			key := r.Int64N(50) - 25
			h.Set(of, key)
			plain[of] = key
		}
		got, key, ok := h.Least()
		if ok != (len(plain) > 0) || ok && plain[got] != key {
			t.Fatalf("Least: key %d, ok %t, of %d things", key, ok, len(plain))
		}
		for _, other := range plain {
			if other < key {
				t.Fatalf("Least has key %d; want at most %d", key, other)
			}
		}
	}
	for i := range things {
		h.Remove(&things[i])
	}
	if _, _, ok := h.Least(); ok {
		t.Error("an empty set has a least item")
	}
}

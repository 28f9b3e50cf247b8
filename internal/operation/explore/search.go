package explore

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// Result is the result of a search.
type Result struct {
	States int
	Depth  int
	// Broken is the shortest history with a broken invariant, in words; empty if there is none.
	Broken string
}

// Search goes through all states of a slice, layer by layer, so the first history with a broken invariant is a shortest one. It ends there, or if there is no
// further state. The result has the numbers of states and layers, and that history in words, empty if nothing is broken. More than most states are an error.
func (s *Slice) Search(most int) (Result, error) {
	x := newSearch(s)
	first := s.newWorld()
	x.meet(&first, step{-1, x.name(Event{})})
	layer, ids := []World{first}, []int32{0}
	var moves []move
	for depth := 0; len(layer) > 0; depth++ {
		var nextLayer []World
		var nextIDs []int32
		for i := range layer {
			moves = s.moves(&layer[i], moves[:0])
			for j := range moves {
				m := &moves[j]
				if m.bad != "" {
					return Result{len(x.steps), depth, x.history(ids[i], m.event) + "breaks invariant " + m.bad + "\n"}, nil
				}
				if m.to.isOnlyPoorerThan(&layer[i]) {
					continue
				}
				if id, isNew := x.meet(&m.to, step{ids[i], x.name(m.event)}); isNew {
					nextLayer, nextIDs = append(nextLayer, m.to), append(nextIDs, id)
				}
			}
			if len(x.steps) > most {
				return Result{States: len(x.steps), Depth: depth}, fmt.Errorf("%s: over %d states", s.Name, most)
			}
		}
		if len(nextLayer) == 0 {
			return Result{States: len(x.steps), Depth: depth}, nil
		}
		layer, ids = nextLayer, nextIDs
	}
	return Result{}, nil
}

// ptr returns a pointer to v.
func ptr[T any](v T) *T { return &v }

// isOnlyPoorerThan reports whether a state differs from the one before it only by its remaining bounds. Then each
// successor of it has its counterpart after the one before.
func (w *World) isOnlyPoorerThan(from *World) bool {
	same := *w
	same.Left = from.Left
	return same == *from
}

// step is the way to a state.
type step struct {
	from int32
	what int32
}

// search is a search under way.
type search struct {
	seed   maphash.Seed
	seen   hashes
	steps  []step
	events numbers[Event]
	none   *Rec
	// alike: the clients can be exchanged without a difference. keys: so can the keys.
	alike, keys, shared bool
}

// newSearch returns a search through all states that the clients, server and journal of s can reach, with none visited
// yet. If the two clients are configured alike, states that differ only in their order count as one.
func newSearch(s *Slice) *search {
	alike := (s.Shared || s.Keyless) && s.Configs[0] == s.Configs[1]
	return &search{seed: maphash.MakeSeed(), alike: alike, keys: s.Keyless, shared: s.Shared, none: s.rec(Rec{})}
}

// numbers gives equal values the same number.
type numbers[T comparable] struct {
	of  map[T]int32
	all []T
}

// number returns the number of v: the same for equal values, and a new one for a new value.
func (n *numbers[T]) number(v T) int32 {
	at, known := n.of[v]
	if !known {
		if n.of == nil {
			n.of = map[T]int32{}
		}
		at = int32(len(n.all))
		n.of[v], n.all = at, append(n.all, v)
	}
	return at
}

// name returns the number of an event, the same for equal ones: the search keeps numbers, since it visits millions of
// states.
func (x *search) name(e Event) int32 { return x.events.number(e) }

// meet notes a state, and way, the event and the state before that led to it. id is the number of the new state; isNew is false, and id 0, if it was met before. A
// state different only by the names of clients or keys counts as the same: of their hashes the smallest is kept.
func (x *search) meet(w *World, way step) (id int32, isNew bool) {
	d := maphash.Comparable(x.seed, *w)
	if x.alike {
		d = min(d, maphash.Comparable(x.seed, x.otherClients(w)))
	}
	if x.keys {
		other := w.otherKeys()
		d = min(d, maphash.Comparable(x.seed, other))
		if x.alike {
			d = min(d, maphash.Comparable(x.seed, x.otherClients(&other)))
		}
	}
	if !x.seen.add(d) {
		return 0, false
	}
	x.steps = append(x.steps, way)
	return int32(len(x.steps) - 1), true
}

// otherClients returns the state with its clients exchanged. If callers name no key, each client has an intent of its own.
func (x *search) otherClients(w *World) World {
	o := *w
	o.Procs[0], o.Procs[1] = w.Procs[1], w.Procs[0]
	if x.keys {
		o.Intents[0], o.Intents[1] = w.Intents[1], w.Intents[0]
	}
	for t := range o.Ops {
		k := &o.Ops[t]
		if k.Meta == (Meta{}) && k.Rec == x.none && k.Disk == x.none { // nobody has used that key
			continue
		}
		if x.shared {
			k.Noted[0], k.Noted[1] = k.Noted[1], k.Noted[0]
			k.NotedAt[0], k.NotedAt[1] = k.NotedAt[1], k.NotedAt[0]
		}
		k.By = 1 - k.By
		if x.keys {
			k.Intent = 1 - k.Intent
		}
	}
	return o
}

// otherKeys returns the state with its two keys exchanged. Where the keys mean the same, the search visits only one of the two states. The intents stay: each key
// names its own.
func (w *World) otherKeys() World {
	o := *w
	o.Ops[0], o.Ops[1] = w.Ops[1], w.Ops[0]
	for p := range o.Procs {
		if o.Procs[p].Active {
			o.Procs[p].On = 1 - o.Procs[p].On
		}
	}
	return o
}

// history returns the events that lead to the state with the number at, and last, the event after it: in words, one a
// line. It describes a broken invariant.
func (x *search) history(at int32, last Event) string {
	lines := []string{last.String() + "\n"}
	for ; at > 0; at = x.steps[at].from {
		lines = append(lines, x.events.all[x.steps[at].what].String()+"\n")
	}
	slices.Reverse(lines)
	return strings.Join(lines, "")
}

// hashes is a set of hashes, 8 bytes each. Two states of one hash are taken for one. Among n states the probability is
// about n² / 2⁶⁵: 3 in ten thousand for 10⁸ states.
type hashes struct {
	slots []uint64 // zero: free
	n     int
}

// add adds the hash of a state to the set of visited ones, and reports whether it is new. Zero marks a free slot, so a hash of zero counts as one. The table grows
// once it is three quarters full.
func (h *hashes) add(d uint64) bool {
	if h.n*4 >= len(h.slots)*3 {
		h.grow()
	}
	d = max(d, 1)
	at := h.slot(d)
	if h.slots[at] == d {
		return false
	}
	h.slots[at] = d
	h.n++
	return true
}

// slot returns the index of d in the table, or of the free slot where d belongs.
func (h *hashes) slot(d uint64) uint64 {
	mask := uint64(len(h.slots) - 1)
	at := d & mask
	for h.slots[at] != 0 && h.slots[at] != d {
		at = (at + 1) & mask
	}
	return at
}

// grow doubles the table, and puts all hashes in again.
func (h *hashes) grow() {
	old := h.slots
	h.slots = make([]uint64, max(1<<12, 2*len(old)))
	for _, d := range old {
		if d != 0 {
			h.slots[h.slot(d)] = d
		}
	}
}

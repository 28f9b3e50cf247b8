package explore

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// Result is what a search has found.
type Result struct {
	States int
	Depth  int
	// Broken is the shortest history that breaks an invariant, in words; empty if none does.
	Broken string
}

// step is the way to a state.
type step struct {
	from int32
	what int32
}

// search is a search under way.
type search struct {
	seed maphash.Seed
	// seen has a digest of each state. Two states of one digest are taken for one: of n states that happens with a probability of about n² / 2⁶⁵.
	seen  map[uint64]struct{}
	steps []step
	whats []what
	named map[what]int32
}

// Search goes through all states of a slice, layer by layer, so that the first history that breaks an invariant is a shortest one. It ends
// there, or once there is no further state, or when there are more than most.
func (s *Slice) Search(most int) (Result, error) {
	x := &search{seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}, named: map[what]int32{}}
	first := s.newWorld()
	x.meet(first, step{-1, x.name(what{})})
	layer, ids := []World{first}, []int32{0}
	for depth := 0; len(layer) > 0; depth++ {
		var nextLayer []World
		var nextIDs []int32
		for i := range layer {
			for _, m := range s.moves(&layer[i]) {
				way := step{ids[i], x.name(m.what)}
				if m.bad != "" {
					return Result{len(x.steps), depth, x.history(way) + "breaks invariant " + m.bad + "\n"}, nil
				}
				if id, isNew := x.meet(m.to, way); isNew {
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

// meet notes a state, and the way to it. isNew is false if it was met before.
func (x *search) meet(w World, way step) (id int32, isNew bool) {
	d := maphash.Comparable(x.seed, w)
	if _, known := x.seen[d]; known {
		return 0, false
	}
	x.seen[d] = struct{}{}
	x.steps = append(x.steps, way)
	return int32(len(x.steps) - 1), true
}

// name returns the number of a thing that happens.
func (x *search) name(w what) int32 {
	if n, known := x.named[w]; known {
		return n
	}
	x.whats = append(x.whats, w)
	x.named[w] = int32(len(x.whats) - 1)
	return x.named[w]
}

// history returns the way to a state in words, a line a move.
func (x *search) history(last step) string {
	var lines []string
	for at := last; ; at = x.steps[at.from] {
		lines = append(lines, x.whats[at.what].String())
		if at.from < 0 {
			break
		}
	}
	var b strings.Builder
	for i := len(lines) - 2; i >= 0; i-- {
		b.WriteString(lines[i] + "\n")
	}
	return b.String()
}

package bolt

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// An idTable knows what a map knows, with hashes that collide and without, while it
// grows and while records are removed.
func TestIDTable(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		masks := []uint64{^uint64(0), 0xff << 56, 0x3 << 40, 0x80ff_ff00_0000_0000, 0xfff << 44, 0}
		mask := masks[seed%6]
		table, model := newIDTable(rnd.Uint64N(2)*2000), map[uint64][]uint64{}
		var hashes []uint64
		for seq := uint64(1); seq < 3000; seq++ {
			hash, as := rnd.Uint64()&mask, seq
			if rnd.IntN(50) == 0 {
				as += seqMask // too large for a place
			}
			table.add(hash, as)
			model[hash] = append(model[hash], as)
			hashes = append(hashes, hash)
			for range rnd.IntN(3) { // removed again, most of them in the end
				hash := hashes[rnd.IntN(len(hashes))]
				if list := model[hash]; len(list) > 0 {
					i := rnd.IntN(len(list))
					table.remove(hash, list[i])
					model[hash] = slices.Delete(slices.Clone(list), i, i+1)
				}
			}
			table.remove(rnd.Uint64(), seqMask-1) // which is not there
			if seq%500 == 0 {
				compareTable(t, table, model, mask)
			}
		}
		compareTable(t, table, model, mask)
	}
}

// compareTable holds a table against a map. Where the mask leaves only bits that the
// table keeps, it must give just what the map has; else it may give more.
func compareTable(t *testing.T, table *idTable, model map[uint64][]uint64, mask uint64) {
	t.Helper()
	exact := mask<<32 == 0
	for hash, want := range model {
		slices.Sort(want)
		got := table.all(hash)
		for _, seq := range want {
			others := slices.DeleteFunc(slices.Clone(got), func(s uint64) bool { return s == seq })
			if !slices.Contains(got, seq) || table.find(hash, others) != seq || table.only(hash, seq) != (len(got) == 1) {
				t.Fatalf("mask %x: %d is not found among %v", mask, seq, got)
			}
		}
		if exact && !slices.Equal(got, want) {
			t.Fatalf("mask %x: %v, want %v", mask, got, want)
		}
	}
	for i := range table.shards {
		s := &table.shards[i]
		taken := len(s.places) - len(slices.DeleteFunc(slices.Clone(s.places), func(p uint64) bool { return p != 0 }))
		if taken != s.count || taken > 0 && taken == len(s.places) {
			t.Fatalf("%d of %d places are taken, counted %d", taken, len(s.places), s.count)
		}
	}
}

// What an idTable takes for each of many records, built up and made at once.
func TestIDTableBytes(t *testing.T) {
	t.Parallel()
	const n = 1 << 18
	rnd := rand.New(rand.NewPCG(1, 2))
	grown, made := newIDTable(0), newIDTable(n)
	for seq := uint64(1); seq <= n; seq++ {
		hash := rnd.Uint64()
		grown.add(hash, seq)
		made.add(hash, seq)
	}
	for name, table := range map[string]*idTable{"grown": grown, "made": made} {
		places := 0
		for i := range table.shards {
			places += len(table.shards[i].places)
		}
		if each := float64(places) * 8 / n; each > 12 {
			t.Errorf("%s: %.1f bytes a record", name, each)
		}
	}
}

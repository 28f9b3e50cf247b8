package bolt

import (
	"hash/maphash"
	"slices"
)

// index finds Seqs by hash: of account and key, or of a fingerprint. It holds
// no keys, so that a million records cost little; whoever finds a Seq reads the
// record and compares. Two records may share a hash. Not safe for concurrent
// use.
type index struct {
	first map[uint64]uint64
	more  map[uint64][]uint64 // the second and later Seqs of one hash
}

func newIndex() *index { return newIndexOf(0) }

// newIndexOf has room for n hashes from the start.
func newIndexOf(n uint64) *index {
	return &index{first: make(map[uint64]uint64, n), more: map[uint64][]uint64{}}
}

func (x *index) add(hash, seq uint64) {
	if _, taken := x.first[hash]; taken {
		x.more[hash] = append(x.more[hash], seq)
		return
	}
	x.first[hash] = seq
}

func (x *index) remove(hash, seq uint64) {
	more := x.more[hash]
	if x.first[hash] == seq {
		if len(more) == 0 {
			delete(x.first, hash)
			return
		}
		x.first[hash] = more[0]
		seq = more[0]
	}
	if i := slices.Index(more, seq); i >= 0 {
		more = slices.Delete(more, i, i+1)
		x.more[hash] = more
	}
	if len(more) == 0 {
		delete(x.more, hash)
	}
}

// find returns the first Seq under a hash that is not among known, or 0.
func (x *index) find(hash uint64, known []uint64) uint64 {
	seq, ok := x.first[hash]
	if !ok || !slices.Contains(known, seq) {
		return seq
	}
	for _, seq := range x.more[hash] {
		if !slices.Contains(known, seq) {
			return seq
		}
	}
	return 0
}

// only reports whether exactly one Seq, this one, is under a hash.
func (x *index) only(hash, seq uint64) bool {
	return x.first[hash] == seq && len(x.more[hash]) == 0
}

// all returns every Seq under a hash, ascending.
func (x *index) all(hash uint64) []uint64 {
	seq, ok := x.first[hash]
	if !ok {
		return nil
	}
	list := append([]uint64{seq}, x.more[hash]...)
	slices.Sort(list)
	return list
}

// hasher hashes identities with a seed of its own, so that nobody can choose
// keys that collide.
type hasher struct {
	seed maphash.Seed
	mask uint64 // tests clear bits, to make hashes collide
}

func newHasher(mask uint64) hasher {
	if mask == 0 {
		mask = ^uint64(0)
	}
	return hasher{seed: maphash.MakeSeed(), mask: mask}
}

func (h hasher) id(account, key string) uint64 {
	return mix(maphash.String(h.seed, account)^mix(maphash.String(h.seed, key))) & h.mask
}

func (h hasher) idBytes(account, key []byte) uint64 {
	return mix(maphash.Bytes(h.seed, account)^mix(maphash.Bytes(h.seed, key))) & h.mask
}

func (h hasher) fingerprint(f []byte) uint64 { return maphash.Bytes(h.seed, f) & h.mask }

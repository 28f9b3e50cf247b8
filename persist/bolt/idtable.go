package bolt

import "slices"

// idTable finds the Seqs of records by the hash of their account and key. It takes eight bytes a place; at
// least seven tenths of the places are taken once there are many. It keeps 32 bits of a hash, so a Seq may
// be found under another's hash: about one search in 4,000 with a million records. As with index, a caller
// finding a Seq reads the record and compares. Not safe for concurrent use.
type idTable struct {
	shards [256]idShard // by the highest byte of the hash
	far    *index       // Seqs too large for a place; nil: there are none
}

// idShard is a hash table with open addressing. A place holds the tag and a Seq of 40 bits; zero is a free
// place. The tag is the 24 bits of the hash behind the highest byte. The places are in the order of their
// tags, but for those standing behind others of their neighbourhood. Between the home of such a place and
// itself there is no free place.
type idShard struct {
	places []uint64
	count  int
}

const (
	tagBits = 24
	seqBits = 40
	seqMask = 1<<seqBits - 1
)

// newIDTable returns an empty table from hashes of IDs to records, large enough for about n records without growing: each shard has a quarter more places than
// records.
func newIDTable(n uint64) *idTable {
	t := &idTable{}
	if each := int(n / uint64(len(t.shards))); each > 0 {
		for i := range t.shards {
			t.shards[i].places = make([]uint64, each+each/4+8)
		}
	}
	return t
}

// shard returns the part of the table for a hash, by its highest 8 bits.
func (t *idTable) shard(hash uint64) *idShard { return &t.shards[hash>>56] }

// tagOf returns the tagBits bits of a hash below the highest 8. An entry of the table keeps them.
func tagOf(hash uint64) uint64 { return hash >> (56 - tagBits) & (1<<tagBits - 1) }

// add enters a record's number (Seq) under the hash of its ID. It must not be there yet, and not be zero, the mark of a free place. A number too large for the
// compact table goes into an ordinary map (far). A shard grows when seven eighths of its places are taken, so that searches stay short.
func (t *idTable) add(hash, seq uint64) {
	if seq > seqMask {
		if t.far == nil {
			t.far = newIndex()
		}
		t.far.add(hash, seq)
		return
	}
	s := t.shard(hash)
	if s.count >= len(s.places)/8*7 {
		s.grow()
	}
	s.put(tagOf(hash)<<seqBits | seq)
	s.count++
}

// remove removes a record's number (Seq) from the hash of its ID. An unknown number changes nothing.
func (t *idTable) remove(hash, seq uint64) {
	if seq > seqMask {
		if t.far != nil {
			t.far.remove(hash, seq)
		}
		return
	}
	s := t.shard(hash)
	for at := range s.run(tagOf(hash)) {
		if s.places[at] == tagOf(hash)<<seqBits|seq {
			s.free(at)
			s.count--
			return
		}
	}
}

// find returns the number (Seq) of a record under this hash of an ID, but none of known; 0 if there is no other. A place of the table has the number and some
// bits of the hash, the tag. IDs can share these: if the record is not the wanted one, the caller adds its number to known and asks again. far has the numbers
// too large for a place.
func (t *idTable) find(hash uint64, known []uint64) uint64 {
	s, tag := t.shard(hash), tagOf(hash)
	for at := range s.run(tag) {
		if p := s.places[at]; p>>seqBits == tag && !slices.Contains(known, p&seqMask) {
			return p & seqMask
		}
	}
	if t.far != nil {
		return t.far.find(hash, known)
	}
	return 0
}

// only reports whether the record with this number (Seq) is the only one under a hash of an ID. Then no other record can be meant by the hash. That is the
// usual case, and needs no read of the file.
func (t *idTable) only(hash, seq uint64) bool {
	return t.find(hash, nil) == seq && t.find(hash, []uint64{seq}) == 0
}

// all returns the Seqs of all records under a hash, ascending. There may be several: an ID of another record can have the same hash.
func (t *idTable) all(hash uint64) []uint64 {
	var list []uint64
	for seq := t.find(hash, nil); seq != 0; seq = t.find(hash, list) {
		list = append(list, seq)
	}
	slices.Sort(list)
	return list
}

// home returns the index at which the search for a tag, a part of a hash, begins.
func (s *idShard) home(tag uint64) int { return int(tag * uint64(len(s.places)) >> tagBits) }

// run yields the taken indexes from the home of a tag (where its search begins) up to the first free one. An entry lies at its home or, if others
// were there before, behind it in this run.
func (s *idShard) run(tag uint64) func(yield func(at int) bool) {
	return func(yield func(at int) bool) {
		if len(s.places) == 0 {
			return
		}
		for at := s.home(tag); s.places[at] != 0; at = s.after(at) {
			if !yield(at) {
				return
			}
		}
	}
}

// after returns the next index of the table; after the last one it is the first.
func (s *idShard) after(at int) int {
	if at++; at < len(s.places) {
		return at
	}
	return 0
}

// put writes an entry (bits of the hash, and the record's number) at the first free index from its home on, where a search for it begins. The shard must
// have a free index.
func (s *idShard) put(content uint64) {
	at := s.home(content >> seqBits)
	for s.places[at] != 0 {
		at = s.after(at)
	}
	s.places[at] = content
}

// free empties an index. A search ends at an empty one. So free moves a later entry into the hole if a search from that entry's home would end there,
// and goes on with the index that this leaves.
func (s *idShard) free(hole int) {
	for at := s.after(hole); s.places[at] != 0; at = s.after(at) {
		home := s.home(s.places[at] >> seqBits)
		// It is found if its home is behind the hole, seen from there around the end.
		if between := hole < home && home <= at; between || at < hole && (hole < home || home <= at) {
			continue
		}
		s.places[hole] = s.places[at]
		hole = at
	}
	s.places[hole] = 0
}

// grow makes the table a quarter larger, and puts all entries in again.
func (s *idShard) grow() {
	old := s.places
	s.places = make([]uint64, len(old)+len(old)/4+8)
	for _, content := range old {
		if content != 0 {
			s.put(content)
		}
	}
}

package bolt

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// slot is the knowledge of one record in memory: enough to decide a compare-and-set and to choose the
// records to be read by a listing.
type slot struct {
	rev         uint32
	intentSum   uint32 // checksum of its entry in the bucket of intents
	progressSum uint32 // checksum of its entry in the bucket of progress, if progressed
	flags       uint32

	// Of an unfinished record, see dues.go. A final one does not keep them.
	due     int64  // dueAt of its NextAttempt
	until   int64  // dueAt of its SendUntil
	created int64  // dueAt of its Created
	group   uint64 // recordKeys.group of its account and origin
	reason  uint8  // of a held one, see tally.number
}

// packed is the part of a slot kept for every record, in 16 bytes.
type packed struct{ rev, intentSum, progressSum, flags uint32 }

const (
	slotOpen       = 1 << iota // unfinished
	slotGenerated              // its key was generated
	slotSwept                  // a tombstone
	slotChanged                // has an entry in the bucket of progress
	slotOutside                // has bodies in the bucket of bodies
	slotUnreported             // final, and no caller was told
	slotHeld                   // unfinished, and held
	slotForgets                // its key, or its text, is not kept for ever
	slotOwed                   // its end or hold is owed to OnResult

	// The upper bits hold a hash of the unchangeable fields of a record, so a caller's mistake is found
	// without reading.
	slotIdentity = ^uint32(0x1ff)
)

// packed returns the part of the slot (a record's entry in memory) that is kept for every record. The rest is kept for unfinished ones only.
func (s slot) packed() packed { return packed{s.rev, s.intentSum, s.progressSum, s.flags} }

// is reports whether any of these flags of the slot (the small part of a record kept in memory) is set.
func (s slot) is(flag uint32) bool { return s.flags&flag != 0 }

// unresolved reports whether a caller without a key may still have to hear the record's end: its key was generated, and it is unfinished, or no caller was
// told of its end. A query for unresolved records may select it.
func (s slot) unresolved() bool { return s.is(slotGenerated) && s.is(slotOpen|slotUnreported) }

// setState sets the fields of a slot, the record's place in memory, by the record's state, NextAttempt (next) and SendUntil
// (until).
func (s *slot) setState(state persist.State, next, until time.Time) {
	s.mark(slotOpen, !state.Final())
	s.mark(slotHeld, state == persist.StateHeld)
	s.due, s.until = dueAt(next), dueAt(until)
}

// mark sets a flag of the slot (the small part of a record kept in memory), or clears it if on is false.
func (s *slot) mark(flag uint32, on bool) {
	s.flags &^= flag
	if on {
		s.flags |= flag
	}
}

// chunk holds 64 neighbouring slots. Neighbours were begun together, and mostly
// end and are swept together too.
type chunk struct {
	used       uint64 // a bit for each slot with a record
	open       uint64 // of those, the unfinished
	held       uint64 // of the unfinished, the held
	kept       uint64 // of those in use, the tombstones of chosen keys kept for ever as they are
	unresolved uint64 // of those in use, the unresolved
	owed       uint64 // of those in use, those with slotOwed
	dues       dues   // of the unfinished
	ranks      ranks
	slots      [64]packed
}

// slots are all slots, by Seq, and the digest of the records. Not safe
// for concurrent use.
type slots struct {
	chunks map[uint64]*chunk
	order  []uint64 // keys of chunks, removed ones included, ascending once settled
	digest uint64
	count  int
	owed   int // how many have slotOwed
	tally

	settled bool
}

// newSlots returns a set without slots, ready for the loading of a journal (see settle).
func newSlots() *slots { return &slots{chunks: map[uint64]*chunk{}, tally: newTally()} }

// get returns the slot of a record: all that memory has of it. found is false if there is no such record. The upper bits of a Seq choose the chunk, the lower
// six the slot in it. A slot is kept in two parts, one for every record, and one (dues) for unfinished ones, in the order of their bits in open.
func (s *slots) get(seq uint64) (v slot, found bool) {
	c := s.chunks[seq>>6]
	if c == nil || c.used&(1<<(seq&63)) == 0 {
		return slot{}, false
	}
	bit, p := uint64(1)<<(seq&63), c.slots[seq&63]
	v = slot{rev: p.rev, intentSum: p.intentSum, progressSum: p.progressSum, flags: p.flags}
	if c.open&bit != 0 {
		i := bits.OnesCount64(c.open & (bit - 1))
		v.due, v.until, v.group = c.dues.at[i], c.dues.untilOf(i), c.dues.groupOf(i)
		v.created, v.reason = c.dues.created[i], c.dues.reasonOf(i)
	}
	return v, true
}

// set enters or replaces the slot of a record, the small part of it kept in memory, and updates the digest (a sum over all records that finds damage) and the
// counts. While a journal is loaded, the numbers (Seqs) of new records come in any order, and ascend afterwards. A chunk holds 64 slots, with sets of them as
// bits.
func (s *slots) set(seq uint64, v slot) {
	c := s.chunks[seq>>6]
	if c == nil {
		c = &chunk{}
		s.chunks[seq>>6] = c
		s.enter(seq >> 6)
	}
	// The upper bits of a Seq choose the chunk, the lower six the slot in it.
	bit, old := uint64(1)<<(seq&63), &c.slots[seq&63]
	if c.used&bit != 0 {
		s.digest -= old.contribution(seq)
	} else {
		s.count++
	}
	s.tallyUp(seq, &v)
	now := v.packed()
	s.digest += now.contribution(seq)
	*old = now
	c.used |= bit
	c.setDue(bit, v.is(slotOpen), &v)
	c.open = masked(c.open, bit, v.is(slotOpen))
	c.held = masked(c.held, bit, v.is(slotHeld))
	// Tombstones that are kept for ever as they are.
	c.kept = masked(c.kept, bit, v.is(slotSwept) && !v.is(slotGenerated|slotForgets))
	c.unresolved = masked(c.unresolved, bit, v.unresolved())
	s.owe(c, bit, v.is(slotOwed))
	s.rank(c)
}

// owe notes in a chunk (64 neighbouring records) whether a result of the record must still be given to Config.OnResult (is). bit is the record's place in
// the chunk. It also keeps the number of all such records.
func (s *slots) owe(c *chunk, bit uint64, is bool) {
	switch was := c.owed&bit != 0; {
	case is && !was:
		s.owed++
	case was && !is:
		s.owed--
	}
	c.owed = masked(c.owed, bit, is)
}

// enter adds a chunk's number to the order. While a journal is loaded (until settled) the numbers come in the order of the file. Afterwards they ascend,
// except after an undone removal: then the number is still in its place, or gets it back.
func (s *slots) enter(n uint64) {
	if !s.settled || len(s.order) == 0 || s.order[len(s.order)-1] < n {
		s.order = append(s.order, n)
		return
	}
	if i, found := slices.BinarySearch(s.order, n); !found {
		s.order = slices.Insert(s.order, i, n)
	}
}

// settle ends the loading of a journal, where records came in any order: the chunks (64 neighbouring records each) are sorted and ranked. From here on next
// may be called, and each new number (Seq) is greater than all before.
func (s *slots) settle() {
	slices.Sort(s.order)
	s.settled = true
	for _, c := range s.chunks {
		s.rank(c)
	}
}

// remove takes a record out of memory, and out of all sums and orders over the records: the digest that finds damage, the counts, and the heaps by age and due
// time. A chunk (64 neighbouring records) without records goes, too. It does nothing if the record is not there.
func (s *slots) remove(seq uint64) {
	c := s.chunks[seq>>6]
	if c == nil || c.used&(1<<(seq&63)) == 0 {
		return
	}
	s.digest -= c.slots[seq&63].contribution(seq)
	s.count--
	s.tallyUp(seq, &slot{})
	bit := uint64(1) << (seq & 63)
	c.setDue(bit, false, nil)
	s.owe(c, bit, false)
	c.slots[seq&63] = packed{}
	c.used, c.open, c.held, c.kept, c.unresolved = c.used&^bit, c.open&^bit, c.held&^bit, c.kept&^bit, c.unresolved&^bit
	s.rank(c)
	if c.used != 0 {
		return
	}
	delete(s.chunks, seq>>6)
	// Removed chunks stay in the order until they are half of it.
	if len(s.order) > 64 && len(s.order) > 2*len(s.chunks) {
		s.order = slices.DeleteFunc(s.order, func(n uint64) bool { return s.chunks[n] == nil })
	}
}

// which selects the kinds of records for next.
type which struct {
	pending    bool // unfinished, and not held
	held       bool
	final      bool // finished, but for those of kept
	kept       bool // tombstones of chosen keys, kept for ever as they are
	unresolved bool // of all these, the unresolved only
	owed       bool // likewise, those with slotOwed only

	bounded bool  // of the unfinished, only the due ones
	by      int64 // dueAt of the time of this bound
}

// next appends to dst the numbers (Seqs) of the records of the wanted kinds, ascending, without a look at the slots themselves: those after after, up to last,
// until dst is full (its capacity is the wanted number). An empty result means that there are no more.
func (s *slots) next(dst []uint64, after, last uint64, w which) []uint64 {
	from := after + 1
	i, _ := slices.BinarySearch(s.order, from>>6)
	for ; i < len(s.order); i++ {
		n := s.order[i]
		c := s.chunks[n]
		if c == nil {
			continue
		}
		// A bit per record, and no look at the slots themselves.
		left := c.mask(w)
		if n == from>>6 {
			left &= ^uint64(0) << (from & 63)
		}
		for ; left != 0; left &= left - 1 {
			seq := n<<6 | uint64(bits.TrailingZeros64(left))
			if seq > last || len(dst) == cap(dst) {
				return dst
			}
			dst = append(dst, seq)
		}
	}
	return dst
}

// mask returns the slots of a chunk with a record of the wanted kinds, as a set of bits. Kinds by state are added up: kept ones are final, too, but no
// ordinary sweep changes them. unresolved and owed restrict the whole set. bounded restricts the unfinished ones only, to those due by w.by.
func (c *chunk) mask(w which) uint64 {
	m := uint64(0)
	if w.pending {
		m |= c.open &^ c.held
	}
	if w.held {
		m |= c.held
	}
	if w.bounded && m != 0 {
		m &= c.dueBy(w.by)
	}
	if w.final {
		m |= c.used &^ c.open &^ c.kept
	}
	if w.kept {
		m |= c.kept
	}
	if w.unresolved {
		m &= c.unresolved
	}
	if w.owed {
		m &= c.owed
	}
	return m
}

// masked returns the set of bits with one bit set or cleared.
func masked(set, bit uint64, on bool) uint64 {
	if on {
		return set | bit
	}
	return set &^ bit
}

// contribution returns a record's part of the journal's digest, the sum over all records, which finds damage. It is made of the checksums of the record's
// entries: it changes whenever one of them does. The number of the record, with one bit more for which entry it is, keeps equal entries apart. The sum needs
// no order. slotChanged says that the record has a second entry, for its changes.
func (s packed) contribution(seq uint64) uint64 {
	sum := mix(mix(seq<<1) ^ uint64(s.intentSum))
	if s.flags&slotChanged != 0 {
		sum += mix(mix(seq<<1|1) ^ uint64(s.progressSum))
	}
	return sum
}

// contribution returns this record's part of the journal's digest, a sum over all records that finds damage; seq is the record's number.
func (s slot) contribution(seq uint64) uint64 { return s.packed().contribution(seq) }

// pieceContribution returns the part of a piece of a body in the digest of all bodies, which finds damage.
func pieceContribution(key []byte, sum uint32) uint64 {
	at := binary.BigEndian.Uint64(key)
	return mix(mix(mix(at)^uint64(binary.BigEndian.Uint32(key[8:]))) ^ uint64(sum))
}

// mix returns the finalizer of SplitMix64, a bijection: every bit of the input changes half of the output. So a changed number shows in a sum of mixed
// numbers: such a sum is a digest.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

package bolt

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/least"
)

// tally counts the unfinished records.
type tally struct {
	pending int
	held    []int                        // by number of the reason
	reasons []persist.HoldReason         // by number
	numbers map[persist.HoldReason]uint8 // the inverse
	byAge   least.Heap[*chunk]           // chunks with unfinished records, by the earliest Created
	byDue   least.Heap[*chunk]           // chunks with pending records, by the earliest due time
}

// ranks are the places of a chunk in the heaps of tally.
type ranks struct{ age, due int32 }

// otherReasons stands for all reasons without a number of their own. This version knows far fewer reasons.
const otherReasons persist.HoldReason = "other"

// newTally returns an empty tally: the counts of unfinished records by state and by the reason of their hold (a held record waits for a person), and two heaps
// of chunks (64 neighbouring records each), by age and due time. A chunk notes its own places in the heaps (ranks). The reason "" has the number 0, so that a
// record without a hold needs no entry of its own.
func newTally() tally {
	return tally{
		held:    []int{0}, // by the reason "", of no record
		reasons: []persist.HoldReason{""},
		numbers: map[persist.HoldReason]uint8{"": 0},
		byAge:   least.New(func(c *chunk) *int32 { return &c.ranks.age }),
		byDue:   least.New(func(c *chunk) *int32 { return &c.ranks.due }),
	}
}

// number returns the number of a hold's reason, one byte in place of the text: a slot (the small part of a record kept in memory) has room for no more. A
// new reason gets the next number, and is copied. All reasons past the 254th share the number 255, with the name otherReasons.
func (t *tally) number(reason []byte) uint8 {
	if n, known := t.numbers[persist.HoldReason(reason)]; known {
		return n
	}
	name := persist.HoldReason(reason)
	n := len(t.reasons)
	switch {
	case n > math.MaxUint8:
		return math.MaxUint8
	case n == math.MaxUint8:
		name = otherReasons
	}
	t.numbers[name] = uint8(n)
	t.reasons, t.held = append(t.reasons, name), append(t.held, 0)
	return uint8(n)
}

// tallyUp changes the counts by state for a record that is about to get the slot v, its entry in memory. It is called before the slot changes: the
// record is taken out of its old count.
func (s *slots) tallyUp(seq uint64, v *slot) {
	if was, known := s.get(seq); known {
		s.add(&was, -1)
	}
	s.add(v, 1)
}

// add changes the counts of unfinished records by n, for a record with the state and the reason in this slot, its entry in memory. n is -1 if the
// record is removed. Finished records are not counted.
func (t *tally) add(v *slot, n int) {
	switch {
	case v.is(slotHeld):
		t.held[v.reason] += n
	case v.is(slotOpen):
		t.pending += n
	}
}

// rank updates a chunk's places in the two heaps, of the oldest unfinished record and of the earliest due time. A chunk is 64 slots, the small parts of
// records kept in memory. It must be called after each change of a chunk. A chunk without such records is taken out. While the journal is loaded (until
// settled) it does nothing: settle ranks all chunks then.
func (s *slots) rank(c *chunk) {
	switch {
	case !s.settled:
		return
	case c.open == 0:
		s.byAge.Remove(c)
	default:
		s.byAge.Set(c, slices.Min(c.dues.created))
	}
	if c.open == c.held { // none is pending
		s.byDue.Remove(c)
		return
	}
	s.byDue.Set(c, c.firstPending())
}

// firstPending returns the earliest due time among the pending records of a chunk (64 neighbouring records). There must be one. dues has the times of
// pending and held records together, in the order of their bits in open; so those of held ones are left out here.
func (c *chunk) firstPending() int64 {
	if c.held == 0 {
		return c.dues.first
	}
	first, left := int64(math.MaxInt64), c.open
	for _, at := range c.dues.at {
		if c.held&(1<<bits.TrailingZeros64(left)) == 0 {
			first = min(first, at)
		}
		left &= left - 1
	}
	return first
}

// Count implements [persist.Counter]: it returns the numbers of pending and held records and of owed results, the begin of the oldest unfinished record, and
// the next due time. It takes constant time: each change has kept the counts.
func (j *Journal) Count(ctx context.Context) (persist.Counts, error) {
	if err := j.start(ctx); err != nil {
		return persist.Counts{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return persist.Counts{}, err
	}
	t := &j.slots.tally
	c := persist.Counts{Pending: t.pending, Held: map[persist.HoldReason]int{}, Owed: j.slots.owed}
	for i, n := range t.held {
		if n > 0 {
			c.Held[t.reasons[i]] = n
		}
	}
	if _, at, ok := t.byAge.Least(); ok {
		c.Oldest = dueTime(at)
	}
	if _, at, ok := t.byDue.Least(); ok {
		c.NextDue = dueTime(at)
	}
	return c, nil
}

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

// newTally counts nothing yet.
func newTally() tally {
	return tally{
		held:    []int{0}, // by the reason "", of no record
		reasons: []persist.HoldReason{""},
		numbers: map[persist.HoldReason]uint8{"": 0},
		byAge:   least.New(func(c *chunk) *int32 { return &c.ranks.age }),
		byDue:   least.New(func(c *chunk) *int32 { return &c.ranks.due }),
	}
}

// number returns the number of a reason. It copies the reason only if it is a new one.
func (t *tally) number(reason []byte) uint8 {
	if n, known := t.numbers[persist.HoldReason(reason)]; known {
		return n
	}
	name := persist.HoldReason(reason)
	n := len(t.reasons)
	if n == math.MaxUint8 {
		if name = otherReasons; t.reasons[n-1] == name {
			return uint8(n - 1)
		}
	}
	t.numbers[name] = uint8(n)
	t.reasons, t.held = append(t.reasons, name), append(t.held, 0)
	return uint8(n)
}

// tallyUp counts a record as in v from now on. It is called before the slot of the record changes.
func (s *slots) tallyUp(seq uint64, v *slot) {
	if was, known := s.get(seq); known {
		s.add(&was, -1)
	}
	s.add(v, 1)
}

// add adds a number of records as in the slot.
func (t *tally) add(v *slot, n int) {
	switch {
	case v.is(slotHeld):
		t.held[v.reason] += n
	case v.is(slotOpen):
		t.pending += n
	}
}

// rank keeps the places of a chunk in the heaps. While a journal is loaded, there are none.
func (s *slots) rank(c *chunk) {
	switch {
	case !s.settled:
		return
	case c.open == 0:
		s.byAge.Remove(c)
	default:
		s.byAge.Set(c, slices.Min(c.dues.created))
	}
	if c.open == c.held {
		s.byDue.Remove(c)
		return
	}
	s.byDue.Set(c, c.firstPending())
}

// firstPending returns the earliest due time of the chunk's pending records. There is one.
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

// Count implements [persist.Counter], in constant time.
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

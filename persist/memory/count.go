package memory

import (
	"context"
	"maps"
	"math"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/least"
)

// tally counts the unfinished records of a journal.
type tally struct {
	pending int
	held    map[persist.HoldReason]int
	oldest  least.Heap[*entry] // unfinished, by Created
	next    least.Heap[*entry] // pending, by NextAttempt
}

// counted is the part of the tally in an entry.
type counted struct {
	reason       persist.HoldReason // in which it is held
	oldest, next int32              // places in the heaps, which say whether it is counted
}

// newTally returns a tally of no records: counts, and two heaps for the oldest unfinished record and the earliest due time. An entry notes its own places in
// the heaps (counted).
func newTally() tally {
	return tally{
		held:   map[persist.HoldReason]int{},
		oldest: least.New(func(e *entry) *int32 { return &e.counted.oldest }),
		next:   least.New(func(e *entry) *int32 { return &e.counted.next }),
	}
}

// count counts an entry as it is now, in the place of what it was when it was counted before. Final entries are not counted. reason is the reason of a hold.
// counted has the entry's places in the two heaps, oldest and next; zero is none, so an oldest of zero means that it is not counted. The caller holds mu.
func (t *tally) count(e *entry, reason persist.HoldReason) {
	if e.counted.oldest == 0 && e.state.Final() {
		return
	}
	t.leave(e)
	switch e.state {
	case persist.StatePending:
		t.pending++
		t.next.Set(e, ordered(e.nextAttempt))
	case persist.StateHeld:
		t.held[reason]++
		e.counted.reason = reason
	default:
		return
	}
	t.oldest.Set(e, ordered(e.created))
}

// leave removes an entry from the counts by state, as it was counted last. counted has its places in the two heaps (zero: none): a pending entry is in both, a
// held one in oldest only. It does nothing if the entry is not counted.
func (t *tally) leave(e *entry) {
	switch r := e.counted.reason; {
	case e.counted.next != 0:
		t.pending--
		t.next.Remove(e)
	case e.counted.oldest == 0:
		return
	case t.held[r] == 1:
		delete(t.held, r)
	default:
		t.held[r]--
	}
	e.counted.reason = ""
	t.oldest.Remove(e)
}

// ordered returns a time as a number in the same order, for a heap. Times before 1678 are one number, and so are those after 2262.
func ordered(t time.Time) int64 {
	const most = math.MaxInt64 / int64(time.Second)
	switch sec := t.Unix(); {
	case sec >= most:
		return math.MaxInt64
	case sec <= -most:
		return math.MinInt64
	}
	return t.UnixNano()
}

// Count implements [persist.Counter]: it returns the numbers of pending and held records and of owed results, the begin of the oldest unfinished record, and
// the next due time. It takes constant time: each change has kept the counts.
func (j *Journal) Count(ctx context.Context) (persist.Counts, error) {
	if err := ctx.Err(); err != nil {
		return persist.Counts{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.open {
		return persist.Counts{}, errClosed()
	}
	c := persist.Counts{Pending: j.tally.pending, Held: maps.Clone(j.tally.held), Owed: len(j.owed)}
	if e, _, ok := j.tally.oldest.Least(); ok {
		c.Oldest = e.created
	}
	if e, _, ok := j.tally.next.Least(); ok {
		c.NextDue = e.nextAttempt
	}
	return c, nil
}

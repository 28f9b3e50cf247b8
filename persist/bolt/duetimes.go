package bolt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"runtime/debug"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// DueTimes implements [persist.DueTimes]: it returns the first due time of the pending records of each origin, and as Next the first one after q.DueBy, if
// that is set. Memory has due times in groups, the records of one account and origin; turns sums them up. It has no names: sample finds a record of each
// group, and name reads account and origin from it. If these are damaged, DueTimes reads all pending records. Leases mean nothing in a journal of one process.
func (j *Journal) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	if err := j.start(ctx); err != nil {
		return nil, err
	}
	by, after := q.DueBy, int64(math.MaxInt64) // nothing is after this time
	if !by.IsZero() {
		after = dueAt(by)
	}
	q = persist.Query{Account: q.Account, AllAccounts: q.AllAccounts, Origin: q.Origin}
	for {
		turns, err := j.turns(ctx, after)
		if err != nil || len(turns) == 0 {
			return nil, err
		}
		v, again, err := j.sample(turns)
		if again { // a group has lost its records meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		times, ok := v.name(turns, &q)
		v.end()
		if !ok {
			return j.listTimes(ctx, q, by)
		}
		return slices.Collect(maps.Values(times)), nil
	}
}

// turn says when the first pending records of one account and origin are due.
type turn struct {
	group   uint64        // recordKeys.group
	first   int64         // of all
	next    int64         // of those after a time; math.MaxInt64: there are none
	samples []foundRecord // some of them, to read the names from
}

const (
	// samplesMax is the number of records of a turn kept for reading the names, since some may be damaged
	// or forgotten.
	samplesMax = 4
	// turnsStep is how many chunks are looked at in one hold of mu.
	turnsStep = 1024
)

// turns returns the due times of all pending records, summed up for each group. A group is the records of one account and one origin. The turn of a
// group has its first due time and, as next, its first due time later than after. mu is given up between steps, so that other calls go on.
func (j *Journal) turns(ctx context.Context, after int64) ([]*turn, error) {
	ts := turnsOf{after: after, byGroup: map[uint64]*turn{}}
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		j.mu.Lock()
		err := j.usable()
		if err == nil {
			more = j.slots.addTurns(&ts)
		}
		j.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	return ts.all, nil
}

// sample takes the queued changes of the turns' samples and begins the transaction to read them in. A turn sums up the pending records of one account and
// origin; samples are a few of these, of which one is read for its account and origin. again is true if all samples of a turn were forgotten meanwhile: then
// the turns must be made anew.
func (j *Journal) sample(turns []*turn) (v *view, again bool, err error) {
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return nil, false, err
	}
	for _, t := range turns {
		var by *batch // of the Forget under way
		t.samples = slices.DeleteFunc(t.samples, func(f foundRecord) (leaves bool) {
			leaves, by = j.leaves(f.seq)
			return leaves
		})
		switch {
		case len(t.samples) > 0:
		case by != nil:
			_ = j.unlockAndAwait(by)
			return nil, true, nil
		default:
			j.mu.Unlock()
			return nil, true, nil
		}
		for i := range t.samples {
			t.samples[i].overlay = j.overlay(t.samples[i].seq)
		}
	}
	v, err = j.view()
	j.mu.Unlock()
	return v, false, err
}

// leaves reports whether a record is not there any more, or is being removed. In the second case by is the batch (the changes of one commit) with the
// removal, so that the caller can wait for it; else it is nil. The caller holds mu.
func (j *Journal) leaves(seq uint64) (leaves bool, by *batch) {
	if _, found := j.slots.get(seq); !found {
		return true, nil
	}
	if b := j.unsettled(seq); b != nil && b.get(seq).drop {
		return true, b
	}
	return false, nil
}

// turnsOf collects turns, one for each group.
type turnsOf struct {
	after   int64
	from    uint64 // the chunk to go on with
	all     []*turn
	byGroup map[uint64]*turn
	recent  [64]*turn // of groups asked for before, by bits of the group
}

// of returns the sums over the pending records of one account and origin (a group, by its hash), and makes them if they are new. seq is a record of the group:
// a few are kept as samples, from which account and origin are read later. The last groups are found without the map (recent).
func (ts *turnsOf) of(group, seq uint64) *turn {
	// The lowest bit of a group is always 1.
	place := &ts.recent[group>>1%uint64(len(ts.recent))]
	t := *place
	if t == nil || t.group != group {
		t = ts.lookup(group)
		*place = t
	}
	if len(t.samples) < samplesMax {
		t.samples = append(t.samples, foundRecord{seq: seq})
	}
	return t
}

// lookup returns the turn of a group, and makes it if it is new: a turn has the first due times of the pending records of one account and origin. A new one
// has no due time yet (math.MaxInt64).
func (ts *turnsOf) lookup(group uint64) *turn {
	t := ts.byGroup[group]
	if t == nil {
		t = &turn{group: group, first: math.MaxInt64, next: math.MaxInt64}
		ts.byGroup[group] = t
		ts.all = append(ts.all, t)
	}
	return t
}

// addTurns goes through the next chunks of records in memory (64 neighbouring records each). It adds the pending records to ts, which has the first due time
// of each account and origin, and moves ts.from on. It reports whether there are more chunks: the caller gives up mu in between.
func (s *slots) addTurns(ts *turnsOf) (more bool) {
	i, _ := slices.BinarySearch(s.order, ts.from)
	end := min(i+turnsStep, len(s.order))
	for _, n := range s.order[i:end] {
		if c := s.chunks[n]; c != nil && c.open != c.held {
			c.addTurns(ts, n<<6)
		}
		ts.from = n + 1
	}
	return end < len(s.order)
}

// addTurns adds the due times of the pending records of one chunk (64 neighbouring records) to the turns of their groups: a turn has the first due times of
// one account and origin. first is the number (Seq) of the chunk's first record. If all are pending and of one group, they are added at once.
func (c *chunk) addTurns(ts *turnsOf, first uint64) {
	d := &c.dues
	if d.groups == nil && c.held == 0 {
		ts.of(d.group, first+uint64(bits.TrailingZeros64(c.open))).addAll(d, ts.after)
		return
	}
	left := c.open
	for i, at := range d.at {
		place := bits.TrailingZeros64(left)
		left &= left - 1
		if c.held&(1<<place) == 0 {
			ts.of(d.groupOf(i), first+uint64(place)).add(at, ts.after)
		}
	}
}

// add takes the due time of one more pending record into the turn of its group. The turn keeps two times: the first of all, and the first one later than
// after.
func (t *turn) add(at, after int64) {
	t.first = min(t.first, at)
	if at > after {
		t.next = min(t.next, at)
	}
}

// addAll takes the due times of all records of d into the turn of their group. The turn keeps two times: the first of all, and the first one later than after.
// If none of d is due by after, its earliest (d.first) is enough for both.
func (t *turn) addAll(d *dues, after int64) {
	t.add(d.first, after)
	if d.first > after {
		return
	}
	next := t.next
	for _, at := range d.at {
		if at > after && at < next {
			next = at
		}
	}
	t.next = next
}

// originTimes are the results of DueTimes, by origin.
type originTimes map[string]persist.DueTime

// add adds the first due time of a record, or of the records of a turn, to that of its origin. at is the first due time. next is the first one later
// than the time in the question, or zero if there is none.
func (o originTimes) add(origin string, at, next time.Time) {
	due, known := o[origin]
	if !known || at.Before(due.At) {
		due.Origin, due.At = origin, at
	}
	if !next.IsZero() && (due.Next.IsZero() || next.Before(due.Next)) {
		due.Next = next
	}
	o[origin] = due
}

// name reads the account and the origin of each turn from one of its records, and returns the due times of the turns that q selects, by origin. ok is
// false if no sample of a turn can be read.
func (v *view) name(turns []*turn, q *persist.Query) (times originTimes, ok bool) {
	times = originTimes{}
	for _, t := range turns {
		head, err := v.headOf(t.samples)
		if err != nil {
			return nil, false
		}
		if !q.Match(&head) {
			continue
		}
		var next time.Time
		if t.next != math.MaxInt64 {
			next = dueTime(t.next)
		}
		times.add(head.Origin, dueTime(t.first), next)
	}
	return times, true
}

// listTimes returns the result of DueTimes by reading all pending records selected by q. Damaged records are left out. It is the slow way, for questions that
// the index in memory cannot answer. A record due later than by may be the next one after by, too (DueTime.Next); a zero by asks for no such time.
func (j *Journal) listTimes(ctx context.Context, q persist.Query, by time.Time) ([]persist.DueTime, error) {
	times := originTimes{}
	q.States = []persist.State{persist.StatePending}
	for rec, err := range j.List(ctx, q) {
		switch {
		case errors.Is(err, persist.ErrCorrupt):
		case err != nil:
			return nil, err
		case !by.IsZero() && rec.NextAttempt.After(by):
			times.add(rec.Origin, rec.NextAttempt, rec.NextAttempt)
		default:
			times.add(rec.Origin, rec.NextAttempt, time.Time{})
		}
	}
	return slices.Collect(maps.Values(times)), nil
}

// headOf returns the account and the origin of the first readable record among the samples of a group. All samples have the same. The error is that
// of the last one, if all are damaged.
func (v *view) headOf(samples []foundRecord) (head persist.Record, err error) {
	for i := range samples {
		if head, err = v.head(samples[i].seq, &samples[i].overlay); err == nil {
			break
		}
	}
	return head, err
}

// head reads only the account and the origin of a record, from its intent (the record as it was begun). o is its queued change, if it has one. A page of the
// mapped file that cannot be read is a fault of memory: it becomes an error.
// Errors: persist.ErrCorrupt.
func (v *view) head(seq uint64, o *overlay) (head persist.Record, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: record %d: %v", persist.ErrCorrupt, seq, p)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	entry := o.intent
	if entry == nil {
		if entry, err = v.intents.get(seq); err != nil {
			return persist.Record{}, err
		}
	}
	intent, _, _, err := openIntent(entry, seq)
	if err != nil {
		return persist.Record{}, err
	}
	i, err := codec.PeekIntent(intent)
	return persist.Record{ID: persist.ID{Account: string(i.Account)}, Seq: seq, Origin: string(i.Origin)}, err
}

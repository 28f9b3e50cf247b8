package bolt

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// dues are three times of each unfinished record of a chunk, in the order of their Seqs: when it is due,
// when it was created, and until when it may be on its way. Each time takes 8 bytes; a final record takes
// nothing. So a pass over the due records looks at a few numbers for 64 records, and reads only due ones.
type dues struct {
	first   int64    // the earliest of at
	group   uint64   // recordKeys.group of all of them, unless groups is set; zero while it is not known yet
	at      []int64  // by dueAt
	created []int64  // likewise
	until   []int64  // dueAt of each SendUntil; nil while none of them is set
	groups  []uint64 // of each; nil while all are of one group
	reasons []uint8  // slot.reason of each; nil while all are zero
}

// dueAt returns a time as a number, in nanoseconds, with the same order. All times before the year 1678 become one number, and all after 2262 another
// one: no int64 holds them.
func dueAt(t time.Time) int64 {
	const most = math.MaxInt64 / int64(time.Second)
	switch sec := t.Unix(); {
	case sec >= most:
		return math.MaxInt64
	case sec <= -most:
		return math.MinInt64
	}
	return t.UnixNano()
}

// dueTime returns the time for a number that dueAt has made. The earliest number is the zero time.
func dueTime(at int64) time.Time {
	if at == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, at).UTC()
}

// insert enters the due time and the other fields of an unfinished record, as the i-th record of the lists: d.at and those beside it, of the unfinished
// records of a chunk (64 neighbouring records). v is what memory has of the record. A list of values that are nearly always the same, such as groups, exists
// only once one of its values differs.
func (d *dues) insert(i int, v *slot) {
	at, until, group := v.due, v.until, v.group
	if len(d.at) == 0 {
		d.first, d.group = at, group
	}
	d.at = slices.Insert(d.at, i, at)
	d.created = slices.Insert(d.created, i, v.created)
	if d.reasons != nil {
		d.reasons = slices.Insert(d.reasons, i, 0)
	}
	d.setReason(i, v.reason)
	if d.until != nil {
		d.until = slices.Insert(d.until, i, until)
	}
	d.setUntil(i, until)
	d.first = min(d.first, at)
	if d.groups != nil {
		d.groups = slices.Insert(d.groups, i, group)
		return
	}
	d.assign(i, group)
}

// replace sets the due time and the other fields of the i-th unfinished record of a chunk (64 neighbouring records) from v, its slot in memory, after a change
// of that record. groups exists only if the records have different groups, hashes of account and origin.
func (d *dues) replace(i int, v *slot) {
	was, at, group := d.at[i], v.due, v.group
	d.at[i], d.created[i] = at, v.created
	d.setReason(i, v.reason)
	d.setUntil(i, v.until)
	d.changed(was, at)
	if d.groups != nil {
		d.groups[i] = group
		return
	}
	d.assign(i, group)
}

// noTime is dueAt of the zero time.
const noTime = math.MinInt64

// setUntil sets the SendUntil of the i-th record: the time until which a send may still be under way. The list is made when the first record has such
// a time.
func (d *dues) setUntil(i int, until int64) {
	if d.until == nil {
		if until == noTime {
			return
		}
		d.until = slices.Repeat([]int64{noTime}, len(d.at))
	}
	d.until[i] = until
}

// untilOf returns the SendUntil of the i-th record (until when a send may be under way), as a number made by dueAt; noTime if no record of the chunk has
// one.
func (d *dues) untilOf(i int) int64 {
	if d.until == nil {
		return noTime
	}
	return d.until[i]
}

// setReason sets the number that stands for the reason of the i-th record's hold (a held record waits for a person); 0: it is not held. The list is made
// when the first record is held.
func (d *dues) setReason(i int, reason uint8) {
	if d.reasons == nil {
		if reason == 0 {
			return
		}
		d.reasons = make([]uint8, len(d.at))
	}
	d.reasons[i] = reason
}

// reasonOf returns the number that stands for the reason of the i-th record's hold (a held record waits for a person); 0 if it is not held.
func (d *dues) reasonOf(i int) uint8 {
	if d.reasons == nil {
		return 0
	}
	return d.reasons[i]
}

// assign sets the group of the i-th record (a hash of its account and origin), if all records had one group until now. Zero means unknown, and is set later:
// a journal is loaded in two passes, and only the second knows the groups.
func (d *dues) assign(i int, group uint64) {
	switch {
	case d.group == 0:
		d.group = group
	case group != 0 && group != d.group:
		d.groups = slices.Repeat([]uint64{d.group}, len(d.at))
		d.groups[i] = group
	}
}

// remove takes the i-th record out of the lists. others reports whether further records are expected; then the memory of the emptied lists is kept, but for
// lists that few chunks have (reasons, groups).
func (d *dues) remove(i int, others bool) {
	was := d.at[i]
	d.at, d.created = slices.Delete(d.at, i, i+1), slices.Delete(d.created, i, i+1)
	if d.reasons != nil {
		d.reasons = slices.Delete(d.reasons, i, i+1)
	}
	if d.until != nil {
		d.until = slices.Delete(d.until, i, i+1)
	}
	if d.groups != nil {
		d.groups = slices.Delete(d.groups, i, i+1)
	}
	switch {
	case len(d.at) > 0:
		d.changed(was, math.MaxInt64) // nothing takes its place
	case others:
		*d = dues{at: d.at, created: d.created, until: d.until}
	default:
		*d = dues{}
	}
}

// changed updates first, the earliest due time, after one due time in the list has changed from was to at. The list has the new value already. Only if the
// earliest was moved to a later time is the list searched.
func (d *dues) changed(was, at int64) {
	if at <= d.first {
		d.first = at
	} else if was == d.first {
		d.first = slices.Min(d.at)
	}
}

// groupOf returns the group of the i-th record: a hash of its account and origin.
func (d *dues) groupOf(i int) uint64 {
	if d.groups == nil {
		return d.group
	}
	return d.groups[i]
}

// setDue enters the due time of a record in its chunk (64 neighbouring records), or takes it out if the record is not unfinished (open) any more. bit is the
// record's place in the chunk, and v what memory has of it. It is called before c.open is set.
func (c *chunk) setDue(bit uint64, open bool, v *slot) {
	i, known := bits.OnesCount64(c.open&(bit-1)), c.open&bit != 0
	switch {
	case open && known:
		c.dues.replace(i, v)
	case open:
		c.dues.insert(i, v)
	case known:
		c.dues.remove(i, c.used>>63 == 0) // Seqs ascend: others come until the last place is taken
	}
}

// dueBy returns the unfinished records of a chunk (64 neighbouring records) that are due by a time, as a set: bit i is the i-th record of the chunk. dues.at
// has the due times of the records in open, in the order of their bits.
func (c *chunk) dueBy(by int64) (due uint64) {
	if c.open == 0 || c.dues.first > by {
		return 0
	}
	left := c.open
	for _, at := range c.dues.at {
		if at <= by {
			due |= left & -left
		}
		left &= left - 1
	}
	return due
}

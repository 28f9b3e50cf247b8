package bolt

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// dues say when the unfinished records of a chunk are due, and until when they may be on their way, in the order of their Seqs:
// 8 bytes for each of the two, and nothing for a record that is final. So a pass over what is due
// looks at a few numbers for 64 records, and reads none that is not due.
type dues struct {
	first  int64    // the earliest of at
	group  uint64   // recordKeys.group of all of them, unless groups is set; zero while it is not known yet
	at     []int64  // by dueAt
	until  []int64  // dueAt of each SendUntil; nil while none of them is set
	groups []uint64 // of each; nil while all are of one group
}

// dueAt is a time as the index has it, in nanoseconds. It keeps the order of times. Only those before the year 1678
// and after 2262 are not told apart: no int64 holds them.
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

// dueTime is the inverse of dueAt: the earliest number is the zero time.
func dueTime(at int64) time.Time {
	if at == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, at).UTC()
}

// insert enters a record as the i-th.
func (d *dues) insert(i int, at, until int64, group uint64) {
	if len(d.at) == 0 {
		d.first, d.group = at, group
	}
	d.at = slices.Insert(d.at, i, at)
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

// replace changes the i-th record.
func (d *dues) replace(i int, at, until int64, group uint64) {
	was := d.at[i]
	d.at[i] = at
	d.setUntil(i, until)
	d.changed(was, at)
	if d.groups != nil {
		d.groups[i] = group
		return
	}
	d.assign(i, group)
}

// noTime is dueAt of the zero time.
const noTime = math.MinInt64

// setUntil sets the SendUntil of the i-th record.
func (d *dues) setUntil(i int, until int64) {
	if d.until == nil {
		if until == noTime {
			return
		}
		d.until = slices.Repeat([]int64{noTime}, len(d.at))
	}
	d.until[i] = until
}

// untilOf is the SendUntil of the i-th record, by dueAt.
func (d *dues) untilOf(i int) int64 {
	if d.until == nil {
		return noTime
	}
	return d.until[i]
}

// assign sets the group of the i-th record where all had one until now. A zero is set
// once it is known: a journal is loaded in two passes, and only the second knows groups.
func (d *dues) assign(i int, group uint64) {
	switch {
	case d.group == 0:
		d.group = group
	case group != 0 && group != d.group:
		d.groups = slices.Repeat([]uint64{d.group}, len(d.at))
		d.groups[i] = group
	}
}

// remove takes the i-th record out. The memory is kept if others may follow.
func (d *dues) remove(i int, others bool) {
	was := d.at[i]
	d.at = slices.Delete(d.at, i, i+1)
	if d.until != nil {
		d.until = slices.Delete(d.until, i, i+1)
	}
	if d.groups != nil {
		d.groups = slices.Delete(d.groups, i, i+1)
	}
	switch {
	case len(d.at) > 0:
		d.changed(was, math.MaxInt64)
	case others:
		*d = dues{at: d.at, until: d.until}
	default:
		*d = dues{}
	}
}

// changed keeps first true, after one of the numbers was replaced.
func (d *dues) changed(was, at int64) {
	if at <= d.first {
		d.first = at
	} else if was == d.first {
		d.first = slices.Min(d.at)
	}
}

// groupOf is the group of the i-th record.
func (d *dues) groupOf(i int) uint64 {
	if d.groups == nil {
		return d.group
	}
	return d.groups[i]
}

// setDue enters when a record is due, or takes that out if it is not open any more. It
// is called before c.open is set; bit is that of the record.
func (c *chunk) setDue(bit uint64, open bool, v *slot) {
	i, known := bits.OnesCount64(c.open&(bit-1)), c.open&bit != 0
	switch {
	case open && known:
		c.dues.replace(i, v.due, v.until, v.group)
	case open:
		c.dues.insert(i, v.due, v.until, v.group)
	case known:
		c.dues.remove(i, c.used>>63 == 0) // Seqs ascend: others come until the last place is taken
	}
}

// dueBy is which of the chunk's unfinished records are due by a time.
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

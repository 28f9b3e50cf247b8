package sqljournal

import (
	"math"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// The times in a column lie between these two values. They stand for all earlier and all later times; such a time is
// exact in the encoded parts.
const (
	tooEarly = 1
	tooLate  = math.MaxInt64
)

// orNull returns nil, the database's null, for an empty value. So the column does not tell an empty body from an absent one; the encoded record does.
func orNull(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	return body
}

// flag returns a truth value as the columns have it: 1 or 0.
func flag(on bool) int64 {
	if on {
		return 1
	}
	return 0
}

// nanoseconds returns a time as the columns have it, in nanoseconds since 1970: 0 for no time, and for a time out of range tooEarly or tooLate, which stand for
// all such times. Times before 1970 are out of range.
func nanoseconds(t time.Time) int64 {
	switch sec := t.Unix(); {
	case t.IsZero():
		return 0
	case sec < 0:
		return tooEarly
	case sec >= tooLate/int64(time.Second):
		return tooLate
	}
	return max(t.UnixNano(), tooEarly)
}

// sweepAt returns the value of the column sweep_at: the time from which a sweep may change the record; 0 for an unfinished one, and tooLate if no sweep
// will. While the end of the record is owed to OnResult (not handed over yet), this is the time after the delivery, negated: such a row is not in the range
// of a sweep, and the mark of the delivery needs no other data to put it there.
func sweepAt(rec *persist.Record) int64 {
	delivered := *rec
	delivered.OwedFrom = time.Time{} // a record whose end is owed has no time of a sweep
	at, ever := delivered.SweepAt()
	n := nanoseconds(at)
	switch {
	case !rec.State.Final():
		return 0
	case !ever:
		n = tooLate
	}
	if rec.Owed() {
		return -n
	}
	return n
}

// inRange reports whether a column holds the time exactly, and not the nearest possible value.
func inRange(column int64) bool { return column != tooEarly && column != tooLate }

// instant returns the time of a column's value: the inverse of nanoseconds, for times in range.
func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

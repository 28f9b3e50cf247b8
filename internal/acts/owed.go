package acts

import (
	"reflect"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file decides who hands a result to OnResult, and who is told of an end.

// IsReserved reports whether only the writer of a record's state may hand it to OnResult now: until from. earlier is the same time of the state
// before. If both are equal, the state before is still under delivery, and nothing is reserved. (Invariant 53.)
func IsReserved(from, earlier, now time.Time) bool { return from.After(now) && !from.Equal(earlier) }

// Handing is the next step of a process with an owed result.
type Handing uint8

// The handings. The zero value is the cautious one.
const (
	HandsLater Handing = iota // nothing now: another process may hand it over
	TakesFirst                // it takes the result from the other processes, and then hands it over
	HandsOwn                  // it hands the result over: no other process does meanwhile
)

// HandsOver returns the next step of this process with a result that is owed to OnResult. own: this process has reserved it, and the record has not changed
// since; takes is the longest time of a call of OnResult. A reservation that ends sooner is of no use. (Invariant 53.)
func HandsOver(o *operation.Op, own bool, takes time.Duration, now time.Time) Handing {
	switch {
	case own && !o.OwedFrom.Before(now.Add(takes)):
		return HandsOwn
	case !own && o.OwedFrom.After(now):
		return HandsLater
	}
	return TakesFirst
}

// OnlyDelivered reports whether now differs from read, the same record before, only by a delivery to OnResult. A person's act decided on read is still written
// then. (Invariants 31 and 53.)
func OnlyDelivered(read, now *persist.Record) bool {
	as := *read
	as.Revision, as.OwedFrom = now.Revision, now.OwedFrom
	return read.Results && reflect.DeepEqual(as, *now)
}

// Withholds reports whether a caller does not get its result, since the journal has not taken the note that this caller was told: an error (not answered), and
// an answer that refuses. No success is withheld: nobody begins a success once more. (Invariants 5 and 55.)
func Withholds(answered, refused bool) bool { return !answered || refused }

package intent

import (
	"cmp"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides, for a new operation, how long its key is kept after its end. The rules of a sweep are in package persist.

// Keeping holds the times after an end for the answer, the key and the text of the key, as in a record: for key and text zero is for
// ever, and a negative time no longer than the answer.
type Keeping struct{ Answer, Key, Text time.Duration }

// Within returns the times of a new operation; k has those of its client's Config. An Answer of zero is kept for the window, and without a window for no time
// (-1). No key and no text goes within the window: the API still knows the key. Nor does a key go before waits, the time for the first send of an enqueued
// operation: a later generation of the key may have been begun beside the operation. It waits no longer, and finds the end of this one before its first send.
// (Invariants 1, 34 and 54.)
func (k Keeping) Within(window, waits time.Duration) Keeping {
	k.Answer = cmp.Or(k.Answer, window, -1)
	k.Key, k.Text = noLess(k.Key, k.Answer, max(window, waits)), noLess(k.Text, k.Answer, window)
	return k
}

// noLess returns keep, a keeping time, but at least least. Zero, for ever, stays. A negative one means as long as the answer, and stays if that is long enough.
// (Invariant 34.)
func noLess(keep, answer, least time.Duration) time.Duration {
	if keep > 0 || keep < 0 && answer < least {
		return max(keep, least)
	}
	return keep
}

// KeysPlace holds the facts of the place of a new operation behind the time for its key.
type KeysPlace struct {
	Key  string
	Base bool // the first place of its account
	// Scoped: its request names an account by a header
	Scoped bool
	// Replaced is the operation replaced by it; nil: none
	Replaced *persist.Record
}

// KeepsKey returns the keeping time of the key of a new operation; keep is the time by Keeping. Kept for ever is
//   - a later generation: the placeholders below it are, and tell of it;
//   - the first place of an account, if the request names one by a header: it is never free while a second place stands beside it;
//   - the successor of an operation kept for ever: a repeat of the act finds it for as long.
//
// (Invariants 1, 34, 38 and 54.)
func (p KeysPlace) KeepsKey(keep time.Duration) time.Duration {
	_, n := Generations(p.Key)
	if n > 1 || p.Base && p.Scoped || p.Replaced != nil && p.Replaced.KeepKey == 0 {
		return 0
	}
	return keep
}

// Linked returns the record of an operation with the name of its successor, begun by a person's act under the key by. The record is kept for ever
// then: before a send of the successor, its end must be found. (Invariants 34 and 54.)
func Linked(old persist.Record, by string) persist.Record {
	old.ReplacedBy, old.KeepKey = by, 0
	return old
}

// Unlinked returns the record without the key of a successor, since the act behind it has begun nothing. The record stays kept for ever. (Invariant
// 54.)
func Unlinked(old persist.Record) persist.Record {
	old.ReplacedBy = ""
	return old
}

package operation

import (
	"bytes"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides which operations are of one intent: the generations of one key, and what a Redrive or a Rekey has begun in the place of another one.

// IntentMax bounds the operations of one intent. Where more stand in the journal, none is begun, sent or erased. (Invariant 54.)
const IntentMax = 64

// Relative is a possible operation of the same intent as another one.
type Relative struct {
	Key   string
	Named bool // the record of the other one names it; else it is a generation of the other's key
}

// Elders returns the possible operations before that of a record: the one that it replaces, and the generations below its key. (Invariant 54.)
func Elders(rec *persist.Record) (all []Relative) {
	if rec.Replaces != "" && !rec.Erased { // else it is a digest
		all = append(all, Relative{Key: rec.Replaces, Named: true})
	}
	for _, key := range GenerationsBelow(rec) {
		all = append(all, Relative{Key: key})
	}
	return all
}

// Family returns the possible operations of the same intent as that of a record, before and after it. (Invariant 57.)
func Family(rec *persist.Record) (all []Relative) {
	if rec.ReplacedBy != "" && !rec.Erased {
		all = append(all, Relative{Key: rec.ReplacedBy, Named: true})
	}
	all = append(all, Elders(rec)...)
	if rec.KeyOfOneCall() {
		return all
	}
	for _, key := range GenerationsAbove(rec.Key, false) {
		all = append(all, Relative{Key: key})
	}
	return all
}

// SameBytes reports whether two records have the same request, and no scopes against that. (Invariants 38 and 54.)
func SameBytes(a, b *persist.Record) bool {
	return bytes.Equal(a.Fingerprint, b.Fingerprint) && !OtherScope(a.Scopes, b)
}

// IsSuccessor reports whether next was begun in the place of old by a Redrive or a Rekey, with the same request. (Invariant 54.)
func IsSuccessor(old, next *persist.Record) bool {
	return next.Replaces == old.Key && SameBytes(old, next)
}

// IsLinked reports whether one of two records, of the same request, names the other. (Invariant 57.)
func IsLinked(a, b *persist.Record) bool {
	return (b.Replaces == a.Key || b.ReplacedBy == a.Key) && SameBytes(a, b)
}

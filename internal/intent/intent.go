// Package intent decides about the operations of one intent: their keys, their places, and the one in the way of another. A request with one effect may have
// several operations, one after the other. It has no I/O, no clock and no context, like package operation.
//
// Read intent.go (the generations of one key, and successors by a person's act), place.go (scopes, and the place of a begin), begin.go (a call without a begun
// operation), successor.go (the operation in another one's place), placeholder.go (the generations below a sent one) and keep.go (for how long a key is kept).
// The numbers are the invariants of docs/invariants.md.
package intent

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// IntentMax bounds the operations of one intent. With more in the journal, none is begun, sent or erased. (Invariant 54.)
const IntentMax = 64

// Relative is a possible operation of the same intent as another one.
type Relative struct {
	Key   string
	Named bool // the record of the other one names it; else it is a generation of the other's key
}

// Elders returns the operations that may have been tried before that of a record, for the same effect: the one it replaces, and the generations below its key
// (KEY and KEY:gen=2 below KEY:gen=3). (Invariant 54.)
func Elders(rec *persist.Record) (all []Relative) {
	if rec.Replaces != "" && !rec.Erased { // else it is a digest
		all = append(all, Relative{Key: rec.Replaces, Named: true})
	}
	for _, key := range GenerationsBelow(rec) {
		all = append(all, Relative{Key: key})
	}
	return all
}

// Family returns the operations that may have been tried for the same effect as that of a record, before and after it: named by the record, or generations of
// its key (KEY:gen=2). (Invariant 57.)
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

// SameBytes reports whether two records have the same request, and do not differ in their scopes (such as an account in a header). (Invariants 38 and 54.)
func SameBytes(a, b *persist.Record) bool {
	return bytes.Equal(a.Fingerprint, b.Fingerprint) && !OtherScope(a.Scopes, b)
}

// IsSuccessor reports whether next stands in the place of old: a Redrive or a Rekey began it with the same request, or old is a placeholder, written below a
// later generation of its key to keep its key unused. (Invariant 54.)
func IsSuccessor(old, next *persist.Record) bool {
	if IsSkipped(old) {
		return !OtherScope(old.Scopes, next)
	}
	return next.Replaces == old.Key && SameBytes(old, next)
}

// IsLinked reports whether b, found under a key that a names, is the operation meant: it names a in its turn, and has the same request. The name in a alone is
// no proof: another account may have the key, too. (Invariant 57.)
func IsLinked(a, b *persist.Record) bool {
	return (b.Replaces == a.Key || b.ReplacedBy == a.Key) && SameBytes(a, b)
}

// generationMark spells a generation in a key: KEY, KEY:gen=2, KEY:gen=3. The generations of one key are tries of one intent.
const generationMark = ":gen="

// Generation returns the key of the n-th try: KEY:gen=n for key KEY. Below 2, and for an empty key, it is key itself. (Invariant 54.)
func Generation(key string, n int) string {
	if key == "" || n < 2 {
		return key
	}
	return key + generationMark + strconv.Itoa(n)
}

// Generations takes a key such as KEY:gen=3 apart: first is the key of the first try, KEY, and n the number of this one, 3; 1 for a key without a number.
// (Invariant 54.)
func Generations(key string) (first string, n int) {
	at := strings.LastIndex(key, generationMark)
	if at == -1 {
		return key, 1
	}
	if n, _ := strconv.Atoi(key[at+len(generationMark):]); key == Generation(key[:at], n) { // no other spelling of the number, and none below 2
		return key[:at], n
	}
	return key, 1
}

// NextGeneration returns the key of the try after key: KEY:gen=2 after KEY, KEY:gen=3 after that. (Invariant 54.)
func NextGeneration(key string) string {
	first, n := Generations(key)
	return Generation(first, n+1)
}

// Bounds for the generations of a key. Each of them takes a look into the journal.
const (
	// GenerationsMax bounds the looks for generations below a key. After more tries there is an error. (Invariant 54.)
	GenerationsMax = 64
	// GenerationsAboveMax bounds those above a key. Most of them do not exist, and each look takes its time. (Invariant 54.)
	GenerationsAboveMax = 16
	// generationsUntold is GenerationsAboveMax for a key of whose end nobody was told: no program counts on from there.
	generationsUntold = 5
)

// GenerationsBelow returns the keys of the tries before that of a record (KEY:gen=2 and KEY below KEY:gen=3), the nearest first, at most GenerationsMax. A key
// generated for one call has none. (Invariant 54.)
func GenerationsBelow(rec *persist.Record) (keys []string) {
	first, n := Generations(rec.Key)
	if rec.KeyOfOneCall() {
		return nil
	}
	for i := range min(n-1, GenerationsMax) {
		keys = append(keys, Generation(first, n-1-i))
	}
	return keys
}

// GenerationsAbove returns the keys of possible tries after key (KEY:gen=2 and so on), the nearest first, at most GenerationsAboveMax. untold: fewer, since
// nobody was told of the end of key's operation, and so no program counts on. (Invariant 54.)
func GenerationsAbove(key string, untold bool) (keys []string) {
	first, n := Generations(key)
	number := GenerationsAboveMax
	if untold {
		number = generationsUntold
	}
	for i := range number {
		keys = append(keys, Generation(first, n+1+i))
	}
	return keys
}

// LedTo reports whether an operation replaced by the key replacedBy may have led to one of keys: by later tries, so that both are of one first key (KEY:gen=2
// and KEY:gen=3), and replacedBy is not the later one. (Invariant 54.)
func LedTo(replacedBy string, keys []string) bool {
	other, m := Generations(replacedBy)
	return slices.ContainsFunc(keys, func(key string) bool {
		first, n := Generations(key)
		return other == first && m <= n
	})
}

// ErasedLedTo reports whether an erased operation may have led to one of keys by later tries, as LedTo does. replacedBy is a digest of the key that replaced
// it; digest returns that of a key. Only the nearest GenerationsMax of each key are compared. (Invariants 54 and 57.)
func ErasedLedTo(replacedBy string, keys []string, digest func(key string) string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		first, n := Generations(key)
		for g := n; g >= max(1, n-GenerationsMax); g-- {
			if digest(Generation(first, g)) == replacedBy {
				return true
			}
		}
		return false
	})
}

package operation

import (
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the spelling of a generation in a key: KEY, KEY:gen=2, KEY:gen=3. The generations of one key are tries of one intent.

const generationMark = ":gen="

// Generation returns the key of the n-th try of key; below 2 key itself. (Invariant 54.)
func Generation(key string, n int) string {
	if key == "" || n < 2 {
		return key
	}
	return key + generationMark + strconv.Itoa(n)
}

// Generations returns the key of the first try, and the number of this one. (Invariant 54.)
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

// NextGeneration returns the key of the try after key.
func NextGeneration(key string) string {
	first, n := Generations(key)
	return Generation(first, n+1)
}

// Numbers of generations that are looked for, each with a look into the journal.
const (
	// GenerationsMax bounds the generations below a key that are looked for. Whoever tries anew more often gets an error. (Invariant 54.)
	GenerationsMax = 64
	// GenerationsAboveMax bounds those above a key. Most of them do not exist, and each look takes its time. (Invariant 54.)
	GenerationsAboveMax = 16
	// generationsUntold is GenerationsAboveMax for a key of whose end nobody was told: no program counts on from there.
	generationsUntold = 5
)

// GenerationsBelow returns the keys of the tries before that of a record, the nearest first, at most GenerationsMax. A key that was generated for one call
// has none. (Invariant 54.)
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

// GenerationsAbove returns the keys of the tries after key, the nearest first, at most GenerationsAboveMax. untold: fewer, since nobody was told of the end of key's
// operation. (Invariant 54.)
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

// LedTo reports whether an operation in whose place replacedBy was begun may have led to key: replacedBy is a generation of the same first key, and none
// above key. (Invariant 54.)
func LedTo(replacedBy, key string) bool {
	first, n := Generations(key)
	other, m := Generations(replacedBy)
	return other == first && m <= n
}

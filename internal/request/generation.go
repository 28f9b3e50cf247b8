package request

import (
	"strconv"
	"strings"
)

const generationMark = ":gen="

// Generation returns the key of the n-th try of something whose earlier keys were refused for good; for an n below 2 it is key itself.
func Generation(key string, n int) string {
	if key == "" || n < 2 {
		return key
	}
	return key + generationMark + strconv.Itoa(n)
}

// Generations is the inverse of Generation: it returns the key of the first try, and the number of the try that has this key.
func Generations(key string) (first string, n int) {
	if at := strings.LastIndex(key, generationMark); at > 0 {
		if n, err := strconv.Atoi(key[at+len(generationMark):]); err == nil && n >= 2 && key == Generation(key[:at], n) {
			return key[:at], n
		}
	}
	return key, 1
}

// LedTo reports whether an operation that was replaced by another one may have led to key: the other one is a generation of the same first key, and none
// above key.
func LedTo(replacedBy, key string) bool {
	first, n := Generations(key)
	other, m := Generations(replacedBy)
	return other == first && m <= n
}

// NextGeneration returns the key of the try after key.
func NextGeneration(key string) string {
	first, n := Generations(key)
	return Generation(first, n+1)
}

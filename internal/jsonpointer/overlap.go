package jsonpointer

import (
	"strconv"
	"strings"
)

// Overlap reports whether one of two values is the other, or a part of it.
func Overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// OverlapInItem reports whether the value at pointer is in an item of a list, and overlaps with the one at d of that item.
func OverlapInItem(d, pointer string, isList func(string) bool) bool {
	for i := range pointer {
		index, rest, more := strings.Cut(pointer[i+1:], "/")
		if _, err := strconv.Atoi(index); pointer[i] == '/' && more && err == nil && isList(pointer[:i]) && Overlap(d, "/"+rest) {
			return true
		}
	}
	return false
}

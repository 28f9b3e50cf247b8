package jsonpointer

import (
	"strconv"
	"strings"
)

// Overlap reports whether, of the values at the JSON pointers a and b, one is the other or a part of it: /a and /a/b, but not /a and /ab.
func Overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// OverlapInItem reports whether the value at pointer is in an item of a list, and overlaps with the value at d in that item: /list/0/name with d /name.
// d is a pointer from the item on. isList tells whether the value at a pointer is such a list.
func OverlapInItem(d, pointer string, isList func(string) bool) bool {
	for i := range pointer {
		index, rest, more := strings.Cut(pointer[i+1:], "/")
		if _, err := strconv.Atoi(index); pointer[i] == '/' && more && err == nil && isList(pointer[:i]) && Overlap(d, "/"+rest) {
			return true
		}
	}
	return false
}

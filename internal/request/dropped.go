package request

import (
	"fmt"
	"slices"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist"
)

// The bounds of the members of answers that one client does not keep. The answer in a record has the names of three clients at most: of one
// that began the operation, of one that held it, and of one that ended it.
const (
	dropPointersMax      = persist.DropAnswerMax
	dropPointersBytesMax = persist.DropAnswerBytesMax
)

// CheckDropped checks Config.DropAnswer, the JSON pointers to the members of answers that no record keeps.
func CheckDropped(pointers []string) error {
	size := 0
	for i, p := range pointers {
		size += len(p)
		if err := jsonpointer.Check(p); err != nil {
			return err
		}
		if slices.Contains(pointers[:i], p) {
			return fmt.Errorf("%q is there twice", p)
		}
	}
	if len(pointers) > dropPointersMax || size > dropPointersBytesMax {
		return fmt.Errorf("%d pointers of %d bytes; want at most %d, of %d bytes in all", len(pointers), size, dropPointersMax, dropPointersBytesMax)
	}
	return nil
}

// LeavesOut reports whether an answer without the value at the pointer out lacks the one at pointer, or a part of it. isList reports whether the
// values were taken out of each item of the list at a pointer, too.
func LeavesOut(out, pointer string, isList func(string) bool) bool {
	return jsonpointer.Overlap(out, pointer) || jsonpointer.OverlapInItem(out, pointer, isList)
}

// WithoutMembers returns the text of an answer without the values at the pointers, which have passed CheckDropped, and the pointers of those
// that were there. They lead from the text, and from each item of the list at the pointer list, if that is not empty. It is an error if the
// text is not one JSON value.
func WithoutMembers(text []byte, pointers []string, list string) (rest []byte, removed []string, err error) {
	return jsonpointer.Remove(text, pointers, list)
}

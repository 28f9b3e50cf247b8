package session

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// KeyPatterns are patterns of keys, as path.Match takes them; none selects every key.
type KeyPatterns []string

// Check returns an error for a text that cannot be a pattern of keys, such as the URL of a journal. That may hold a password, and is not repeated whole.
func (p KeyPatterns) Check() error {
	for _, glob := range p {
		if scheme, _, isURL := strings.Cut(glob, "://"); isURL && place.Engines()[scheme].Open != nil { // it may hold a password
			return fmt.Errorf("%s://… is a journal, and a key is wanted here; say --journal", scheme)
		}
		if _, err := path.Match(glob, ""); err != nil {
			return fmt.Errorf("%q is no pattern of keys: *, ? and [a-z] stand for characters", words.Clip(glob))
		}
	}
	return nil
}

// Match reports whether a key is selected by one of the patterns; without patterns every key is. A person may leave out the first word of generated keys, add @SEEN
// (a digest of the record) as a listing prints it, and write percent-encoded characters as they are.
func (p KeyPatterns) Match(of string) bool {
	return len(p) == 0 || slices.ContainsFunc(p, func(glob string) bool {
		hit, _ := path.Match(glob, of)
		key, _ := SplitSeen(glob)
		return hit || words.MeansKey(glob, of) || words.MeansKey(key, of) || slices.ContainsFunc(words.KeySpellings(of), func(spelling string) bool {
			hit, _ := path.Match(glob, spelling)
			return hit
		})
	})
}

package classify

import (
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/profile"
)

// reader is an answer. Its body is decoded as JSON when a matcher first asks for it.
type reader struct {
	Answer
	facts    Facts
	decoded  bool
	document any // nil if the body is no JSON
}

// match is the three-valued result of a matcher.
type match uint8

const (
	miss       match = iota
	hit              // every condition holds
	unreadable       // the deciding body is too large to be kept, or has an unknown coding
)

// matchAny compares the answer with several matchers of a profile. It returns hit if one of them hits, else unreadable if one could not be decided
// since the body was not kept whole, else miss.
func (r *reader) matchAny(list []profile.Matcher) match {
	result := miss
	for i := range list {
		switch r.match(&list[i]) {
		case hit:
			return hit
		case unreadable:
			result = unreadable
		}
	}
	return result
}

// match compares the answer with one matcher of a profile: all of its conditions must hold. The body comes last: only it can be unreadable, if it was
// not kept whole.
func (r *reader) match(m *profile.Matcher) match {
	switch {
	case len(m.Status) > 0 && !slices.Contains(m.Status, r.Status):
		return miss
	case m.Header != "" && !hasWord(r.Header.Values(m.Header), m.Has):
		return miss
	case m.Pointer == "":
		return hit
	case !r.Whole:
		return unreadable
	}
	text, found := jsonpointer.Text(r.json(), m.Pointer)
	if !found || (len(m.Equals) > 0 && !slices.Contains(m.Equals, text)) {
		return miss
	}
	return hit
}

// json returns the body decoded as JSON; nil if it is none. The body is decoded once.
func (r *reader) json() any {
	if !r.decoded {
		r.document, r.decoded = jsonpointer.Decode(r.Body), true
	}
	return r.document
}

// hasWord reports whether one of the words is in a value as a whole word, as profile.Matcher defines it.
// Without words it reports whether there is a value at all.
func hasWord(values, words []string) bool {
	if len(words) == 0 {
		return len(values) > 0
	}
	notWord := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./+", r))
	}
	for _, value := range values {
		for _, field := range strings.FieldsFunc(value, notWord) {
			if slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(field, w) }) {
				return true
			}
		}
	}
	return false
}

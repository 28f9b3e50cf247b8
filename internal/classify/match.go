package classify

import (
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/profile"
)

// content is an answer to be compared with a profile. Its body is decoded as JSON when a matcher first asks for it.
type content struct {
	Answer
	decoded  bool
	document any // nil if the body is no JSON
}

// reader is an answer to an operation of which these facts are known.
type reader struct {
	answer content
	facts  Facts
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
func (c *content) matchAny(list []profile.Matcher) match {
	result := miss
	for i := range list {
		switch c.match(&list[i]) {
		case hit:
			return hit
		case unreadable:
			result = unreadable
		}
	}
	return result
}

// match compares the answer with one matcher of a profile. It returns hit if all conditions hold, miss if one fails, and unreadable if a condition of
// the body is left and the body was not kept whole.
func (c *content) match(m *profile.Matcher) match {
	switch {
	case len(m.Status) > 0 && !slices.Contains(m.Status, c.Status):
		return miss
	case m.Header != "" && !hasWord(c.Header.Values(m.Header), m.Has):
		return miss
	case m.Pointer == "":
		return hit
	case !c.Whole:
		return unreadable
	}
	text, found := jsonpointer.Text(c.json(), m.Pointer)
	if !found || (len(m.Equals) > 0 && !slices.Contains(m.Equals, text)) {
		return miss
	}
	return hit
}

// json returns the body decoded as JSON; nil if the body is not JSON. It decodes the body once.
func (c *content) json() any {
	if !c.decoded {
		c.document, c.decoded = jsonpointer.Decode(c.Body), true
	}
	return c.document
}

// hasWord reports whether one of the words is in one of the values (of a header) as a whole word, as profile.Matcher defines it. Without words it reports
// whether there is a value at all.
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

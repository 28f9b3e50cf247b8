package keylayer

import (
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// matches reports whether the matcher recognises the answer: all its conditions hold, and those that are empty do
// always.
func matches(m profile.Matcher, a *Answer) bool {
	if len(m.Status) > 0 && !slices.Contains(m.Status, a.Status) {
		return false
	}
	if m.Header != "" && !headerHas(a.Header.Values(m.Header), m.Has) {
		return false
	}
	if m.Pointer == "" {
		return true
	}
	if len(m.Equals) == 0 {
		_, found := Lookup(a.Body, m.Pointer)
		return found
	}
	text, found := LookupText(a.Body, m.Pointer)
	return found && slices.Contains(m.Equals, text)
}

// MatchesAny reports whether one of the matchers recognises the answer.
func MatchesAny(list []profile.Matcher, a *Answer) bool {
	return slices.ContainsFunc(list, func(m profile.Matcher) bool { return matches(m, a) })
}

// headerHas reports whether one of the words is a whole word of one of the values, regardless of case. Without words
// it reports whether there is a value.
func headerHas(values, words []string) bool {
	if len(words) == 0 {
		return len(values) > 0
	}
	for _, value := range values {
		for _, word := range strings.FieldsFunc(value, func(r rune) bool { return !wordRune(r) }) {
			if slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, word) }) {
				return true
			}
		}
	}
	return false
}

// wordRune reports whether r can be part of a word in a header.
func wordRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./+", r)
}

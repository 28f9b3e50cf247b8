package words

import "strings"

// LookupCause returns what a lookup had against an operation, from the note of its hold or the text of its error; "" if there was none.
func LookupCause(text string) string {
	for _, begin := range []string{": the lookup ", ": the lookup's ", ": what the lookup "} {
		if _, why, found := strings.Cut(text, begin); found {
			return begin[2:] + why
		}
	}
	return ""
}

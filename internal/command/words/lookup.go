package words

import "strings"

// LookupCause returns the part of a note or an error that says why a lookup at the API did not settle an operation; "" if there is none.
func LookupCause(text string) string {
	for _, begin := range []string{": the lookup ", ": the lookup's ", ": what the lookup "} {
		if _, why, found := strings.Cut(text, begin); found {
			return begin[2:] + why
		}
	}
	return ""
}

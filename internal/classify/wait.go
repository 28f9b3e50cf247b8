package classify

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// Wait is the longest wait that an answer's headers ask for, read at now. It is zero if they ask for none, or if
// what they say is past, malformed, negative or too large for a Duration (RFC 9110 section 10.2.3).
func Wait(hints []profile.Hint, h http.Header, now time.Time) time.Duration {
	var longest time.Duration
	for _, hint := range hints {
		for _, line := range h.Values(hint.Header) {
			value := strings.TrimSpace(line)
			switch hint.Unit {
			case profile.Milliseconds:
				longest = max(longest, wholeNumber(value, time.Millisecond))
			default:
				longest = max(longest, wholeNumber(value, time.Second), untilDate(value, now))
			}
		}
	}
	return longest
}

// wholeNumber reads digits as a number of units. A number too large for a Duration, 292 years of seconds, is
// nothing that a server could mean: no hint.
func wholeNumber(s string, unit time.Duration) time.Duration {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt64/int64(unit) {
		return 0
	}
	return time.Duration(n) * unit
}

// untilDate reads one of the three HTTP dates (RFC 9110 section 5.6.7).
func untilDate(s string, now time.Time) time.Duration {
	t, err := http.ParseTime(s)
	if err != nil {
		return 0
	}
	return max(t.Sub(now), 0)
}

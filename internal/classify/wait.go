package classify

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/profile"
)

// Wait returns the longest wait in an answer's headers and JSON body, read at now. It is zero if they ask for none, or if
// their values are past, malformed, negative or too large for a Duration (RFC 9110 section 10.2.3). A body that was not
// read whole says nothing.
func Wait(hints []profile.Hint, a Answer, now time.Time) time.Duration {
	var longest time.Duration
	body := content{Answer: a}
	for _, hint := range hints {
		unit := time.Second
		if hint.Unit == profile.Milliseconds {
			unit = time.Millisecond
		}
		values := a.Header.Values(hint.Header)
		if hint.Pointer != "" {
			values = body.wait(hint.Pointer)
		}
		for _, value := range values {
			value = strings.TrimSpace(value)
			longest = max(longest, wholeNumber(value, unit))
			// Of seconds alone: a header of milliseconds has no date.
			if unit == time.Second {
				longest = max(longest, untilDate(value, now))
			}
		}
	}
	return longest
}

// wait returns the body's text at pointer; empty if there is none. A number with a fraction, such as 1.5, is rounded up:
// JSON allows it, and a header does not.
func (c *content) wait(pointer string) []string {
	if !c.Whole {
		return nil
	}
	text, found := jsonpointer.Text(c.json(), pointer)
	whole, fraction, hasFraction := strings.Cut(text, ".")
	if n, err := strconv.ParseUint(whole, 10, 32); hasFraction && err == nil && isDigits(fraction) {
		text = strconv.FormatUint(n, 10)
		if strings.Trim(fraction, "0") != "" {
			text = strconv.FormatUint(n+1, 10)
		}
	}
	if !found {
		return nil
	}
	return []string{text}
}

// isDigits reports whether s is a number without sign, blank or point.
func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// wholeNumber reads digits as a number of units; any other text is zero. A number too large for a Duration, 292 years of seconds, is no hint: no server could
// mean it.
func wholeNumber(s string, unit time.Duration) time.Duration {
	if !isDigits(s) {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt64/int64(unit) {
		return 0
	}
	return time.Duration(n) * unit
}

// untilDate returns the time from now until an HTTP date, in one of its three forms (RFC 9110 section 5.6.7). It is 0 for a past date and for
// anything else.
func untilDate(s string, now time.Time) time.Duration {
	t, err := http.ParseTime(s)
	if err != nil {
		return 0
	}
	return max(t.Sub(now), 0)
}

package bugs

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// shortKeyBytes is the length below which short-key-ignored ignores keys.
const shortKeyBytes = 8

// respellingBugs returns the bugs of a server that reads another key than was sent. Cases are the test cases that must find the bug.
func respellingBugs() []Bug {
	return []Bug{
		{
			Name: "key-prefix-dropped", Description: "The part of a key before its last colon is taken for a name space, and dropped.",
			Impact: "Order 7 of one customer and order 7 of another are one: the second is never made.",
			Cases:  []string{"key/hostile-names"},
			change: remade(func(key string) string { return key[strings.LastIndexByte(key, ':')+1:] }),
		}, {
			Name: "key-as-number", Description: "A key of digits is kept as a number: 007 and 7 are the same.",
			Impact: "Two payments whose numbers differ in zeros are one: the second is never made.",
			Cases:  []string{"key/digits"},
			change: remade(func(key string) string {
				if n, err := strconv.ParseFloat(key, 64); err == nil && strings.Trim(key, "0123456789") == "" {
					return strconv.FormatFloat(n, 'g', -1, 64)
				}
				return key
			}),
		}, {
			Name: "key-url-decoded", Description: "A key is decoded as if it came from a URL: %2F is a slash, a plus is a blank.",
			Impact: "Two keys that differ in their escapes are one: the second payment is never made.",
			Cases:  []string{"key/hostile-names"},
			change: remade(func(key string) string {
				if decoded, err := url.QueryUnescape(key); err == nil {
					return decoded
				}
				return key
			}),
		}, {
			Name: "comma-cuts-key", Description: "A key ends at its first comma, as an element of a list does.",
			Impact: "Keys such as 1,20 and 1,30 are one: the second payment is never made.",
			Cases:  []string{"key/hostile-names"},
			change: remade(func(key string) string { before, _, _ := strings.Cut(key, ","); return before }),
		},
	}
}

// misreadBugs returns the bugs of a server that makes a key of a header which has none that is valid. Cases are the test cases that must find the
// bug. Read returns the key in the place of the right one, x.Key.
func misreadBugs() []Bug {
	return []Bug{
		{
			Name: "two-lines-joined", Description: "Two key headers are joined by a comma to one key.",
			Impact: "A proxy that adds a key of its own makes each retry another operation.",
			Cases:  []string{"key/two-lines"},
			change: mutation{Read: func(l *layer, x *exchange) reading {
				if values := x.Request.Header.Values(l.Profile.Carrier.Name); len(values) > 1 {
					return keylayer.One(l.Profile, []string{strings.Join(values, ",")}, bare)
				}
				return x.Key
			}},
		}, {
			Name: "non-ascii-dropped", Description: "Bytes that a key may not hold are dropped, and the rest is taken for the key.",
			Impact: "Keys made of names in another script are one: strangers share a payment.",
			Cases:  []string{"key/non-ascii"},
			change: mutation{Read: func(l *layer, x *exchange) reading {
				if raw := rawKey(l, x); x.Key.Err != nil && strings.ContainsFunc(raw, beyondASCII) {
					kept := strings.Map(func(r rune) rune {
						if beyondASCII(r) {
							return -1
						}
						return r
					}, raw)
					return reading{Key: "ascii:" + kept, Present: true}
				}
				return x.Key
			}},
		},
	}
}

// passedOverBugs returns the bugs of a server that ignores some valid keys. Cases are the test cases that must find the bug.
func passedOverBugs() []Bug {
	return []Bug{
		{
			Name: "other-key-ignored", Description: "A key that is no UUID is passed over, and the request executed without protection.",
			Impact: "A client whose keys name their orders is charged again by each retry.",
			Cases:  []string{"key/invalid-not-executed"},
			change: unprotected(func(x *exchange) bool { return len(x.Key.Key) != 36 || strings.Count(x.Key.Key, "-") != 4 }),
		}, {
			Name: "short-key-ignored", Description: "A key of fewer than 8 bytes is passed over, and the request executed without protection.",
			Impact: "A client that counts its orders is charged again by each retry.",
			Cases:  []string{"key/short-protected"},
			change: unprotected(func(x *exchange) bool { return len(x.Key.Key) < shortKeyBytes }),
		},
	}
}

// beyondASCII reports whether r lies above the printable ASCII characters.
func beyondASCII(r rune) bool { return r > '~' }

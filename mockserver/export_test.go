package mockserver

import "github.com/oncehttp/oncehttp/profile"

// ParseKeyForTest is parseKey, for the fuzz target.
func ParseKeyForTest(text string, encoding profile.Encoding) (string, error) {
	return parseKey(text, encoding)
}

package words

import (
	"net/url"
	"slices"
	"strings"
)

// keyPrefix is the first word of the keys that scopes make.
const keyPrefix = "idemp:"

// MeansKey reports whether a person who writes text can mean a key: the key itself, without the first word of keys, or with what is
// percent-encoded in it decoded.
func MeansKey(text, key string) bool {
	return text == key || slices.Contains(KeySpellings(key), text)
}

// KeySpellings are the other ways in which a person may write a key.
func KeySpellings(key string) []string {
	bare := strings.TrimPrefix(key, keyPrefix)
	spellings := []string{bare}
	for _, s := range []string{key, bare} {
		if decoded, err := url.PathUnescape(s); err == nil && decoded != s {
			spellings = append(spellings, decoded)
		}
	}
	return spellings
}

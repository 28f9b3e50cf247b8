package words

import (
	"net/url"
	"slices"
	"strings"
)

// KeyPrefix is the first word of the keys made by scopes.
const KeyPrefix = "idemp:"

// MeansKey reports whether a person writing text can mean a key. text may be the key itself, the key without the first word of keys, or
// either with its percent-encoding decoded.
func MeansKey(text, key string) bool {
	return text == key || slices.Contains(KeySpellings(key), text)
}

// KeyLike returns the key that a person means by text beside key: if key is a generated one, its first word (KeyPrefix) may be missing in text.
func KeyLike(key, text string) string {
	if strings.HasPrefix(key, KeyPrefix) && !strings.HasPrefix(text, KeyPrefix) {
		return KeyPrefix + text
	}
	return text
}

// EndsKey reports whether text is the end of a key after one of its colons: a person who writes it may mean the key.
func EndsKey(text, key string) bool {
	return text != "" && strings.HasSuffix(key, ":"+text)
}

// KeySpellings returns other ways in which a person may write a key: without the first word of generated keys, and with percent-encoded characters decoded.
func KeySpellings(key string) []string {
	bare := strings.TrimPrefix(key, KeyPrefix)
	spellings := []string{bare}
	for _, s := range []string{key, bare} {
		if decoded, err := url.PathUnescape(s); err == nil && decoded != s {
			spellings = append(spellings, decoded)
		}
	}
	return spellings
}

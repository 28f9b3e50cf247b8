// Package jsonpointer reads JSON values by pointer (RFC 6901).
package jsonpointer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Check refuses what is no pointer to a value within a document.
func Check(pointer string) error {
	escapes := strings.Count(pointer, "~0") + strings.Count(pointer, "~1")
	switch {
	case !strings.HasPrefix(pointer, "/") || !utf8.ValidString(pointer):
		return fmt.Errorf("%q is not a JSON pointer, such as /amount", pointer)
	case strings.Count(pointer, "~") != escapes:
		return fmt.Errorf("%q is not a JSON pointer: a ~ is spelled ~0 there, and a / in a name ~1", pointer)
	}
	return nil
}

// Decode returns the JSON value that b begins with, or nil if there is none. Numbers keep their spelling.
func Decode(b []byte) (document any) {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	if decoder.Decode(&document) != nil {
		return nil
	}
	return document
}

// Text follows pointer into document, a value of Decode. found says whether it leads to something; text is
// that of a string, number or boolean, and empty for anything else. The empty pointer, which means the whole
// document, finds nothing.
func Text(document any, pointer string) (text string, found bool) {
	value, found := follow(document, pointer)
	if !found {
		return "", false
	}
	switch value := value.(type) {
	case string:
		return value, true
	case json.Number:
		return value.String(), true
	case bool:
		return strconv.FormatBool(value), true
	}
	return "", true
}

// Value is what pointer leads to in document, a value of Decode; nil if there is nothing, or null.
func Value(document any, pointer string) any {
	value, _ := follow(document, pointer)
	return value
}

// follow follows pointer, which must not be empty.
func follow(document any, pointer string) (value any, found bool) {
	if document == nil || !strings.HasPrefix(pointer, "/") {
		return nil, false
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		switch node := document.(type) {
		case map[string]any:
			document, found = node[unescape(token)]
			if !found {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(node) || strconv.Itoa(i) != token {
				return nil, false
			}
			document = node[i]
		default:
			return nil, false
		}
	}
	return document, true
}

// unescape reads ~1 and ~0, which few tokens have (RFC 6901 section 4).
func unescape(token string) string {
	if !strings.Contains(token, "~") {
		return token
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

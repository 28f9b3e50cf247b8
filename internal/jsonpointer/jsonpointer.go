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

// Check returns an error if pointer is not a pointer to a value within a document.
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

// Decode returns the JSON value at the beginning of b, or nil if there is none. Numbers keep their spelling.
func Decode(b []byte) (document any) {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	if decoder.Decode(&document) != nil {
		return nil
	}
	return document
}

// Text follows pointer into document, a value of Decode. found is true if pointer leads to a value. text is
// the text of a string, number or boolean, and empty for any other value. The empty pointer means the whole
// document, but finds nothing here.
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

// Value returns the value at pointer in document, a value of Decode. It returns nil if there is none, or null.
func Value(document any, pointer string) any {
	value, _ := follow(document, pointer)
	return value
}

// follow follows pointer. An empty pointer finds nothing.
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
			if err != nil || i < 0 || i >= len(node) || strconv.Itoa(i) != token { // other spellings, such as 01, are no index
				return nil, false
			}
			document = node[i]
		default:
			return nil, false
		}
	}
	return document, true
}

// unescape reads ~1 and ~0 (RFC 6901 section 4). Few tokens have them.
func unescape(token string) string {
	if !strings.Contains(token, "~") {
		return token
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

package conformance

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// lookup follows a JSON pointer (RFC 6901) through a document.
func lookup(document []byte, pointer string) (any, bool) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var node any
	if decoder.Decode(&node) != nil {
		return nil, false
	}
	if pointer == "" {
		return node, true
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = unescape.Replace(token)
		switch at := node.(type) {
		case map[string]any:
			next, found := at[token]
			if !found {
				return nil, false
			}
			node = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			node = at[i]
		default:
			return nil, false
		}
	}
	return node, true
}

// lookupText is what a pointer leads to, if it is a string, a number or a
// boolean.
func lookupText(document []byte, pointer string) (string, bool) {
	node, found := lookup(document, pointer)
	if !found {
		return "", false
	}
	switch v := node.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

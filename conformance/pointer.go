package conformance

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// lookup returns the value at a JSON pointer (RFC 6901), as encoding/json decodes it, with
// numbers as json.Number. The empty pointer is the whole document. False: the document is no
// JSON, or has nothing there.
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

// lookupText returns the value at a JSON pointer as text. False: it is missing, or no string,
// number or boolean.
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

package keylayer

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// pointerTokens splits a JSON pointer (RFC 6901) into its unescaped tokens.
func pointerTokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens
}

// Lookup returns the value at a JSON pointer in a JSON text; an empty pointer means the whole. False: the text is no
// JSON, or has no such value. Numbers are json.Number.
func Lookup(text []byte, pointer string) (any, bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var at any
	if decoder.Decode(&at) != nil {
		return nil, false
	}
	for _, token := range pointerTokens(pointer) {
		switch node := at.(type) {
		case map[string]any:
			next, found := node[token]
			if !found {
				return nil, false
			}
			at = next
		case []any:
			index, err := strconv.Atoi(token)
			if err != nil || index < 0 || index >= len(node) {
				return nil, false
			}
			at = node[index]
		default:
			return nil, false
		}
	}
	return at, true
}

// LookupText returns the string, number or boolean at a JSON pointer in a JSON text, as text; false for any other value, and for none.
func LookupText(text []byte, pointer string) (string, bool) {
	value, found := Lookup(text, pointer)
	if !found {
		return "", false
	}
	switch v := value.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	default:
		return "", false
	}
}

// Planted returns an answer in JSON with the text at the pointer.
func Planted(status int, pointer, text string) *Answer {
	return JSONAnswer(status, JSONType, plant(nil, pointerTokens(pointer), text))
}

// plant sets the value at tokens, and makes the objects (for the token 0, arrays) above it; a value that is in the way is replaced. In an array only
// the first element is set, whatever the token. It returns the document, which may be a new one; the given one may be changed.
func plant(document any, tokens []string, value any) any {
	if len(tokens) == 0 {
		return value
	}
	if list, ok := document.([]any); ok || tokens[0] == "0" && document == nil {
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = plant(list[0], tokens[1:], value)
		return list
	}
	object, ok := document.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	object[tokens[0]] = plant(object[tokens[0]], tokens[1:], value)
	return object
}

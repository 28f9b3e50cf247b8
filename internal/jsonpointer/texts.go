package jsonpointer

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Texts returns the text, as Text reads it, of each value at pointer in the JSON value at the beginning of b. There are several
// values if an object on the way has two members of the name: some readers take the first of these, others the last. A member
// without the value counts as empty then.
func Texts(b []byte, pointer string) []string {
	if !strings.HasPrefix(pointer, "/") {
		return nil
	}
	values := []json.RawMessage{b}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		var next []json.RawMessage
		for _, value := range values {
			found, sound := members(value, token)
			if !sound {
				return nil
			}
			if len(found) == 0 && len(values) > 1 {
				found = []json.RawMessage{json.RawMessage("null")}
			}
			next = append(next, found...)
		}
		values = next
	}
	texts := make([]string, 0, len(values))
	for _, value := range values {
		text, _ := Text([]any{Decode(value)}, "/0") // in a list, since Text finds nothing at the empty pointer
		texts = append(texts, text)
	}
	return texts
}

// members returns the values at a token of a pointer in the value at the beginning of b. These are each member of the
// name in an object, or one item of an array at most, and none in any other value. sound is false if b does not begin
// with a whole value.
func members(b json.RawMessage, token string) (found []json.RawMessage, sound bool) {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	opening, err := decoder.Token()
	if _, nested := opening.(json.Delim); err != nil || !nested {
		return nil, err == nil
	}
	name := unescape(token)
	for i := 0; decoder.More(); i++ {
		at := json.Token(strconv.Itoa(i))
		if opening == json.Delim('{') {
			if at, err = decoder.Token(); err != nil {
				return nil, false
			}
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return nil, false
		}
		if at == name {
			found = append(found, value)
		}
	}
	_, err = decoder.Token()
	return found, err == nil
}

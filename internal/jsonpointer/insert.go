package jsonpointer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Insert returns the JSON value b with one member more, at the end of an object. All tokens of the pointer but the last lead to the object.
// The last token is the member's name, and its value is a string. All other bytes stay as they are. It is an error if b is not one JSON
// value, or if there is no such object. It is also an error if an object on the way has two members of the name. It is
// another error if the object already has a member of the new name, case aside.
func Insert(b []byte, pointer, text string) ([]byte, error) {
	if err := Check(pointer); err != nil {
		return nil, err
	}
	if !json.Valid(b) {
		return nil, errors.New("the body is not one JSON value")
	}
	tokens := strings.Split(pointer, "/")[1:]
	last := len(tokens) - 1
	start, object := 0, b
	for _, token := range tokens[:last] {
		found, ok := find(object, unescape(token))
		switch {
		case !ok || len(found.values) == 0:
			return nil, fmt.Errorf("the body has no object for %s", pointer)
		case len(found.values) > 1:
			return nil, fmt.Errorf("the body has two members %q", unescape(token))
		}
		value := found.values[0]
		start, object = start+value.from, object[value.from:value.to]
	}
	name := unescape(tokens[last])
	found, ok := find(object, name)
	switch {
	case !ok:
		return nil, fmt.Errorf("the body has no object for %s", pointer)
	case found.like != "":
		return nil, fmt.Errorf("the body has a member %q", found.like)
	}
	member, err := json.Marshal(map[string]string{name: text})
	if err != nil {
		return nil, err
	}
	member = member[1 : len(member)-1]
	if found.members > 0 {
		member = append([]byte{','}, member...)
	}
	return slices.Insert(slices.Clone(b), start+found.end, member...), nil
}

// span is a part of a text.
type span struct{ from, to int }

// sought is the result of find in an object.
type sought struct {
	values  []span // of the members of the name
	like    string // the name of a member with a difference in case at most; empty: there is none
	members int
	end     int // behind the last member, or behind the opening brace
}

// find looks for the members with a name in the object at the beginning of b. b must be valid JSON. found.values has the places of their values, like
// a name that is equal apart from case (empty: none), members the number of all members, and end the offset where a further one goes. ok is false if b
// begins with another kind of value.
func find(b []byte, name string) (found sought, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(b))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return found, false
	}
	found.end = int(decoder.InputOffset())
	for decoder.More() {
		token, err := decoder.Token()
		is, _ := token.(string)
		var value json.RawMessage
		if err != nil || decoder.Decode(&value) != nil {
			return found, false
		}
		found.members++
		found.end = int(decoder.InputOffset())
		if strings.EqualFold(is, name) {
			found.like = is
		}
		if is == name {
			found.values = append(found.values, span{found.end - len(value), found.end})
		}
	}
	return found, true
}

package jsonpointer

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Remove returns the JSON value b without the values at the pointers, and the pointers that led to a value. In an object each member of the
// name goes, whatever its spelling. In an array, all indexes count before the removal. Without such a value the result is b itself, with its
// spaces. The pointers have passed Check. It is an error if b is not exactly one JSON value.
func Remove(b []byte, pointers []string) (rest []byte, removed []string, err error) {
	if !json.Valid(b) {
		return nil, nil, errors.New("the body is not one JSON value")
	}
	r := remover{found: make([]bool, len(pointers))}
	ways := make([]way, len(pointers))
	for i, pointer := range pointers {
		for _, token := range strings.Split(pointer, "/")[1:] {
			ways[i].tokens = append(ways[i].tokens, unescape(token))
		}
		ways[i].pointer = i
	}
	if rest, err = r.without(b, ways); err != nil {
		return nil, nil, err
	}
	for i, pointer := range pointers {
		if r.found[i] {
			removed = append(removed, pointer)
		}
	}
	return rest, removed, nil
}

// way is the rest of a pointer from a value on.
type way struct {
	tokens  []string
	pointer int // its index
}

// remover notes the pointers that led to a value.
type remover struct{ found []bool }

// without returns the valid JSON value b without the values at the ends of the ways; b itself if there are none.
func (r *remover) without(b []byte, ways []way) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(b))
	opening, err := decoder.Token()
	if _, nested := opening.(json.Delim); err != nil || !nested || len(ways) == 0 {
		return b, err
	}
	rest, changed := []byte{b[decoder.InputOffset()-1]}, false
	for i := 0; decoder.More(); i++ {
		head, at := []byte(nil), strconv.Itoa(i)
		if opening == json.Delim('{') {
			from := decoder.InputOffset()
			name, err := decoder.Token()
			if err != nil {
				return nil, err
			}
			at, _ = name.(string)
			head = slices.Concat(bytes.TrimLeft(b[from:decoder.InputOffset()], ", \t\r\n"), []byte{':'})
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		ends, further := r.at(at, ways)
		if ends {
			changed = true
			continue
		}
		kept, err := r.without(value, further)
		if err != nil {
			return nil, err
		}
		if changed = changed || len(kept) != len(value); len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(rest, head...), kept...)
	}
	if !changed {
		return b, nil
	}
	closing := byte('}')
	if opening == json.Delim('[') {
		closing = ']'
	}
	return append(rest, closing), nil
}

// at reports whether a way ends at the member or item of this name, and returns the ways that lead further.
func (r *remover) at(name string, ways []way) (ends bool, further []way) {
	for _, w := range ways {
		switch {
		case w.tokens[0] != name:
		case len(w.tokens) == 1:
			ends, r.found[w.pointer] = true, true
		default:
			further = append(further, way{w.tokens[1:], w.pointer})
		}
	}
	return ends, further
}

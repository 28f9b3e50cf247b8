package jsonpointer

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Remove returns the JSON value b without the values at the pointers, and the pointers that led to a value. A pointer leads from b; if list is not
// empty, it also leads from each item of the array at list. In an object each member of the name goes, also one spelled with escapes such as \u0061; another
// case is another name. In an array null takes the place of an item: the others keep their indexes, so that a second removal changes nothing. Without such a
// value the result is b itself, with its spaces. All pointers have passed Check. It is an error if b is not exactly one JSON value.
func Remove(b []byte, pointers []string, list string) (rest []byte, removed []string, err error) {
	if !json.Valid(b) {
		return nil, nil, errors.New("the body is not one JSON value")
	}
	r := remover{found: make([]bool, len(pointers))}
	var ways []way
	for i, pointer := range pointers {
		ways = append(ways, way{tokens(pointer), i})
		if list != "" {
			ways = append(ways, way{slices.Concat(tokens(list), []token{{each: true}}, tokens(pointer)), i})
		}
	}
	if rest, _, err = r.without(b, ways); err != nil {
		return nil, nil, err
	}
	for i, pointer := range pointers {
		if r.found[i] {
			removed = append(removed, pointer)
		}
	}
	return rest, removed, nil
}

// token is one step of a pointer. It leads to the value of the name, or to each item of an array.
type token struct {
	name string
	each bool
}

// tokens returns the member names and indexes of a JSON pointer, unescaped, in order. pointer is not empty.
func tokens(pointer string) (all []token) {
	for name := range strings.SplitSeq(pointer[1:], "/") {
		all = append(all, token{name: unescape(name)})
	}
	return all
}

// way is the rest of a pointer from a value on.
type way struct {
	tokens  []token
	pointer int // its index
}

// remover notes the pointers that led to a value.
type remover struct{ found []bool }

// without returns the valid JSON value b without the values that the ways lead to; a way is the rest of a pointer from b on. Without such a value it
// returns b itself. Numbers keep their spelling. An item of an array becomes null, so that the others keep their indexes.
func (r *remover) without(b []byte, ways []way) (rest []byte, changed bool, err error) {
	if len(ways) == 0 {
		return b, false, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	opening, err := decoder.Token()
	if _, nested := opening.(json.Delim); err != nil || !nested {
		return b, false, err
	}
	inArray := opening == json.Delim('[')
	rest = []byte{b[decoder.InputOffset()-1]} // the opening brace or bracket
	for i := 0; decoder.More(); i++ {
		head, at := []byte(nil), strconv.Itoa(i) // of a member: its name as it is spelled and a colon, and the name
		if !inArray {
			from := decoder.InputOffset()
			name, err := decoder.Token()
			if err != nil {
				return nil, false, err
			}
			at, _ = name.(string)
			head = slices.Concat(bytes.TrimLeft(b[from:decoder.InputOffset()], ", \t\r\n"), []byte{':'})
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, false, err
		}
		ends, further := r.at(at, inArray, ways)
		changed = changed || ends
		if ends && !inArray {
			continue
		}
		kept := []byte("null")
		if !ends {
			var within bool
			if kept, within, err = r.without(value, further); err != nil {
				return nil, false, err
			}
			changed = changed || within
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(rest, head...), kept...)
	}
	if !changed {
		return b, false, nil
	}
	closing := byte('}')
	if inArray {
		closing = ']'
	}
	return append(rest, closing), true, nil
}

// at reports whether a way ends at the member or item of this name, and returns the ways that lead further, without their first step. A step is a name,
// or each item of an array. r.found notes the index of each pointer that led to a value.
func (r *remover) at(name string, inArray bool, ways []way) (ends bool, further []way) {
	for _, w := range ways {
		switch next := w.tokens[0]; {
		case next.each && !inArray, !next.each && next.name != name:
		case len(w.tokens) == 1:
			ends, r.found[w.pointer] = true, true
		default:
			further = append(further, way{w.tokens[1:], w.pointer})
		}
	}
	return ends, further
}

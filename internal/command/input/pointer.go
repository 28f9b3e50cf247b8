package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

var errTwice = errors.New("appears twice, so that its value is in doubt")

// follow is the value that a pointer leads to in a sound JSON text; nil if there is
// none. A member on the way that its object has twice is errTwice.
func follow(value json.RawMessage, pointer string) (json.RawMessage, error) {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for token := range strings.SplitSeq(pointer[1:], "/") {
		dec := json.NewDecoder(bytes.NewReader(value))
		open, err := dec.Token()
		if err != nil {
			return nil, err
		}
		switch open {
		case json.Delim('{'):
			value, err = member(dec, unescape.Replace(token))
		case json.Delim('['):
			value, err = element(dec, token)
		default:
			return nil, nil
		}
		if value == nil || err != nil {
			return nil, err
		}
	}
	return value, nil
}

// member is the one of that name in the object that dec is in.
func member(dec *json.Decoder, name string) (found json.RawMessage, err error) {
	for dec.More() {
		at, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		switch err := dec.Decode(&value); {
		case err != nil:
			return nil, err
		case at != name:
		case found != nil:
			return nil, errTwice
		default:
			found = value
		}
	}
	return found, nil
}

// element is the one with that index, from 0, in the array that dec is in.
func element(dec *json.Decoder, index string) (json.RawMessage, error) {
	want, err := strconv.Atoi(index)
	if err != nil || strconv.Itoa(want) != index {
		return nil, nil
	}
	for i := 0; dec.More(); i++ {
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if i == want {
			return value, nil
		}
	}
	return nil, nil
}

package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

var errTwice = errors.New("appears twice, so that its value is in doubt")

// follow returns the value at a pointer in a sound JSON text; nil if there is none. It returns errTwice if an object on the way has the
// member twice.
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

// member returns the value of the member called name in the JSON object at dec; nil if there is none. It returns errTwice if the member is there twice.
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

// element returns the element with this index, from 0, of the JSON array at dec; nil if there is none, or if the index is no plain number.
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

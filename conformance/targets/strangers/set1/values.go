package set1

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parse decodes one JSON value, with json.Number for numbers. Further text after it, or
// invalid UTF-8, is an error.
func parse(body []byte) (any, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// number returns a number in one spelling for all equal ones: 1.0 and 10e-1 are 1. Very large
// exponents stay as they are.
func number(n json.Number) string {
	text := n.String()
	if _, exponent, found := strings.Cut(strings.ToLower(text), "e"); found && len(exponent) > 4 {
		return text // nobody counts so far
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		return text
	}
	return exact.RatString()
}

// canonical writes a value in one spelling for all equal ones; a null member counts as absent.
// False: a text has a replacement character, so that different texts may look equal.
func canonical(b *strings.Builder, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for _, name := range sortedNames(v) {
			if v[name] == nil {
				continue
			}
			if !canonical(b, name) {
				return false
			}
			b.WriteByte(':')
			if !canonical(b, v[name]) {
				return false
			}
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for _, element := range v {
			if !canonical(b, element) {
				return false
			}
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case string:
		b.WriteString(strconv.Quote(v))
		return !strings.ContainsRune(v, utf8.RuneError)
	case json.Number:
		b.WriteString(number(v))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	default:
		b.WriteString("null")
	}
	return true
}

// sortedNames returns the names of an object's members.
func sortedNames(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// byValue returns a fingerprint of method, path, and the value of the body as JSON, equal for all spellings of it. For a body without a clear value
// it is that of its bytes.
func byValue(r *http.Request, body []byte) string {
	v, err := parse(body)
	if err != nil {
		return byBytes(r, body)
	}
	var b strings.Builder
	if !canonical(&b, v) {
		return byBytes(r, body)
	}
	return r.Method + " " + r.URL.Path + "\n" + digest([]byte(b.String()))
}

// byLines returns a fingerprint of method, path, and the sorted lines of a flattened body, one for each value. Elements of a list in another order
// give the same lines: this is a deliberate fault.
func byLines(r *http.Request, body []byte) string {
	v, err := parse(body)
	if err != nil {
		return byBytes(r, body)
	}
	lines := flatten(nil, "", v)
	slices.Sort(lines)
	return r.Method + " " + r.URL.Path + "\n" + digest([]byte(strings.Join(lines, "\n")))
}

// flatten appends a line for each value inside v: way, the path to it, and the value itself. An element's path has no index.
func flatten(lines []string, way string, v any) []string {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			lines = flatten(lines, way+"."+strconv.Quote(name), member)
		}
		return append(lines, way+" is an object")
	case []any:
		for _, element := range v {
			lines = flatten(lines, way+"[]", element)
		}
		return append(lines, way+" is a list")
	default:
		var b strings.Builder
		canonical(&b, v)
		return append(lines, way+"="+b.String())
	}
}

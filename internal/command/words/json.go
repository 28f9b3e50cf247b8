package words

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSONString returns s as a JSON string. Characters such as "<" stay as they are, which encoding/json would escape.
func JSONString(s string) string { return string(AppendJSON(nil, s)) }

// AppendJSON appends s as a JSON string, as JSONString returns it.
func AppendJSON(b []byte, s string) []byte {
	if !strings.ContainsFunc(s, needsEscape) {
		return append(append(append(b, '"'), s...), '"')
	}
	var escaped bytes.Buffer
	enc := json.NewEncoder(&escaped)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string into memory: nothing can fail
	return append(b, bytes.TrimSuffix(escaped.Bytes(), []byte("\n"))...)
}

// needsEscape reports whether a string with this character is left to package json: any but plain ASCII, quotes and backslashes.
func needsEscape(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

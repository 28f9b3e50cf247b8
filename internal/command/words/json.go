package words

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSONString spells s as a JSON string, "<" and the like as they are.
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

// needsEscape reports whether a character may stand otherwise in a JSON string than as
// it is. It leaves all but plain ASCII to package json.
func needsEscape(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

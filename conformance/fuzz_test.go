package conformance_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
)

// A JSON pointer, whatever it is, finds in a document only what encoding/json
// finds there too, and never panics.
func FuzzPointer(f *testing.F) {
	f.Add(`{"a":{"b":[1,"x"]}}`, "/a/b/1")
	f.Add(`[]`, "/0")
	f.Add(`{"~":1,"/":2}`, "/~1")
	f.Add(`x`, "")
	f.Fuzz(func(t *testing.T, document, pointer string) {
		text, found := conformance.LookupText(document, pointer)
		if !found {
			return
		}
		var parsed any
		if err := json.NewDecoder(strings.NewReader(document)).Decode(&parsed); err != nil {
			t.Errorf("found %q in what is no JSON: %v", text, err)
		}
	})
}

// A pattern without stars matches itself alone, and a star matches everything.
func FuzzGlob(f *testing.F) {
	f.Add("scope/**", "scope/other-path")
	f.Add("*a*b", "xaxb")
	f.Fuzz(func(t *testing.T, pattern, id string) {
		got := conformance.GlobMatch(pattern, id)
		if !strings.Contains(pattern, "*") && got != (pattern == id) {
			t.Errorf("GlobMatch(%q, %q): got %v", pattern, id, got)
		}
		if !conformance.GlobMatch("*", id) || !conformance.GlobMatch(id+"*", id) {
			t.Errorf("a star does not match %q", id)
		}
	})
}

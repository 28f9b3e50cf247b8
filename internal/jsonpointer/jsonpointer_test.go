package jsonpointer_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
)

// TestTextFollowsThePointer: objects by name, arrays by index without a leading zero, and nothing by luck.
func TestTextFollowsThePointer(t *testing.T) {
	t.Parallel()
	document := jsonpointer.Decode([]byte(`{"a/b":{"~":["x",1.50,true,null,{}]},"":"empty"} trailing`))
	for pointer, want := range map[string]struct {
		text  string
		found bool
	}{
		"/a~1b/~0/0": {"x", true}, "/a~1b/~0/1": {"1.50", true}, "/a~1b/~0/2": {"true", true},
		"/a~1b/~0/3": {"", true}, "/a~1b/~0/4": {"", true}, "/": {"empty", true},
		"/a~1b/~0/5": {}, "/a~1b/~0/00": {}, "/a~1b/~0/-1": {}, "/a~1b/~0/0/y": {}, "": {}, "a": {}, "/c": {},
	} {
		if text, found := jsonpointer.Text(document, pointer); text != want.text || found != want.found {
			t.Errorf("%q leads to %q, %v; want %q, %v", pointer, text, found, want.text, want.found)
		}
	}
	if jsonpointer.Decode([]byte(`{"a":`)) != nil {
		t.Error("half a document was decoded")
	}
}

// FuzzText: a pointer made for a string leads to that string, and none panics.
func FuzzText(f *testing.F) {
	f.Add("a/b", "x", "/a~1b/00")
	f.Fuzz(func(t *testing.T, name, value, pointer string) {
		raw, err := json.Marshal(map[string]any{name: []any{value}})
		if err != nil {
			return
		}
		var back map[string][]string
		if json.Unmarshal(raw, &back) != nil {
			return
		}
		document := jsonpointer.Decode(raw)
		jsonpointer.Text(document, pointer)
		for n, values := range back {
			at := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(n) + "/0"
			if text, found := jsonpointer.Text(document, at); !found || text != values[0] {
				t.Errorf("%s in %s leads to %q, %v", at, raw, text, found)
			}
		}
	})
}

// TestCheck: what is no pointer to a value within a document is refused.
func TestCheck(t *testing.T) {
	t.Parallel()
	for pointer, ok := range map[string]bool{
		"/a": true, "/": true, "/a/0": true, "/a~1b": true, "/a~0b": true, "/~01": true, "/ü": true,
		"": false, "a": false, "a/b": false, "#/a": false, "/a~": false, "/a~2b": false, "/~~0": false, "/\xff": false,
	} {
		if err := jsonpointer.Check(pointer); (err == nil) != ok {
			t.Errorf("%q: %v, want it right: %v", pointer, err, ok)
		}
	}
}

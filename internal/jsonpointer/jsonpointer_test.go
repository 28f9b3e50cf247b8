package jsonpointer_test

import (
	"encoding/json"
	"slices"
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

// TestTexts: several values only where a name on the way is there twice, and none of what is no value.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		body, pointer string
		want          []string
	}{
		{`{"a":"x","b":1.50}`, "/b", []string{"1.50"}},
		{`{"a/b":[true,["y"]]} trailing`, "/a~1b/1/0", []string{"y"}},
		{`{"a":null}`, "/a", []string{""}},
		{`{"a":{}}`, "/a", []string{""}},
		{`{"a":{}}`, "/a/b", nil},
		{`{"a":1,"a":2}`, "/a", []string{"1", "2"}},
		{`{"a":1,"\u0061":1}`, "/a", []string{"1", "1"}},
		{`{"a":{"b":1},"a":{}}`, "/a/b", []string{"1", ""}},
		{`{"a":7,"a":{"b":[1,{"c":2,"c":3}]}}`, "/a/b/1/c", []string{"", "2", "3"}},
		{`{"b":1,"b":2,"a":3}`, "/a", []string{"3"}},
		{`{"a":1e400,"a":{"b":1}}`, "/a/b", []string{"", "1"}},
		{`[1,2]`, "/01", nil}, {`[1,2]`, "/2", nil}, {`"a"`, "/a", nil},
		{`{"a":1`, "/a", nil}, {`{"a":1,}`, "/a", nil}, {`[1`, "/0", nil}, {``, "/a", nil}, {`{"a":1}`, "a", nil}, {`{"a":1}`, "", nil},
	} {
		if got := jsonpointer.Texts([]byte(row.body), row.pointer); !slices.Equal(got, row.want) {
			t.Errorf("%s has %q at %s, want %q", row.body, got, row.pointer, row.want)
		}
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
		text, found := jsonpointer.Text(document, pointer)
		if texts := jsonpointer.Texts(raw, pointer); found != (len(texts) == 1) || found && texts[0] != text {
			t.Errorf("%q at %s, and %q, %v", texts, pointer, text, found)
		}
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

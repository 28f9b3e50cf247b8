package jsonpointer_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
)

// TestRemove: each value at a pointer goes, in any spelling of its name and each time it is there, and the rest is the same value.
func TestRemove(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ body, pointers, want, removed string }{
		{`{"a":1,"b":2}`, "/a", `{"b":2}`, "/a"},
		{`{"a":1,"b":2}`, "/b", `{"a":1}`, "/b"},
		{`{"a":1}`, "/a", `{}`, "/a"},
		{`{"a":null}`, "/a", `{}`, "/a"},
		{` { "b" : 1.50e3 } `, "/a", ` { "b" : 1.50e3 } `, ""},
		{`{"a":1,"a":2,"b":12345678901234567890}`, "/a", `{"b":12345678901234567890}`, "/a"},
		{`{"\u0061":1,"b":"\u00e9"}`, "/a", `{"b":"\u00e9"}`, "/a"},
		{`{"A":1}`, "/a", `{"A":1}`, ""},
		{`{"c":{"n":1,"v":2},"c":{"n":3}}`, "/c/n", `{"c":{"v":2},"c":{}}`, "/c/n"},
		{`{"c":{"n":1,"v":2}}`, "/c/n /c", `{}`, "/c"},
		{`{"c":{"n":1,"v":2}}`, "/c/v /c/x /c/n", `{"c":{}}`, "/c/v /c/n"},
		{`{"a/b~":1,"c":2}`, "/a~1b~0", `{"c":2}`, "/a~1b~0"},
		{`[{"n":1,"v":2},{"n":3}]`, "/0/n", `[{"v":2},{"n":3}]`, "/0/n"},
		{`[1,2,3]`, "/0 /1", `[3]`, "/0 /1"},
		{`[1,2]`, "/01 /2 /-", `[1,2]`, ""},
		{`{"":1,"b":2}`, "/", `{"b":2}`, "/"},
		{`"text"`, "/a", `"text"`, ""},
	} {
		got, removed, err := jsonpointer.Remove([]byte(row.body), strings.Fields(row.pointers))
		if err != nil || string(got) != row.want || strings.Join(removed, " ") != row.removed {
			t.Errorf("%s without %s is %s, without %q, %v; want %s, %q", row.body, row.pointers, got, removed, err, row.want, row.removed)
		}
	}
	for _, body := range []string{``, `{"a":1`, `{"a":1}{"a":2}`, "{\"a\":1}\n{\"a\":2}", `<a/>`, `a=1`, "\ufeff{}", `data: {"a":1}`} {
		if got, _, err := jsonpointer.Remove([]byte(body), []string{"/a"}); err == nil {
			t.Errorf("%q gives %q", body, got)
		}
	}
}

// FuzzRemove: nothing is found at a removed pointer, the rest is JSON, and a second removal changes nothing.
func FuzzRemove(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1,"c":[1,{"b":2}]},"a":{"b":3}}`), "/a/b", "/a/c/1")
	f.Add([]byte("{\t\"\\u0061\" : [ ] }"), "/a", "/b")
	f.Fuzz(func(t *testing.T, body []byte, one, two string) {
		pointers := []string{one, two}
		if one == two || jsonpointer.Check(one) != nil || jsonpointer.Check(two) != nil {
			return
		}
		was := string(body)
		rest, removed, err := jsonpointer.Remove(body, pointers)
		if string(body) != was {
			t.Fatalf("%q became %q", was, body)
		}
		if err != nil {
			if json.Valid(body) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if !json.Valid(rest) {
			t.Fatalf("%s is no JSON", rest)
		}
		if len(removed) == 0 && string(rest) != string(body) {
			t.Errorf("%s became %s without a removal", body, rest)
		}
		for _, pointer := range removed {
			inArray := strings.ContainsAny(pointer, "0123456789") // a later item has the index then
			if texts := jsonpointer.Texts(rest, pointer); !inArray && slices.ContainsFunc(texts, func(s string) bool { return s != "" }) {
				t.Errorf("%s still has %q at %s", rest, texts, pointer)
			}
		}
	})
}

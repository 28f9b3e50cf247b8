package jsonpointer_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
)

// TestRemove: each value at a pointer goes, in any spelling of its name and each time it is there. The rest is the same value, and stays in
// its place: null stands for an item of an array.
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
		{`[1,2,3]`, "/0 /1", `[null,null,3]`, "/0 /1"},
		{`[1,2,3]`, "/2", `[1,2,null]`, "/2"},
		{`{"a":[1234]}`, "/a/0", `{"a":[null]}`, "/a/0"}, // as long as null
		{`{"a":[null, {"b":1}]}`, "/a/0 /a/0/b", `{"a":[null,{"b":1}]}`, "/a/0"},
		{`{"0":1,"1":2}`, "/0", `{"1":2}`, "/0"},
		{`{"a":1e400,"b":2}`, "/b", `{"a":1e400}`, "/b"},
		{`{"a":1e400}`, "/a/b", `{"a":1e400}`, ""},
		{`[1,2]`, "/01 /2 /-", `[1,2]`, ""},
		{`{"":1,"b":2}`, "/", `{"b":2}`, "/"},
		{`"text"`, "/a", `"text"`, ""},
	} {
		got, removed, err := jsonpointer.Remove([]byte(row.body), strings.Fields(row.pointers), "")
		if err != nil || string(got) != row.want || strings.Join(removed, " ") != row.removed {
			t.Errorf("%s without %s is %s, without %q, %v; want %s, %q", row.body, row.pointers, got, removed, err, row.want, row.removed)
		}
	}
	for _, body := range []string{``, `{"a":1`, `{"a":1}{"a":2}`, "{\"a\":1}\n{\"a\":2}", `<a/>`, `a=1`, "\ufeff{}", `data: {"a":1}`} {
		if got, _, err := jsonpointer.Remove([]byte(body), []string{"/a"}, ""); err == nil {
			t.Errorf("%q gives %q", body, got)
		}
	}
}

// TestRemoveInList: a pointer leads from the document and from each item of the list. It is named as it was given.
func TestRemoveInList(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ body, list, want, removed string }{
		{`{"data":[{"s":1,"v":2},{"s":3},4]}`, "/data", `{"data":[{"v":2},{},4]}`, "/s"},
		{`{"s":1,"data":[{"s":{"t":1}}]}`, "/data", `{"data":[{}]}`, "/s"},
		{`{"data":[{"c":[{"n":1},5]}]}`, "/data", `{"data":[{"c":[{},5]}]}`, "/c/0/n"},
		{`{"data":[{"s":1}],"data":[{"s":2}]}`, "/data", `{"data":[{}],"data":[{}]}`, "/s"},
		{`{"a":{"data":[{"s":1}]}}`, "/a/data", `{"a":{"data":[{}]}}`, "/s"},
		{`[[{"s":1}],[{"s":2}]]`, "/0", `[[{}],[{"s":2}]]`, "/s"},
		{`{"data":{"0":{"s":1}}}`, "/data", `{"data":{"0":{"s":1}}}`, ""},
		{`{"data":[[{"s":1}]]}`, "/data", `{"data":[[{"s":1}]]}`, ""},
		{`{"data":[{"s":1}]}`, "", `{"data":[{"s":1}]}`, ""},
	} {
		got, removed, err := jsonpointer.Remove([]byte(row.body), []string{"/s", "/c/0/n"}, row.list)
		if err != nil || string(got) != row.want || strings.Join(removed, " ") != row.removed {
			t.Errorf("%s is %s, without %q, %v; want %s, %q", row.body, got, removed, err, row.want, row.removed)
		}
	}
}

// FuzzRemove: nothing is found at a removed pointer, the rest is JSON with all other values in their places, and a second removal changes
// nothing.
func FuzzRemove(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1,"c":[1,{"b":2}]},"a":{"b":3}}`), "/a/b", "/a/c/1", "/a/c")
	f.Add([]byte("{\t\"\\u0061\" : [ ] }"), "/a", "/b", "")
	f.Add([]byte(` [ {"a" : 1e400 , "b": [12] }, 1234 ]`), "/a", "/1", "/0/b")
	f.Fuzz(func(t *testing.T, body []byte, one, two, list string) {
		pointers := []string{one, two}
		if one == two || jsonpointer.Check(one) != nil || jsonpointer.Check(two) != nil || list != "" && jsonpointer.Check(list) != nil {
			return
		}
		was := string(body)
		rest, removed, err := jsonpointer.Remove(body, pointers, list)
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
			if texts := jsonpointer.Texts(rest, pointer); slices.ContainsFunc(texts, func(s string) bool { return s != "" }) {
				t.Errorf("%s still has %q at %s", rest, texts, pointer)
			}
		}
		if again, _, err := jsonpointer.Remove(rest, pointers, list); err != nil || string(again) != string(rest) {
			t.Errorf("%s became %s by a second removal, %v", rest, again, err)
		}
	})
}

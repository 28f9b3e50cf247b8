package jsonpointer_test

import (
	"encoding/json"
	"testing"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
)

// TestInsert: the member is the last one of its object, and every other byte stays.
func TestInsert(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ body, pointer, want string }{
		{`{"a":1}`, "/k", `{"a":1,"k":"v"}`},
		{`{}`, "/k", `{"k":"v"}`},
		{" {\n  \"a\" : 1.50e3 ,\n  \"b\": [1, {\"k\":2}]\n} \n", "/k", " {\n  \"a\" : 1.50e3 ,\n  \"b\": [1, {\"k\":2}],\"k\":\"v\"\n} \n"},
		{`{ }`, "/k", `{"k":"v" }`},
		{`{"v":{"in":{}},"q":"mutation"}`, "/v/in/k", `{"v":{"in":{"k":"v"}},"q":"mutation"}`},
		{`{"v":{"x":"\u0041"}}`, "/v/a~1b~0", `{"v":{"x":"\u0041","a/b~":"v"}}`},
		{`{"\u0076":{}}`, "/v/k", `{"\u0076":{"k":"v"}}`},
		{`{"a":"}{,","b":12345678901234567890}`, "/k", `{"a":"}{,","b":12345678901234567890,"k":"v"}`},
	} {
		got, err := jsonpointer.Insert([]byte(row.body), row.pointer, "v")
		if err != nil || string(got) != row.want {
			t.Errorf("%s at %s gives %s, %v; want %s", row.body, row.pointer, got, err, row.want)
		}
	}
	for _, row := range []struct{ body, pointer string }{
		{`{"k":null}`, "/k"}, {`{"K":1}`, "/k"}, {`{"\u006b":1}`, "/k"}, {`{"k":1,"k":1}`, "/k"}, {`{"a":1}{"b":1}`, "/k"}, {`{"a":1} x`, "/k"},
		{`[]`, "/k"}, {`"k"`, "/k"}, {``, "/k"}, {`{"a":1,}`, "/k"}, {"\ufeff{}", "/k"}, {`{}`, "/v/k"}, {`{"v":[{}]}`, "/v/0/k"}, {`{"v":1}`, "/v/k"},
		{`{"v":{},"v":{}}`, "/v/k"}, {`{}`, ""}, {`{}`, "k"},
	} {
		if got, err := jsonpointer.Insert([]byte(row.body), row.pointer, "v"); err == nil {
			t.Errorf("%s at %s gives %s", row.body, row.pointer, got)
		}
	}
}

// FuzzInsert: what is put in is found again, once, and taking it out gives the bytes that were there.
func FuzzInsert(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1}}`), "/a/k", "v")
	f.Add([]byte("{\t}"), "/k", "\"<&>")
	f.Fuzz(func(t *testing.T, body []byte, pointer, text string) {
		with, err := jsonpointer.Insert(body, pointer, text)
		if err != nil {
			return
		}
		if !json.Valid(with) {
			t.Fatalf("%s is no JSON", with)
		}
		var want string
		if spelled, _ := json.Marshal(text); json.Unmarshal(spelled, &want) != nil {
			return
		}
		if texts := jsonpointer.Texts(with, pointer); len(texts) != 1 || texts[0] != want {
			t.Errorf("%s has %q at %s, want %q", with, texts, pointer, want)
		}
		head := 0
		for head < len(body) && body[head] == with[head] {
			head++
		}
		if tail := len(body) - head; string(with[len(with)-tail:]) != string(body[head:]) {
			t.Errorf("%s made of %s: other bytes have changed", with, body)
		}
	})
}

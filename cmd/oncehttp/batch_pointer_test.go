package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
)

// A JSON pointer in braces names a nested field of an NDJSON line, in --key, --url
// and --ordered-by.
func TestBatchPointers(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	file := writeFile(t, "in.ndjson", `{"order":{"id":"o1","lines":[{"sku":7},{"sku":8.50}]},"a/b":{"~":"x"},"/order/id":["not this"]}`+"\n")
	got := run(t, "batch", file, "--url", m.URL()+"/payments/{/order/lines/0/sku}", "--key", "order:{/order/id}:{/order/lines/1/sku}:{/a~1b/~0}", "--ordered-by", "/order/id", "--dry-run").want(t, exitOK)
	if !strings.Contains(got.out, `"key":"idemp:order:o1:8.50:x","method":"POST","url":"`+m.URL()+`/payments/7"`) {
		t.Errorf("stdout %s", got.out)
	}
	run(t, "batch", file, "--url", m.URL()+"/payments", "--key", "order:{/order/id}").want(t, exitOK)
	keys := m.Ledger().Snapshot().Keys
	if _, sent := keys["idemp:order:o1"]; !sent || len(keys) != 1 {
		t.Errorf("keys %v", keys)
	}
}

// What a pointer does not lead to, or not to one text, is an input error of that row.
func TestBatchPointerErrors(t *testing.T) {
	t.Parallel()
	s := refusing(t)
	for line, want := range map[string]string{
		`{"order":{}}`:                         "is not there, and the key needs it",
		`{"order":7}`:                          "is not there, and the key needs it",
		`{}`:                                   "is not there, and the key needs it",
		`{"/order/id":1}`:                      "is not there, and the key needs it",
		`{"order":[{"id":1}]}`:                 "is not there, and the key needs it",
		`{"order":{"id":{}}}`:                  "is neither a string nor a number, and the key needs it",
		`{"order":{"id":["x"]}}`:               "is neither a string nor a number, and the key needs it",
		`{"order":{"id":true}}`:                "is neither a string nor a number, and the key needs it",
		`{"order":{"id":null}}`:                "is null, and the key needs it",
		`{"order":{"id":""}}`:                  "is empty, and the key needs it",
		`{"order":{"id":1,"id":2}}`:            "appears twice, so that its value is in doubt",
		`{"order":{"id":1},"order":{"id":1}}`:  "appears twice, so that its value is in doubt",
		`{"order":{"\u0069d":1,"id":2},"x":1}`: "appears twice, so that its value is in doubt",
	} {
		file := writeFile(t, "in.ndjson", `{"order":{"id":"good"}}`+"\n"+line+"\n")
		run(t, "batch", file, "--url", s.url, "--key", "o:{/order/id}").usage(t, "oncehttp: "+file+`: row 2, column "/order/id": `+want)
	}
	file := writeFile(t, "in.ndjson", "{\"a\":1}\n")
	run(t, "batch", file, "--url", s.url, "--key", "o:{/a~2}").usage(t, "oncehttp: "+file+`: {/a~2} is not a JSON pointer: "~" is written ~0, and a "/" in a name ~1`)
	file = writeFile(t, "in.csv", "id\n1\n")
	run(t, "batch", file, "--url", s.url, "--key", "o:{/id}").usage(t, "oncehttp: "+file+`: column "/id": named by --key, is not there (a JSON pointer is for NDJSON); the columns are "id"`)
}

// A column of a CSV file may be called as a pointer is.
func TestColumnLikeAPointer(t *testing.T) {
	t.Parallel()
	rows, err := newRows("in.csv", strings.NewReader("/id~\n7\n"), rowNeeds{fields: []string{"/id~"}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := rows.next(); err != nil || !slices.Equal(r.fields, []string{"7"}) {
		t.Errorf("%v, %v", r, err)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	document := []byte(` {"a":[10,{"":"empty"},[]],"b":"s"}`)
	for pointer, want := range map[string]string{
		"/a/0": "10", "/a/1/": `"empty"`, "/a/2": "[]", "/b": `"s"`, "/a/3": "", "/a/00": "", "/a/-1": "", "/a/-": "", "/a/+0": "",
		"/b/0": "", "/": "", "/a/x": "", "/A": "",
	} {
		if got, err := follow(document, pointer); string(got) != want || err != nil {
			t.Errorf("%s leads to %q, %v; want %q", pointer, got, err, want)
		}
	}
}

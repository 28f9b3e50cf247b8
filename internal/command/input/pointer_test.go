package input_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// A JSON pointer in braces names a nested field of an NDJSON line, in --key, --url
// and --ordered-by.
func TestBatchPointers(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	file := commandtest.WriteFile(t, "in.ndjson", `{"order":{"id":"o1","lines":[{"sku":7},{"sku":8.50}]},"a/b":{"~":"x"},"/order/id":["not this"]}`+"\n")
	got := commandtest.Run(t, "batch", file, "--url", m.URL()+"/payments/{/order/lines/0/sku}", "--key", "order:{/order/id}:{/order/lines/1/sku}:{/a~1b/~0}", "--ordered-by", "/order/id", "--dry-run").Want(t, terminal.ExitOK)
	if !strings.Contains(got.Out, `"key":"idemp:order:o1:8.50:x","method":"POST","url":"`+m.URL()+`/payments/7"`) {
		t.Errorf("stdout %s", got.Out)
	}
	commandtest.Run(t, "batch", file, "--url", m.URL()+"/payments", "--key", "order:{/order/id}").Want(t, terminal.ExitOK)
	keys := m.Ledger().Snapshot().Keys
	if _, sent := keys["idemp:order:o1"]; !sent || len(keys) != 1 {
		t.Errorf("keys %v", keys)
	}
}

// What a pointer does not lead to, or not to one text, is an input error of that row.
func TestBatchPointerErrors(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
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
		file := commandtest.WriteFile(t, "in.ndjson", `{"order":{"id":"good"}}`+"\n"+line+"\n")
		commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{/order/id}").Usage(t, "oncehttp: "+file+`: row 2, column "/order/id": `+want)
	}
	file := commandtest.WriteFile(t, "in.ndjson", "{\"a\":1}\n")
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{/a~2}").Usage(t, "oncehttp: "+file+`: {/a~2} is not a JSON pointer: "~" is written ~0, and a "/" in a name ~1`)
	file = commandtest.WriteFile(t, "in.csv", "id\n1\n")
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{/id}").Usage(t, "oncehttp: "+file+`: column "/id": named by --key, is not there (a JSON pointer is for NDJSON); the columns are "id"`)
}

// A column of a CSV file may be called as a pointer is.
func TestColumnLikeAPointer(t *testing.T) {
	t.Parallel()
	rows, err := input.NewRows("in.csv", strings.NewReader("/id~\n7\n"), input.RowNeeds{Fields: []string{"/id~"}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := rows.Next(); err != nil || !slices.Equal(r.Fields, []string{"7"}) {
		t.Errorf("%v, %v", r, err)
	}
}

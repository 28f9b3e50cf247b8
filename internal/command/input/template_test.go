package input

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// A body is bounded as a row is, before it is built.
func TestBodyTemplateBound(t *testing.T) {
	t.Parallel()
	tm, err := parseBodyTemplate(`["{a}",` + strings.Repeat(`"{a}",`, 99) + `"{b}"]`)
	if err != nil {
		t.Fatal(err)
	}
	fill := func(size int) (int, error) {
		body, column, err := tm.fill(func(int) string { return strings.Repeat("x", size) })
		if err != nil && column > 1 {
			t.Errorf("column %d", column)
		}
		return len(body), err
	}
	most := (RowBytesMax - 3*101) / 101
	if n, err := fill(most); err != nil || n > RowBytesMax {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := fill(most + 4); err == nil {
		t.Error("too long a body was made")
	}
}

// FuzzBodyTemplate: a template that is taken gives JSON of one structure, whatever
// the cells hold.
func FuzzBodyTemplate(f *testing.F) {
	for _, template := range []string{
		`{"a":"{x}","b":{x:number},"c":[{y:bool},"{{{y}}}"]}`, `"\u{x}0041"`, `["\\{x}","\"{y}"]`, `{"{x}":1}`, `-{x:number}`, `{x:number}{y:number}`, `"{x}\ud83d{y}"`,
	} {
		for _, cell := range []string{"", "1", "true", `"`, `\`, "\\\"},{\"a\":1", "\n\x00\x1f", "\xff\xed\xa0\xbd", "\u2028", "-0.0e+1", "1,2", "udc00", "}", "{x}"} {
			f.Add(template, cell, "7")
			f.Add(template, "7", cell)
		}
	}
	f.Fuzz(func(t *testing.T, template, one, two string) {
		tm, err := parseBodyTemplate(template)
		if err != nil {
			return
		}
		plain := map[cellKind]string{cellText: "x", cellNumber: "7", cellBool: "true"}
		cell := func(column int) string { return []string{one, two}[column%2] }
		var sample strings.Builder
		for _, p := range tm.parts {
			sample.WriteString(p.literal + plain[p.kind])
		}
		body, _, err := tm.fill(cell)
		if err != nil {
			if !slices.ContainsFunc(tm.parts, func(p bodyPart) bool { return p.kind == cellNumber || p.kind == cellBool }) {
				t.Errorf("text was refused: %v", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q filled with %q and %q is not JSON: %q", template, one, two, body)
		}
		if got, want := shape(t, body), shape(t, []byte(sample.String())); got != want {
			t.Errorf("%q filled with %q and %q: %q has the shape %s, want %s", template, one, two, body, got, want)
		}
	})
}

// FuzzBatchBody: through a CSV file, a cell comes out of the template and of the form
// as it went in, or the row is refused.
func FuzzBatchBody(f *testing.F) {
	for _, cell := range []string{"x", `","admin":true,"`, "a\nb", `\u0022`, "ä\u2028", "\xff", "\x00", "&amount=1", "%26", "[]", " ", "{{"} {
		f.Add(cell)
	}
	tm, err := parseBodyTemplate(`{"a":{"b":["<{cell}>"]},"c":true}`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		var in bytes.Buffer
		w := csv.NewWriter(&in)
		_ = w.WriteAll([][]string{{"id", "cell"}, {"1", cell}}) // into memory
		want := strings.ReplaceAll(cell, "\r\n", "\n")          // encoding/csv reads both as one line's end
		for _, needs := range []RowNeeds{{Body: tm, Fields: []string{"id"}}, {Form: true, Fields: []string{"id"}}, {Body: tm, Form: true, Fields: []string{"id"}}} {
			rows, err := NewRows("in.csv", bytes.NewReader(in.Bytes()), needs)
			if err != nil {
				return // no text file
			}
			r, err := rows.Next()
			if refused := CheckText(cell) != nil; err != nil || refused {
				if (err != nil) != refused {
					t.Errorf("%q: %v", cell, err)
				}
				return
			}
			got := cellOf(t, r.Body, needs.Form, needs.Body != nil)
			if got != want {
				t.Errorf("%q came out as %q: %q", want, got, r.Body)
			}
		}
	})
}

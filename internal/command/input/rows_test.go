package input_test

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/input"
)

// readAll gives every row of an input, or the first error.
func readAll(text string, needs input.RowNeeds) ([]input.Row, error) {
	rows, err := input.NewRows("in", strings.NewReader(text), needs)
	if err != nil {
		return nil, err
	}
	var all []input.Row
	for {
		r, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	user := input.RowNeeds{Fields: []string{"user"}, OfKey: 1}
	tests := []struct {
		name  string
		in    string
		needs input.RowNeeds
		want  []input.Row
	}{
		{"csv", "user,amount\nu1,10\nu2,20\n", user, []input.Row{
			{Number: 1, Line: 2, Body: []byte(`{"user":"u1","amount":"10"}`), Fields: []string{"u1"}},
			{Number: 2, Line: 3, Body: []byte(`{"user":"u2","amount":"20"}`), Fields: []string{"u2"}},
		}},
		{"csv without a last line feed", "user\nu1", user, []input.Row{{Number: 1, Line: 2, Body: []byte(`{"user":"u1"}`), Fields: []string{"u1"}}}},
		{"csv with CR LF", "user,a\r\nu1,x\r\n", user, []input.Row{{Number: 1, Line: 2, Body: []byte(`{"user":"u1","a":"x"}`), Fields: []string{"u1"}}}},
		{"csv with a byte order mark", "\xef\xbb\xbfuser\nu1\n", user, []input.Row{{Number: 1, Line: 2, Body: []byte(`{"user":"u1"}`), Fields: []string{"u1"}}}},
		{"csv columns keep their order", "b,a,user\n1,2,u\n", user, []input.Row{{Number: 1, Line: 2, Body: []byte(`{"b":"1","a":"2","user":"u"}`), Fields: []string{"u"}}}},
		{"csv quotes", "user,note\nu1,\"a \"\"b\"\",\nc<>&\"\nu2,d\n", user, []input.Row{
			{Number: 1, Line: 2, Body: []byte(`{"user":"u1","note":"a \"b\",\nc<>&"}`), Fields: []string{"u1"}},
			{Number: 2, Line: 4, Body: []byte(`{"user":"u2","note":"d"}`), Fields: []string{"u2"}},
		}},
		{"csv numbers keep their text", "user,amount\nu1,1.50\nu2,-12e+3\nu3,123456789012345678901\n", input.RowNeeds{Fields: []string{"user"}, Numbers: []string{"amount"}, OfKey: 9}, []input.Row{
			{Number: 1, Line: 2, Body: []byte(`{"user":"u1","amount":1.50}`), Fields: []string{"u1"}},
			{Number: 2, Line: 3, Body: []byte(`{"user":"u2","amount":-12e+3}`), Fields: []string{"u2"}},
			{Number: 3, Line: 4, Body: []byte(`{"user":"u3","amount":123456789012345678901}`), Fields: []string{"u3"}},
		}},
		{"csv with a header only", "user\n", user, nil},
		{"csv fields in the key's order", "a,b\n1,2\n", input.RowNeeds{Fields: []string{"b", "a"}}, []input.Row{{Number: 1, Line: 2, Body: []byte(`{"a":"1","b":"2"}`), Fields: []string{"2", "1"}}}},
		{"ndjson byte for byte", "{ \"user\" : \"u1\" , \"amount\":1.0 }\n{\"user\":\"u2\"}", user, []input.Row{
			{Number: 1, Line: 1, Body: []byte(`{ "user" : "u1" , "amount":1.0 }`), Fields: []string{"u1"}},
			{Number: 2, Line: 2, Body: []byte(`{"user":"u2"}`), Fields: []string{"u2"}},
		}},
		{"ndjson blank lines count", "\n{\"user\":\"u1\"}\r\n \n{\"user\":\"u2\"}\n", user, []input.Row{
			{Number: 2, Line: 2, Body: []byte(`{"user":"u1"}`), Fields: []string{"u1"}},
			{Number: 4, Line: 4, Body: []byte(`{"user":"u2"}`), Fields: []string{"u2"}},
		}},
		{"ndjson number as it is written", `{"user":1e3}`, user, []input.Row{{Number: 1, Line: 1, Body: []byte(`{"user":1e3}`), Fields: []string{"1e3"}}}},
		{"ndjson escapes", `{"us\u0065r":"\u00e9"}`, user, []input.Row{{Number: 1, Line: 1, Body: []byte(`{"us\u0065r":"\u00e9"}`), Fields: []string{"é"}}}},
		{"ndjson inner objects do not count", `{"x":{"user":"no"},"user":"yes"}`, user, []input.Row{{Number: 1, Line: 1, Body: []byte(`{"x":{"user":"no"},"user":"yes"}`), Fields: []string{"yes"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := readAll(tt.in, tt.needs)
			if err != nil {
				t.Fatal(err)
			}
			same := slices.EqualFunc(got, tt.want, func(a, b input.Row) bool {
				return a.Number == b.Number && a.Line == b.Line && string(a.Body) == string(b.Body) && slices.Equal(a.Fields, b.Fields)
			})
			if !same {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestRowErrors(t *testing.T) {
	t.Parallel()
	user := input.RowNeeds{Fields: []string{"user"}, OfKey: 1}
	tests := []struct {
		name  string
		in    string
		needs input.RowNeeds
		want  string
	}{
		{"empty", "", user, "in: is empty"},
		{"blank", " \n\n", user, "in: holds nothing but blanks"},
		{"only a mark", "\xef\xbb\xbf", user, "in: is empty"},
		{"binary", "a\x00b", user, "in: holds a NUL byte in line 1, as no text does"},
		{"Latin-1", "user\nM\xfcller\n", user, "in: is not UTF-8 text: byte 0xFC in line 2; save it as UTF-8"},
		{"UTF-32, little endian", "\xff\xfe\x00\x00u\x00\x00\x00\n\x00\x00\x00", user, "in: is UTF-32; save it as UTF-8"},
		{"UTF-32, big endian", "\x00\x00\xfe\xff\x00\x00\x00u\x00\x00\x00\n", user, "in: is UTF-32; save it as UTF-8"},
		{"UTF-16", "u\x00s\x00e\x00r\x00\n\x00u\x001\x00\n\x00", user, "in: looks like UTF-16 without a byte order mark; save it as UTF-8"},
		{"array", `[{"user":"u"}]`, user, "in: is a JSON array; want CSV with a header row, or one JSON object a line"},
		{"csv: NUL late", "user,x\nu1,a\n" + strings.Repeat("u,b\n", 2000) + "u2,\x00\n", user, `in: row 2002 (line 2003), column "x": holds a NUL byte`},
		{"csv: not UTF-8 late", "user,x\n" + strings.Repeat("u,b\n", 2000) + "\xff,c\n", user, `in: row 2001 (line 2002), column "user": is not UTF-8 text`},
		{"csv: unknown field", "usr,order\nu,1\n", user, `in: column "user": named by --key, is not there (is it "usr"?); the columns are "usr", "order"`},
		{"csv: unknown number", "user,order\nu,1\n", input.RowNeeds{Fields: []string{"user"}, Numbers: []string{"amount"}, OfKey: 9}, `in: column "amount": named by --number, is not there; the columns are "user", "order"`},
		{"csv: too few fields", "user,x\nu1,1\nu2\n", user, "in: row 2 (line 3): has another number of fields than the header"},
		{"csv: too many fields", "user,x\nu1,1,2\n", user, "in: row 1 (line 2): has another number of fields than the header"},
		{"csv: open quote", "user\nu1\n\"u2\n", user, `in: row 2 (line 3): a quote is not closed, or something follows it; inside quotes write " as ""`},
		{"csv: bare quote", "user\na\"b\n", user, `in: row 1 (line 2): a " stands in a field that is not quoted`},
		{"csv: quote in the header", "us\"er\nu\n", user, `in: header: a " stands in a field that is not quoted`},
		{"csv: empty key field", "user,x\nu1,1\n,2\n", user, `in: row 2 (line 3), column "user": is empty, and the key needs it`},
		{"csv: a line of a spreadsheet", "sep=;\nuser;x\nu1;1\n", input.RowNeeds{Fields: []string{"user"}, OfKey: 9, Delimiter: ';'}, `in: header: is the line "sep=", by which a spreadsheet says how columns are parted: take it out, the next line is the header`},
		{"csv: nameless column", "user,\nu1,1\n", user, "in: header: column 2 has no name"},
		{"csv: two columns of one name", "user,user\nu1,1\n", user, `in: header: two columns are named "user"`},
		{"csv: no number", "user,amount\nu1,ten\n", input.RowNeeds{Fields: []string{"user"}, Numbers: []string{"amount"}, OfKey: 9}, `in: row 1 (line 2), column "amount": "ten" is not a JSON number`},
		{"csv: leading zero", "user,amount\nu1,007\n", input.RowNeeds{Fields: []string{"user"}, Numbers: []string{"amount"}, OfKey: 9}, `in: row 1 (line 2), column "amount": "007" is not a JSON number`},
		{"csv: spaced number", "user,amount\nu1, 7\n", input.RowNeeds{Fields: []string{"user"}, Numbers: []string{"amount"}, OfKey: 9}, `in: row 1 (line 2), column "amount": " 7" is not a JSON number`},
		{"csv: empty number", "user,amount\nu1,\n", input.RowNeeds{Fields: []string{"user"}, Numbers: []string{"amount"}, OfKey: 9}, `in: row 1 (line 2), column "amount": "" is not a JSON number`},
		{"csv: endless quote", "user\n\"" + strings.Repeat("x", input.RowBytesMax+1<<20), user, "in: row 1: is longer than 10485760 bytes"},
		{"ndjson: --number", `{"user":"u"}`, input.RowNeeds{Fields: []string{"user"}, Numbers: []string{"amount"}, OfKey: 9}, "in: is NDJSON, whose lines are sent as they are; --number is for CSV"},
		{"ndjson: broken", "{\"user\":\"u1\"}\n{\"user\":}\n", user, "in: row 2: is not JSON: byte 9: invalid character '}' looking for beginning of value"},
		{"ndjson: two values", `{"user":"u1"} {"user":"u2"}`, user, "in: row 1: is not JSON: byte 15: invalid character '{' after top-level value"},
		{"ndjson: no object", "{\"user\":\"u1\"}\n7\n", user, "in: row 2: is not a JSON object"},
		{"ndjson: missing", "{\"user\":\"u1\"}\n{\"usr\":\"u2\"}\n", user, `in: row 2, column "user": is not there, and the key needs it`},
		{"ndjson: empty", `{"user":""}`, user, `in: row 1, column "user": is empty, and the key needs it`},
		{"ndjson: null", `{"user":null}`, user, `in: row 1, column "user": is null, and the key needs it`},
		{"ndjson: object", `{"user":{}}`, user, `in: row 1, column "user": is neither a string nor a number, and the key needs it`},
		{"ndjson: twice", `{"user":"a","user":"b"}`, user, `in: row 1, column "user": appears twice, so that its value is in doubt`},
		{"ndjson: NUL late", strings.Repeat("{\"user\":\"u\"}\n", 1000) + "\x00\n", user, "in: row 1001: holds a NUL byte"},
		{"ndjson: endless line", `{"user":"` + strings.Repeat("x", input.RowBytesMax), user, "in: row 1: is longer than 10485760 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := readAll(tt.in, tt.needs)
			var ie *input.RowError
			if !errors.As(err, &ie) {
				t.Fatalf("error %v, want an inputError", err)
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}

// A row of exactly the bound is taken; see "endless line" for more.
func TestRowAtTheBound(t *testing.T) {
	t.Parallel()
	line := `{"user":"u","x":"` + strings.Repeat("x", input.RowBytesMax-19) + `"}`
	rows, err := readAll(line+"\r\n", input.RowNeeds{Fields: []string{"user"}, OfKey: 1})
	if err != nil || len(rows) != 1 || len(rows[0].Body) != input.RowBytesMax {
		t.Fatalf("%d rows, %v; want one of %d bytes", len(rows), err, input.RowBytesMax)
	}
}

func FuzzRows(f *testing.F) {
	for _, s := range []string{
		"user,n\nu1,1\n", "\xef\xbb\xbfuser\n\"a\nb\"\n", "{\"user\":\"u\"}\n", "{\"user\":1}\r\n\n{\"user\":\"\\ud800\"}",
		"user\n\"", "[1]", "\x00", "user,user\n", " {\"user\":[]}", "user\r\r\nx", "user\n\n\nx\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		needs := input.RowNeeds{Fields: []string{"user"}, OfKey: 1}
		first, err := readAll(text, needs)
		again, errAgain := readAll(text, needs)
		if (err == nil) != (errAgain == nil) || len(first) != len(again) {
			t.Fatalf("two readings differ: %d rows, %v; %d rows, %v", len(first), err, len(again), errAgain)
		}
		if ie := (*input.RowError)(nil); err != nil && !errors.As(err, &ie) {
			t.Fatalf("error %v is no inputError", err)
		}
		last := 0
		for i, r := range first {
			if !json.Valid(r.Body) || string(again[i].Body) != string(r.Body) {
				t.Fatalf("row %d: body %q is not stable JSON", r.Number, r.Body)
			}
			if len(r.Fields) != 1 || r.Fields[0] == "" {
				t.Fatalf("row %d: fields %q", r.Number, r.Fields)
			}
			if r.Number <= last || r.Line < r.Number {
				t.Fatalf("row %d (line %d) comes after row %d", r.Number, r.Line, last)
			}
			last = r.Number
		}
	})
}

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// received is a server that keeps the bodies it gets, by key, and their types.
type received struct {
	*counted
	mu     sync.Mutex
	bodies map[string]string
	kinds  map[string]bool
}

func receiving(t *testing.T) *received {
	v := &received{bodies: map[string]string{}, kinds: map[string]bool{}}
	v.counted = serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.bodies[r.Header.Get("Idempotency-Key")] = string(body)
		v.kinds[r.Header.Get("Content-Type")] = true
		w.WriteHeader(http.StatusCreated)
	})
	return v
}

// A template spells nested JSON: cells in strings are text whatever they hold, and
// numbers keep their digits.
func TestBatchBody(t *testing.T) {
	t.Parallel()
	s := receiving(t)
	file := writeFile(t, "in.csv", "id,amount,paid,note\n"+
		"a,12.50,true,\"say \"\"hi\"\" \\ and\nmore \u2028 <b>\"\n"+
		"b,123456789012345678901234567890.10,false,\n"+
		"c,-1e400,true,\"\"\"},\"\"amount\"\":0\"\n")
	template := `{"amount": {amount:number}, "ok":{paid:bool}, "meta":{"order":"no {id}/{id}", "list":[{amount:number},"{{{note}}}"]}}`
	args := []string{"batch", file, "--url", s.url, "--key", "o:{id}", "--body"}
	run(t, append(args, template)...).want(t, exitOK)
	want := map[string]string{
		"idemp:o:a": `{"amount": 12.50, "ok":true, "meta":{"order":"no a/a", "list":[12.50,"{say \"hi\" \\ and\nmore \u2028 <b>}"]}}`,
		"idemp:o:b": `{"amount": 123456789012345678901234567890.10, "ok":false, "meta":{"order":"no b/b", "list":[123456789012345678901234567890.10,"{}"]}}`,
		"idemp:o:c": `{"amount": -1e400, "ok":true, "meta":{"order":"no c/c", "list":[-1e400,"{\"},\"amount\":0}"]}}`,
	}
	for key, body := range want {
		if s.bodies[key] != body {
			t.Errorf("%s: sent\n%s\nwant\n%s", key, s.bodies[key], body)
		}
	}
	if !s.kinds["application/json"] || len(s.kinds) != 1 {
		t.Errorf("content types %v", s.kinds)
	}
	// The same template from a file is the same body, so that nothing is sent again.
	run(t, append(args, "@"+writeFile(t, "body.json", template+"\n"))...).want(t, exitOK)
	if n := s.sends.Load(); n != 3 {
		t.Errorf("%d sends, want 3", n)
	}
}

// A form has the columns in their order, called what the header calls them, and works
// where the API takes nothing else.
func TestBatchForm(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []url.Values
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if err := r.ParseForm(); err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.PostForm.Get("amount") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got = append(got, r.PostForm)
		w.WriteHeader(http.StatusOK)
	})
	file := writeFile(t, "in.csv", "amount,currency,metadata[order],description\n100,eur,o1,a+b & c=d\n200,usd,o2,\"ä\n%\"\n")
	args := []string{"batch", file, "--url", s.url, "--key", "order:{metadata[order]}", "--profile", "stripe", "--form", "--workers", "1"}
	run(t, args...).want(t, exitOK)
	run(t, append(args, "-H", "Content-Type: application/x-www-form-urlencoded")...).want(t, exitOK)
	want := []url.Values{
		{"amount": {"100"}, "currency": {"eur"}, "metadata[order]": {"o1"}, "description": {"a+b & c=d"}},
		{"amount": {"200"}, "currency": {"usd"}, "metadata[order]": {"o2"}, "description": {"ä\n%"}},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	dry := run(t, append(args, "--dry-run", "--journal", file+".other.db")...).want(t, exitOK)
	if !strings.Contains(dry.out, `"body":"amount=100&currency=eur&metadata%5Border%5D=o1&description=a%2Bb+%26+c%3Dd"`) {
		t.Errorf("stdout %s", dry.out)
	}
}

// Whatever is wrong with a template, or with a cell for it, is said before anything
// is sent. The golden file has each message.
func TestGoldenBodyMessages(t *testing.T) {
	t.Parallel()
	s := refusing(t)
	file := writeFile(t, "in.csv", "id,amount,paid,note\na,1,true,x\nb,,no,y\nc,1.,TRUE,z\nd,007,,z\n")
	ndjson := writeFile(t, "in.ndjson", "{\"id\":1}\n")
	null := writeFile(t, "null.ndjson", "{\"id\":1,\"a\":{\"b\":null}}\n{\"id\":2,\"a\":{}}\n{\"id\":3,\"a[b]\":1,\"a\":{\"b\":2}}\n{\"id\":4,\"\":1}\n")
	template := writeFile(t, "body.json", `{"a":{amount}}`)
	long := writeFile(t, "long.json", `"`+strings.Repeat("x", bodyFileBytesMax)+`"`)
	names := strings.NewReplacer(file, "in.csv", null, "null.ndjson", ndjson, "in.ndjson", template, "body.json", long, "long.json")
	var all strings.Builder
	for _, args := range [][]string{
		{file, "--body", ""}, {file, "--body", " \n"}, {file, "--body", "@" + file + "x"}, {file, "--body", "@" + template}, {file, "--body", "@" + long},
		{file, "--body", `{"a":{amount}}`}, {file, "--body", `{"a":{amount:numbr}}`}, {file, "--body", `{"a":{amount:number`}, {file, "--body", `{'a':1}`},
		{file, "--body", `{"a":"{id"}`}, {file, "--body", `{"a":"}"}`}, {file, "--body", `{"a":"{}"}`}, {file, "--body", `{"{id}":1}`}, {file, "--body", `{"{id}" :1}`},
		{file, "--body", `{"a":1{amount:number}}`}, {file, "--body", `{"a":-{amount:number}}`}, {file, "--body", `{ {id:number}:1}`},
		{file, "--body", `{"a":"\u{id}0041"}`}, {file, "--body", `{"a":"\{id}"}`}, {file, "--body", `{"a":1,}`}, {file, "--body", `{"a":1}{"b":2}`}, {file, "--body", `{"a`},
		{file, "--body", "{\"a\":\"\xff\"}"},
		{file, "--body", `{"a":"{sum}"}`}, {file, "--body", `{"a":"{amount:number}"}`}, {file, "--body", `{"a":{sum:number}}`},
		{file, "--body", `{"a":{amount:number}}`}, {file, "--body", `{"a":{paid:bool}}`},
		{file, "--body", `{"a":[{"b":null}]}`, "--form"}, {file, "--body", `{"a":{"b":[]}}`, "--form"}, {file, "--body", `["{id}"]`, "--form"}, {file, "--body", `{}`, "--number", "amount"}, {file, "--form", "--number", "amount"},
		{file, "--form", "-H", "Content-Type: application/json"}, {file, "-H", "Content-Type: application/x-www-form-urlencoded; charset=utf-8"},
		{file, "--profile", "stripe", "--number", "amount"}, {file, "--profile", "stripe", "-H", "Content-Type: application/json"},
		{ndjson, "--body", `{}`}, {null, "--form"}, {ndjson, "--number", "id"},
	} {
		got := run(t, append([]string{"batch", "--url", s.url, "--key", "o:{id}"}, args...)...).want(t, exitUsage)
		if got.out != "" {
			t.Errorf("%q: stdout %q", args, got.out)
		}
		fmt.Fprintf(&all, "%s\n%s\n", names.Replace(strings.Join(quoted(args), " ")), names.Replace(got.err))
	}
	golden(t, "body-messages", all.String())
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

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
	most := (rowBytesMax - 3*101) / 101
	if n, err := fill(most); err != nil || n > rowBytesMax {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := fill(most + 4); err == nil {
		t.Error("too long a body was made")
	}
}

// shape is a JSON text without what stands in its strings, numbers and booleans.
func shape(t *testing.T, text []byte) string {
	t.Helper()
	var b strings.Builder
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if d, is := token.(json.Delim); is {
			b.WriteRune(rune(d))
		} else {
			fmt.Fprintf(&b, "%T ", token)
		}
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
		for _, needs := range []rowNeeds{{body: tm, fields: []string{"id"}}, {form: true, fields: []string{"id"}}, {body: tm, form: true, fields: []string{"id"}}} {
			rows, err := newRows("in.csv", bytes.NewReader(in.Bytes()), needs)
			if err != nil {
				return // no text file
			}
			r, err := rows.next()
			if refused := checkText(cell) != nil; err != nil || refused {
				if (err != nil) != refused {
					t.Errorf("%q: %v", cell, err)
				}
				return
			}
			got := cellOf(t, r.body, needs.form, needs.body != nil)
			if got != want {
				t.Errorf("%q came out as %q: %q", want, got, r.body)
			}
		}
	})
}

// cellOf takes the cell out of the body again.
func cellOf(t *testing.T, body []byte, form, template bool) string {
	t.Helper()
	if form && template {
		values, err := url.ParseQuery(string(body))
		if err != nil || len(values) != 2 || values.Get("c") != "true" {
			t.Errorf("%q: %v", body, err)
		}
		return strings.TrimSuffix(strings.TrimPrefix(values.Get("a[b][0]"), "<"), ">")
	}
	if form {
		values, err := url.ParseQuery(string(body))
		if err != nil || len(values) != 2 || values.Get("id") != "1" {
			t.Errorf("%q: %v", body, err)
		}
		return values.Get("cell")
	}
	var v struct {
		A struct{ B []string }
		C bool
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil || !v.C || len(v.A.B) != 1 {
		t.Fatalf("%q: %v", body, err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(v.A.B[0], "<"), ">")
}

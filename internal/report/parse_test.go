package report_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/report"
)

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Cases[0].Try = []string{"curl http://127.0.0.1:8080/"} // else writers make it
	text := write(t, report.JSON, report.Options{ShowSecrets: true}, r)
	got, err := report.Parse(strings.NewReader("\uFEFF" + text))
	if err != nil {
		t.Fatal(err)
	}
	if again := write(t, report.JSON, report.Options{ShowSecrets: true}, got); again != text {
		t.Errorf("written again it differs:\n%s\n%s", again, text)
	}
	if !reflect.DeepEqual(find(t, got, "scope/other-path-not-answered"), find(t, r, "scope/other-path-not-answered")) {
		t.Error("a case changed on its way through JSON")
	}
	if !strings.HasSuffix(text, "}\n") {
		t.Error("no line break at the end")
	}
}

// TestJSONSchema pins the names that others read.
func TestJSONSchema(t *testing.T) {
	t.Parallel()
	r := report.New(report.KindCheck)
	r.Cases = []report.Case{{ID: "a/b", Level: report.Must, Verdict: report.Pass}}
	var top struct {
		Cases   []map[string]any
		Summary map[string]int
	}
	text := write(t, report.JSON, report.Options{}, r)
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, "{\n  \"schema\": 1,\n  \"kind\": \"check\",") {
		t.Errorf("the report starts %q", text[:40])
	}
	for _, name := range []string{"id", "level", "verdict", "witness", "rule", "spec", "ms", "exchanges"} {
		if top.Cases[0][name] == nil {
			t.Errorf("case: %s is missing or null", name)
		}
	}
	for _, v := range report.Verdicts() {
		if _, there := top.Summary[string(v)]; !there {
			t.Errorf("summary: %s is missing", v)
		}
	}
	if top.Summary["pass"] != 1 || top.Cases[0]["witness"] != "none" {
		t.Errorf("summary %v, witness %v", top.Summary, top.Cases[0]["witness"])
	}
}

func TestWritersLeaveTheReportAlone(t *testing.T) {
	t.Parallel()
	r := sample()
	for _, f := range report.Formats() {
		write(t, f, report.Options{}, r)
	}
	if !reflect.DeepEqual(r, sample()) {
		t.Error("a writer changed the report")
	}
}

// TestParseCountsAnew: a summary that does not fit the cases is never believed.
func TestParseCountsAnew(t *testing.T) {
	t.Parallel()
	r, err := report.Parse(strings.NewReader(`{"schema":1,"summary":{"pass":9},"cases":[{"id":"a/b","level":"must","verdict":"fail"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := (report.Summary{Fail: 1}); r.Summary != want {
		t.Errorf("the summary is %+v, want %+v", r.Summary, want)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const good = `{"schema":1,"cases":[{"id":"a/b","level":"must","verdict":"pass","witness":"none","ms":1}]}`
	if _, err := report.Parse(strings.NewReader(good)); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	for _, test := range []struct{ name, from, to, says string }{
		{"empty", good, " \n", "empty"},
		{"not JSON", good, "<html>", "line 1: not JSON"},
		{"an array", good, "[]", "a JSON object was expected, not array"},
		{"cut", good, good[:len(good)-3], "not JSON"},
		{"trailing", good, good + "\n{}", "line 2: not JSON"},
		{"schema", `"schema":1`, `"schema":2`, "schema is 2"},
		{"no schema", `"schema":1,`, "", "schema is 0"},
		{"kind", `"schema":1`, `"schema":1,"kind":"x"`, `kind "x"`},
		{"type", `"ms":1`, `"ms":"1"`, "cases.ms cannot be a string"},
		{"verdict", `"pass"`, `"passed"`, `case 1 ("a/b"): verdict "passed" is not one of pass, fail`},
		{"no verdict", `"verdict":"pass",`, "", `verdict "" is not one of`},
		{"level", `"must"`, `"MUST"`, `level "MUST" is not one of safety`},
		{"witness", `"none"`, `"eyes"`, `witness "eyes"`},
		{"id", `"a/b"`, `"a b\n"`, "id is not"},
		{"no id", `"a/b"`, `""`, "id is not"},
		{"long id", `"a/b"`, `"` + strings.Repeat("a", 129) + `"`, "id is not"},
		{"time", `"ms":1`, `"ms":-1`, "ms -1 is out of range"},
		{"run time", `"schema":1`, `"schema":1,"ms":1e13`, "out of range"},
		{"twice", `}]`, `},{"id":"a/b","level":"must","verdict":"pass"}]`, "another case has the same id"},
		{"finding", `"ms":1`, `"ms":1,"findings":[{"verdict":"no"}]`, `finding 1: verdict "no"`},
		{"exchange", `"ms":1`, `"ms":1,"exchanges":[{"at_ms":-1}]`, "exchange 1: at_ms"},
		{"status", `"ms":1`, `"ms":1,"exchanges":[{"status":1000}]`, "exchange 1: status 1000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(good, test.from, test.to, 1)
			if text == good {
				t.Fatal("the row changes nothing")
			}
			_, err := report.Parse(strings.NewReader(text))
			if err == nil {
				t.Fatalf("%s was accepted", text)
			}
			if !errors.Is(err, report.ErrInvalid) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line that says %q", err, test.says)
			}
		})
	}
}

func TestParseBounds(t *testing.T) {
	t.Parallel()
	r := report.New(report.KindReferee)
	r.Cases = make([]report.Case, report.CasesMax+1)
	for i := range r.Cases {
		r.Cases[i] = report.Case{ID: "a/" + strings.Repeat("0", i%100) + string(rune('a'+i/100%26)) + strings.Repeat("1", i/2600), Level: report.Must, Verdict: report.Pass}
	}
	if err := r.Validate(); err == nil || !strings.Contains(err.Error(), "more than 10000") {
		t.Errorf("one case too many: %v", err)
	}
	r.Cases = r.Cases[:report.CasesMax]
	if err := r.Validate(); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	one := &r.Cases[0]
	r.Cases = r.Cases[:1]
	one.Exchanges = make([]report.Exchange, report.ExchangesMax)
	if err := r.Validate(); err != nil {
		t.Errorf("exchanges at the bound: %v", err)
	}
	one.Exchanges = make([]report.Exchange, report.ExchangesMax+1)
	if err := r.Validate(); err == nil {
		t.Error("one exchange too many was accepted")
	}
	_, err := report.Parse(&endless{})
	if !errors.Is(err, report.ErrInvalid) || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("an endless file: %v", err)
	}
}

// endless is a file that never ends.
type endless struct{}

func (*endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestParseReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk")
	if _, err := report.Parse(failing{broken}); !errors.Is(err, broken) || errors.Is(err, report.ErrInvalid) {
		t.Errorf("got %v, want the reader's own error", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	for _, f := range report.Formats() {
		if err := report.Write(failing{full}, f, report.Options{}, sample()); !errors.Is(err, full) {
			t.Errorf("%s: %v, want the writer's error", f, err)
		}
	}
	if err := report.Write(failing{full}, report.JSON, report.Options{}, sample(), sample()); !errors.Is(err, report.ErrOneReport) {
		t.Errorf("two reports as JSON: %v", err)
	}
	if err := report.Write(failing{full}, report.HTML, report.Options{}); err == nil {
		t.Error("no report at all was written")
	}
	if err := report.Write(failing{full}, "pdf", report.Options{}, sample()); err == nil || errors.Is(err, full) {
		t.Errorf("an unknown format: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(write(f, report.JSON, report.Options{ShowSecrets: true}, sample())))
	f.Add([]byte(`{"schema":1,"cases":[{"id":"a/b","level":"must","verdict":"pass","exchanges":[{"request":{}}]}]}`))
	f.Add([]byte(`{"schema":1,"started":"9999-12-31T23:59:59+23:59","config":{"":""},"cases":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := report.Parse(strings.NewReader(string(data)))
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x1b") || !strings.HasPrefix(err.Error(), "report: ") {
				t.Fatalf("the error is not one plain line: %q", err)
			}
			return
		}
		text := write(t, report.JSON, report.Options{ShowSecrets: true}, r)
		again, err := report.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if got := write(t, report.JSON, report.Options{ShowSecrets: true}, again); got != text {
			t.Fatalf("written again it differs:\n%s\n%s", got, text)
		}
		for _, format := range report.Formats() {
			write(t, format, report.Options{Verbose: true, Color: true}, r)
		}
	})
}

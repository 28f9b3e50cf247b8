package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/report"
)

func TestWorst(t *testing.T) {
	t.Parallel()
	order := []report.Verdict{report.Skip, report.Pass, report.Seen, report.Inconclusive, report.Warn, report.Error, report.Fail}
	for i, worse := range order {
		for _, better := range order[:i] {
			if got := report.Worst(better, worse, better); got != worse {
				t.Errorf("Worst(%s, %s) = %s", better, worse, got)
			}
			if got := report.Worst(worse, better); got != worse {
				t.Errorf("Worst(%s, %s) = %s", worse, better, got)
			}
		}
	}
	if got := report.Worst(); got != report.Skip {
		t.Errorf("the worst of nothing is %s, want skip: nothing was judged", got)
	}
	if got, want := report.Verdict("").Severity(), report.Error.Severity(); got != want {
		t.Errorf("no verdict ranks %d, want %d, that of an error", got, want)
	}
}

func TestEveryNameIsValid(t *testing.T) {
	t.Parallel()
	for _, v := range report.Verdicts() {
		if !v.Valid() {
			t.Errorf("verdict %s is not valid", v)
		}
	}
	for _, l := range report.Levels() {
		if !l.Valid() {
			t.Errorf("level %s is not valid", l)
		}
	}
	for _, w := range report.Witnesses() {
		if !w.Valid() {
			t.Errorf("witness %s is not valid", w)
		}
	}
	if report.Verdict("").Valid() || report.Level("Safety").Valid() || report.Witness("").Valid() {
		t.Error("an empty or capitalised name is valid")
	}
	for _, f := range report.Formats() {
		if got, err := report.ParseFormat(string(f)); got != f || err != nil {
			t.Errorf("ParseFormat(%s) = %s, %v", f, got, err)
		}
	}
	if _, err := report.ParseFormat("pdf\n"); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("ParseFormat(pdf): %v, want one line", err)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	got := report.Summarize(sample().Cases)
	want := report.Summary{Pass: 4, Fail: 1, Warn: 1, Seen: 1, Skip: 1, Inconclusive: 1, Error: 1}
	if got != want {
		t.Errorf("Summarize = %+v, want %+v", got, want)
	}
	if got.Total() != 10 || got.Judged() != 6 {
		t.Errorf("Total %d, Judged %d, want 10 and 6", got.Total(), got.Judged())
	}
	for _, v := range report.Verdicts() {
		if n := want.Count(v); n != got.Count(v) || n == 0 {
			t.Errorf("Count(%s) = %d", v, n)
		}
	}
	unjudged := report.Summarize([]report.Case{{ID: "a/b"}})
	if unjudged.Error != 1 {
		t.Errorf("a case without a verdict counts as %+v, want an error", unjudged)
	}
}

func TestGradesAndGroups(t *testing.T) {
	t.Parallel()
	r := sample()
	grades := report.Grades(r.Cases)
	if grades[0].Level != report.Safety || grades[0].Pass != 2 || grades[0].Judged() != 3 {
		t.Errorf("the first grade is %+v, want safety 2 of 3", grades[0])
	}
	var names []string
	cases := 0
	for _, g := range r.Groups() {
		names = append(names, g.Name)
		cases += g.Total()
	}
	if want := []string{"scope", "replay", "conflict", "inflight", "net"}; !slices.Equal(names, want) || cases != len(r.Cases) {
		t.Errorf("groups %v with %d cases, want %v with %d", names, cases, want, len(r.Cases))
	}
	if got := (&report.Case{ID: "alone"}).Group(); got != "other" {
		t.Errorf("a case without a group is in %q", got)
	}
}

func TestNewMessage(t *testing.T) {
	t.Parallel()
	header := map[string][]string{"A": {"1"}}
	m := report.NewMessage(header, []byte("abc\xffdef"), 5)
	header["A"][0] = "2"
	if m.Header["A"][0] != "1" {
		t.Error("the message shares the caller's header")
	}
	if m.Body != "abc\uFFFDd" || m.BodyBytes != 7 {
		t.Errorf("body %q of %d bytes, want five bytes as text, of 7", m.Body, m.BodyBytes)
	}
	if m := report.NewMessage(nil, []byte("abc"), -1); m.Body != "" || m.BodyBytes != 3 {
		t.Errorf("with no room: %+v", m)
	}
	if got := report.Millis(1500 * time.Microsecond); got != 1.5 {
		t.Errorf("Millis = %v, want 1.5", got)
	}
}

func TestCurlLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, method, url string
		header            map[string][]string
		body, want        string
	}{
		{"plain", "GET", "http://127.0.0.1:1/a", nil, "", "curl -sSig -X GET http://127.0.0.1:1/a"},
		{
			"body", "POST", "http://h/p?a=b&c", map[string][]string{"Content-Type": {"application/json"}, "Content-Length": {"2"}, "Host": {"h"}}, `{"a":"it's"}`,
			`curl -sSig -X POST 'http://h/p?a=b&c' -H 'Content-Type: application/json' --data-raw '{"a":"it'\''s"}'`,
		},
		{"untyped", "POST", "http://h/", nil, "x", "curl -sSig -X POST http://h/ -H 'Content-Type:' --data-raw x"},
		{"two keys, one empty", "PUT", "http://h/", map[string][]string{"K": {"a", ""}}, "", "curl -sSig -X PUT http://h/ -H 'K: a' -H 'K;'"},
		{"control", "POST", "http://h/", map[string][]string{"Content-Type": {"a"}}, "a\n'\\\x1b\u202e", `curl -sSig -X POST http://h/ -H 'Content-Type: a' --data-raw $'a\n\'\\\033\342\200\256'`},
		{"not UTF-8", "POST", "http://h/", map[string][]string{"Content-Type": {"a"}}, "\xef\xff\ufffd\xef\xbf", `curl -sSig -X POST http://h/ -H 'Content-Type: a' --data-raw $'\357\377` + "\ufffd" + `\357\277'`},
		{"injection", "$(id)", "`id`;", nil, "", "curl -sSig -X '$(id)' '`id`;'"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := report.CurlLine(test.method, test.url, test.header, test.body); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

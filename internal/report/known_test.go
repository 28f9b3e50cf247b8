package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/report"
)

func known(t testing.TB, text string) *report.Known {
	t.Helper()
	k, err := report.ParseKnown(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// verdicts is a report with one case for each verdict, a/0, a/1, …
func verdicts(list ...report.Verdict) *report.Report {
	r := report.New(report.KindCheck)
	for i, v := range list {
		r.Cases = append(r.Cases, report.Case{ID: "a/" + string(rune('0'+i)), Level: report.Must, Verdict: v})
	}
	return r
}

// weighed is verdicts with cases of that level.
func weighed(level report.Level, list ...report.Verdict) *report.Report {
	r := verdicts(list...)
	for i := range r.Cases {
		r.Cases[i].Level = level
	}
	return r
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		r     *report.Report
		known string
		all   []string
		want  int
	}{
		{"all pass", verdicts(report.Pass, report.Warn, report.Seen, report.Skip, report.Inconclusive), "", nil, 0},
		{"a safety case is not decided", weighed(report.Safety, report.Pass, report.Inconclusive), "", nil, 4},
		{"a safety case is skipped", weighed(report.Safety, report.Pass, report.Skip), "", nil, 0},
		{"a failure outranks what is not decided", weighed(report.Safety, report.Fail, report.Inconclusive), "", nil, 1},
		{"a known failure beside what is not decided", weighed(report.Safety, report.Fail, report.Inconclusive), "a/0", nil, 4},
		{"the run was cut short", &report.Report{Cut: true, Cases: verdicts(report.Pass).Cases}, "", nil, 4},
		{"a failure", verdicts(report.Pass, report.Fail), "", nil, 1},
		{"a known failure", verdicts(report.Pass, report.Fail), "a/1", nil, 0},
		{"a known and a new failure", verdicts(report.Fail, report.Fail), "a/1", nil, 1},
		{"a known failure passes", verdicts(report.Pass, report.Pass), "a/1", nil, 1},
		{"a known failure is only warned about", verdicts(report.Warn), "a/0", nil, 1},
		{"a known failure was skipped", verdicts(report.Pass, report.Skip), "a/1", nil, 0},
		{"a known failure was inconclusive", verdicts(report.Inconclusive), "a/0", nil, 0},
		{"an unknown id", verdicts(report.Pass), "b/1", nil, 2},
		{"an id that this run left out", verdicts(report.Pass), "b/1", []string{"a/0", "b/1"}, 0},
		{"an id that is in no book", verdicts(report.Fail), "b/2", []string{"a/0", "b/1"}, 2},
		{"no case", verdicts(), "", nil, 2},
		{"only skips", verdicts(report.Skip, report.Skip), "", nil, 2},
		{"an error", verdicts(report.Pass, report.Error), "", nil, 3},
		{"an error outranks a failure", verdicts(report.Fail, report.Error), "", nil, 3},
		{"an error is never known", verdicts(report.Error), "a/0", nil, 3},
		{"no verdict", verdicts(report.Pass, ""), "", nil, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := report.ExitCode(test.r, known(t, test.known), test.all); got != test.want {
				t.Errorf("ExitCode = %d, want %d", got, test.want)
			}
			if test.known == "" {
				if got := report.ExitCode(test.r, nil, test.all); got != test.want {
					t.Errorf("without a list ExitCode = %d, want %d", got, test.want)
				}
			}
		})
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	j := known(t, "a/0\na/2\nz/z\n").Apply(verdicts(report.Fail, report.Fail, report.Pass, report.Pass), nil)
	for _, f := range []struct {
		name      string
		got, want []string
	}{
		{"accepted", j.Accepted, []string{"a/0"}}, {"new", j.New, []string{"a/1"}}, {"stale", j.Stale, []string{"a/2"}}, {"unknown", j.Unknown, []string{"z/z"}},
	} {
		if !slices.Equal(f.got, f.want) {
			t.Errorf("%s: %v, want %v", f.name, f.got, f.want)
		}
	}
}

func TestParseKnown(t *testing.T) {
	t.Parallel()
	k := known(t, "\uFEFF# a list\r\n\r\n  a/b   # because \r\nc/d\r\n#e/f\n")
	if !slices.Equal(k.IDs(), []string{"a/b", "c/d"}) || k.Why("a/b") != "because" || k.Why("c/d") != "" || k.Has("e/f") {
		t.Errorf("ids %v, why %q", k.IDs(), k.Why("a/b"))
	}
	for text, says := range map[string]string{
		"a/b\na b":                    `line 2: "a b" is not a case id`,
		"a/b\n\na/b":                  "line 3: a/b stands there twice",
		"ok\n\x1b[31m":                `line 2: "\x1b[31m" is not`,
		strings.Repeat("a", 1<<17):    "line 1",
		strings.Repeat("\n", 100_001): "more than 100000 lines",
	} {
		if _, err := report.ParseKnown(strings.NewReader(text)); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `\\`, `\`), says) {
			t.Errorf("%.20q: %v, want %s", text, err, says)
		}
	}
	var none *report.Known
	if none.Has("a") || none.Why("a") != "" || none.IDs() != nil {
		t.Error("a nil list lists something")
	}
}

func TestKnownIsShown(t *testing.T) {
	t.Parallel()
	o := report.Options{Known: known(t, "scope/other-path-not-answered # ticket 7\nreplay/status\n")}
	text := write(t, report.Text, o, sample())
	for _, want := range []string{"FAIL (known)  scope/other-path-not-answered", "ticket 7", "STALE  replay/status", "1 accepted, 0 new, 1 stale"} {
		if !strings.Contains(text, want) {
			t.Errorf("text does not say %q", want)
		}
	}
	for _, f := range []report.Format{report.HTML, report.Markdown} {
		page := write(t, f, o, sample())
		for _, want := range []string{"ticket 7", "known", "take it off the list"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s does not say %q", f, want)
			}
		}
	}
}

package report_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/report"
)

func TestText(t *testing.T) {
	t.Parallel()
	text := write(t, report.Text, report.Options{Width: 250}, sample())
	last := -1
	for _, want := range []string{
		"fiber v3.1.0\n", "seed 42\n", "\nCASES\n", "\nscope  fail 1   skip 1\n", "needs a second principal: --as\n", "replay  pass 2", "Idempotent-Replayed: true\n",
		"\nEVIDENCE\n", "ERROR  net/abort-then-retry-resolves", "→ reset by peer\n",
		"FAIL  scope/other-path-not-answered  safety · 12 ms · counted · failed 3/3\n", "A key used on one operation", "draft-07 §2.2, field practice",
		"POST /payments  key 8e03978e", "→ 201", "[payments 1, refunds 0]", "POST /refunds  same key", "← the payment's answer\n", "no key  → 200",
		"the refund was not executed", "expected      201 with", "actual        201 {", "effects       payments 1", "impact        A refund is",
		"fix           Make the operation a part of", "      try\n        RUN=$(date +%s)\n", "        curl -sSig -X POST http://127.0.0.1:8080/payments",
		"\nTOTALS\n", "fiber v3.1.0 · 10 cases · 6.1 s · 143 requests\n", "\nSafety    2 of 3, 1 failed, 1 skipped\n", "\nPolicy    0 of 1, 1 inconclusive\n",
		"pass 4   fail 1   warn 1   seen 1   skip 1   inconclusive 1   error 1\n",
		"\n1 case of 10 failed\n  error  net/abort-then-retry-resolves  liveness\n", "  fail   scope/other-path-not-answered  safety\n         201 {\"id\":\"payments_1\"}: the payment's answer\n",
	} {
		at := strings.Index(text[max(last, 0):], want)
		if at < 0 {
			t.Fatalf("%q is missing, or in the wrong place, in\n%s", want, text)
		}
		last = max(last, 0) + at
	}
	if strings.Contains(text, "\x1b") {
		t.Error("colour without Options.Color")
	}
	if strings.Contains(text, "PASS") || !strings.Contains(write(t, report.Text, report.Options{Verbose: true}, sample()), "PASS  replay/status") {
		t.Error("the evidence of what passed belongs into the verbose text only")
	}
}

func TestTextColor(t *testing.T) {
	t.Parallel()
	colored := write(t, report.Text, report.Options{Color: true}, sample())
	if !strings.Contains(colored, "\x1b[31mFAIL\x1b[0m") || !strings.Contains(colored, "\x1b[32mpass") {
		t.Error("fail is not red, or pass not green")
	}
	plain := regexp.MustCompile(`\x1b\[[0-9]+m`).ReplaceAllString(colored, "")
	trailing := regexp.MustCompile(` +\n`)
	if plain = trailing.ReplaceAllString(plain, "\n"); plain != write(t, report.Text, report.Options{}, sample()) {
		t.Error("colour changes more than colours")
	}
}

func TestTextBoundsABurst(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Cases = []report.Case{burstCase(64)}
	r.Cases[0].Verdict = report.Fail
	for i := range r.Cases[0].Exchanges {
		r.Cases[0].Exchanges[i].Status = 400 + i%2
	}
	text := write(t, report.Text, report.Options{}, r)
	if got := strings.Count(text, "POST /payments"); got != 12 || !strings.Contains(text, "… 52 more lines of exchanges in the JSON report") {
		t.Errorf("%d exchanges are shown:\n%s", got, text)
	}
}

// TestTextFolds: what is the same several times in a row is one line.
func TestTextFolds(t *testing.T) {
	t.Parallel()
	r := sample()
	c := burstCase(14)
	c.Verdict, c.Findings = report.Fail, []report.Finding{{Verdict: report.Fail, Text: "two effects"}, {Verdict: report.Fail, Text: "two effects"}, {Verdict: report.Pass, Text: "an answer"}}
	r.Cases = []report.Case{c}
	for _, f := range []report.Format{report.Text, report.Markdown} {
		text := write(t, f, report.Options{}, r)
		for _, want := range []string{"→ 409 ×2", "→ 201", "→ 409 ×11"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", f, want, text)
			}
		}
		if got := strings.Count(text, "→ 409"); got != 2 {
			t.Errorf("%s has %d lines of 409, want 2", f, got)
		}
	}
	text := write(t, report.Text, report.Options{}, r)
	if strings.Count(text, "two effects ×2") != 1 || strings.Count(text, "two effects") != 1 {
		t.Errorf("the findings are not folded:\n%s", text)
	}
}

// TestTextBreaksBetweenWords: no line is longer than it may be, unless it is one
// long word or a command, and putting the lines together gives every word back.
func TestTextBreaksBetweenWords(t *testing.T) {
	t.Parallel()
	r := sample()
	long := strings.Repeat("eleven-long unbreakable ", 20) + strings.Repeat("x", 150) + " end"
	r.Cases[0].Actual, r.Cases[0].Fix, r.Cases[5].Reason, r.Cases[0].Exchanges[0].Note = long, long, long, long
	for _, width := range []int{0, 80, 140} {
		text := write(t, report.Text, report.Options{Width: width}, r)
		limit := width
		if limit == 0 {
			limit = 100
		}
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			words := strings.Fields(line)
			if len([]rune(line)) > limit && len(words) > 3 && !strings.Contains(line, "curl ") && !strings.Contains(line, "${") && !strings.HasPrefix(line, "oncehttp") {
				t.Errorf("width %d: %d columns: %s", width, len([]rune(line)), line)
			}
			for _, word := range words {
				if strings.HasPrefix("unbreakable", word) && word != "unbreakable" {
					t.Errorf("width %d: a word was broken: %s", width, line)
				}
			}
		}
		if !strings.Contains(text, strings.Repeat("x", 150)) {
			t.Errorf("width %d: the long word was broken", width)
		}
	}
}

// TestTextKeys: no key, an empty one and two quotes are told apart.
func TestTextKeys(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Cases = []report.Case{{ID: "key/a", Level: report.Must, Verdict: report.Fail, Rule: "r", Exchanges: []report.Exchange{
		{Method: "POST", URL: "/none", Status: 201},
		{Method: "POST", URL: "/empty", Status: 201, KeySent: true},
		{Method: "POST", URL: "/quotes", Status: 201, KeySent: true, Key: `""`},
		{Method: "POST", URL: "/stranger", Status: 201, KeySent: true, Key: `""`, Caller: "second"},
		{Method: "POST", URL: "/anonymous", Status: 201, KeySent: true, Key: "k", Caller: "none"},
	}}}
	text := write(t, report.Text, report.Options{}, r)
	for _, want := range []string{
		"POST /none  no key  → 201", "POST /empty  empty key  → 201", `POST /quotes  key ""  → 201`,
		"POST /stranger  (as the second caller)  same key", "POST /anonymous  (without credentials)  key k",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	page := write(t, report.HTML, report.Options{}, r)
	for _, want := range []string{`<span class="quiet">none</span>`, `<span class="quiet">empty</span>`, `title="&#34;&#34;"`, "(as the second caller)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// TestHeadline: what was not decided is never hidden behind what did not fail.
func TestHeadline(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		r    *report.Report
		want string
	}{
		{weighed(report.Safety, report.Pass, report.Pass), "No violation was seen"},
		{weighed(report.Safety, report.Pass, report.Inconclusive, report.Inconclusive), "No failure, but 2 safety cases were not decided"},
		{weighed(report.Must, report.Pass, report.Inconclusive), "No failure, but 1 case was not decided"},
		{weighed(report.Safety, report.Inconclusive, report.Warn), "No failure, but 1 safety case was not decided"},
		{&report.Report{Schema: 1, Headline: "No effect could be seen.", Cases: weighed(report.Safety, report.Inconclusive).Cases}, "No effect could be seen. No failure, but 1 safety case was not decided"},
		{&report.Report{Schema: 1, Cut: true, Cases: verdicts(report.Pass).Cases}, "The run was cut short. No violation was seen"},
	} {
		for _, f := range []report.Format{report.Text, report.HTML, report.Markdown} {
			if text := write(t, f, report.Options{}, test.r); !strings.Contains(text, test.want) {
				t.Errorf("%s lacks %q:\n%.300s", f, test.want, text)
			}
		}
	}
	first := write(t, report.Text, report.Options{}, &report.Report{Schema: 1, Headline: "No effect could be seen.", Cases: verdicts(report.Pass).Cases})
	if !strings.HasPrefix(first, "No effect could be seen.") {
		t.Errorf("the first line is %.80q", first)
	}
}

func TestMatrixText(t *testing.T) {
	t.Parallel()
	second := betterSample()
	second.Cases = append(second.Cases[:len(second.Cases)-1], report.Case{ID: "replay/new", Level: report.Must, Verdict: report.Pass})
	text := write(t, report.Text, report.Options{}, sample(), second)
	for _, want := range []string{
		`(?m)^\[1\]  fiber v3\.1\.0  pass 4`, `(?m)^\[2\]  fiber v3\.2\.0  pass 5`,
		`(?m)^scope/other-path-not-answered +safety +fail +pass$`, `(?m)^inflight/burst +safety +pass +·$`, `(?m)^replay/new +must +· +pass$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s does not match\n%s", want, text)
		}
	}
	if strings.Index(text, "replay/new") > strings.Index(text, "conflict/") {
		t.Error("a case of the second report is not in its group")
	}
	markdown := write(t, report.Markdown, report.Options{}, sample(), sample())
	if !strings.Contains(markdown, `| fiber v3.1.0 &#35;1 | fiber v3.1.0 &#35;2 |`) || !strings.Contains(markdown, "| `scope/other-path-not-answered` | safety | ✗ fail | ✗ fail |") {
		t.Errorf("the Markdown table is\n%s", markdown)
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Cases[0].Actual = "a | b <script> *x* `y` @team #7\nline"
	r.Cases[0].Try = []string{"curl '```'"}
	text := write(t, report.Markdown, report.Options{}, r)
	for _, want := range []string{
		"## ✗ fiber v3.1.0\n", "| safety | 2 | 1 | · | · | 1 | · | · |\n", "| **all** | 4 | 1 | 1 | 1 | 1 | 1 | 1 |\n",
		"### ✗ `scope/other-path-not-answered`\n", `actual: a \| b &lt;script&gt; \*x\* \` + "`y\\`" + ` &#64;team &#35;7\\nline`,
		"````sh\ncurl '```'\n````\n", "| `scope/other-principal-not-answered` | skip | needs a second principal: --as |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	many := verdicts()
	for i := range 50 {
		many.Cases = append(many.Cases, report.Case{ID: "a/" + strings.Repeat("x", i+1), Level: report.Must, Verdict: report.Fail})
	}
	if text := write(t, report.Markdown, report.Options{}, many); strings.Count(text, "### ") != 40 || !strings.Contains(text, "… and 10 more failures.") {
		t.Error("the failures are not bounded")
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	old := verdicts(report.Pass, report.Fail, report.Fail, report.Pass, report.Pass, report.Fail, report.Skip)
	now := verdicts(report.Fail, report.Pass, report.Skip, report.Warn, report.Pass, report.Fail)
	now.Profile = "stripe"
	now.Cases = append(now.Cases, report.Case{ID: "b/new", Level: report.Must, Verdict: report.Pass}, report.Case{ID: "b/bad", Level: report.Must, Verdict: report.Fail})
	d := report.Diff(old, now)
	ids := func(list []report.Change) string {
		var b strings.Builder
		for _, c := range list {
			b.WriteString(c.ID + ":" + string(c.Old) + ">" + string(c.New) + " ")
		}
		return b.String()
	}
	for _, f := range [][3]string{
		{"broken", ids(d.Broken), "a/0:pass>fail b/bad:>fail "},
		{"fixed", ids(d.Fixed), "a/1:fail>pass "},
		{"changed", ids(d.Changed), "a/2:fail>skip a/3:pass>warn "},
		{"added", ids(d.Added), "b/new:>pass "},
		{"gone", ids(d.Gone), "a/6:skip> "},
		{"notes", strings.Join(d.Notes, "|"), "profile differs: none → stripe"},
	} {
		if f[1] != f[2] {
			t.Errorf("%s: %q, want %q", f[0], f[1], f[2])
		}
	}
	if d.Same != 2 || d.ExitCode() != report.ExitFailed {
		t.Errorf("%d the same, exit %d", d.Same, d.ExitCode())
	}
	var b strings.Builder
	if err := report.WriteDiff(&b, old, now, report.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"note: profile differs", "New failures\n  pass → fail", "Fixed\n  fail → pass", "2 new failures · 0 lost · 1 fixed · 2 changed · 1 new case · 1 gone · 2 the same\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &b)
		}
	}
	if !strings.HasSuffix(b.String()[:strings.LastIndex(b.String(), "\n2 new")], "\n") || strings.Index(b.String(), "New failures") < strings.Index(b.String(), "Fixed") {
		t.Error("the new failures are not last")
	}
}

func TestDiffExitCode(t *testing.T) {
	t.Parallel()
	pass, fail, broken := verdicts(report.Pass), verdicts(report.Fail), verdicts(report.Error)
	for _, test := range []struct {
		name     string
		old, now *report.Report
		want     int
	}{
		{"a safety case is only skipped now", weighed(report.Safety, report.Pass), weighed(report.Safety, report.Skip), 1},
		{"a safety case is not decided any more", weighed(report.Safety, report.Pass), weighed(report.Safety, report.Inconclusive), 1},
		{"a lighter case is skipped now", weighed(report.Must, report.Pass), weighed(report.Must, report.Skip), 0},
		{"same", fail, fail, 0}, {"fixed", fail, pass, 0}, {"broken", pass, fail, 1}, {"error", pass, broken, 3}, {"same error", broken, broken, 0}, {"new error", verdicts(), broken, 3},
	} {
		if got := report.Diff(test.old, test.now).ExitCode(); got != test.want {
			t.Errorf("%s: exit %d, want %d", test.name, got, test.want)
		}
	}
}

package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of the text form, in runes; the JSON form has the whole of it.
const (
	textBodyMax = 200
	textLineMax = 1000
	// textExchangesMax bounds the exchanges shown of one case: a burst has
	// hundreds that look alike.
	textExchangesMax = 12
)

// WriteText writes the report for a terminal: the cases grouped by the prefix
// of their id, then the failures with their evidence, then the totals by level.
// Nothing that a server sent can act on the terminal.
func WriteText(w io.Writer, r *Report, o Options) error {
	t := &texter{o: o}
	r = prepare(r, o)
	t.head(r)
	t.groups(r)
	t.evidence(r)
	t.known(r)
	t.totals(r)
	return t.flush(w)
}

// texter builds the text; it is written in one piece, so that a report is never
// interleaved with other output.
type texter struct {
	b strings.Builder
	o Options
}

func (t *texter) flush(w io.Writer) error {
	if _, err := io.WriteString(w, t.b.String()); err != nil {
		return fmt.Errorf("report: text: %w", err)
	}
	return nil
}

// line writes one line. Its parts are made harmless by the caller (oneLine),
// since colours are escape sequences too.
func (t *texter) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.b.WriteString(strings.TrimRight(text, " ") + "\n")
}

func (t *texter) head(r *Report) {
	t.line("%s", t.paint(bold, oneLine(r.Title())))
	t.line("%s", t.paint(dim, oneLine(strings.Join(facts(r), " · "))))
	t.line("")
}

// facts are the short facts about a run that every format shows.
func facts(r *Report) []string {
	var list []string
	add := func(label, value string) {
		if value != "" {
			list = append(list, strings.TrimSpace(label+" "+value))
		}
	}
	add("", r.Suite)
	if r.Name != "" {
		add("", r.Target)
	}
	add("profile", r.Profile)
	if !r.Started.IsZero() {
		add("", r.Started.UTC().Format("2006-01-02 15:04:05Z"))
	}
	add("run", r.Run)
	add("seed", strconv.FormatUint(r.Seed, 10))
	return list
}

func (t *texter) groups(r *Report) {
	width := 0
	for i := range r.Cases {
		width = max(width, utf8.RuneCountInString(r.Cases[i].ID))
	}
	width = min(width, 48)
	for _, g := range r.Groups() {
		t.line("%s  %s", t.paint(bold, oneLine(g.Name)), t.paint(dim, counts(g.Summary, false)))
		for i := range g.Cases {
			c := &g.Cases[i]
			t.line("  %s  %s  %s  %s", t.verdict(c.Verdict, 12), pad(c.ID, width),
				t.paint(dim, pad(string(c.Level), 8)+"  "+pad(duration(c.MS), 7)+"  "+string(c.Witness)), oneLine(aside(c)))
		}
		t.line("")
	}
}

// aside is what a case that did not simply pass says in the list.
func aside(c *Case) string {
	switch c.Verdict {
	case Seen, Warn:
		return clip(c.Actual, 100)
	case Skip, Inconclusive, Error:
		return clip(c.Reason, 160)
	case Fail:
		return clip(c.Odds, 40)
	}
	return ""
}

// evidence shows what failed, the worst last, where the eye is.
func (t *texter) evidence(r *Report) {
	for _, v := range []Verdict{Pass, Skip, Seen, Inconclusive, Warn, Error, Fail} {
		if v != Fail && v != Error && !t.o.Verbose {
			continue
		}
		for i := range r.Cases {
			if r.Cases[i].Verdict == v {
				t.details(&r.Cases[i])
			}
		}
	}
}

func (t *texter) details(c *Case) {
	label := strings.ToUpper(string(c.Verdict))
	if c.Verdict == Fail && t.o.Known.Has(c.ID) {
		label += " (known)"
	}
	t.line("%s  %s  %s", t.paint(color(c.Verdict), label), t.paint(bold, c.ID),
		t.paint(dim, strings.Join(nonEmpty(string(c.Level), duration(c.MS), string(c.Witness), oneLine(c.Odds)), " · ")))
	t.prose("", c.Rule)
	t.prose("source    ", refs(c.Spec))
	for i := range c.Exchanges[:min(len(c.Exchanges), textExchangesMax)] {
		var before *Exchange
		if i > 0 {
			before = &c.Exchanges[i-1]
		}
		t.prose("", exchangeLine(&c.Exchanges[i], before))
	}
	if more := len(c.Exchanges) - textExchangesMax; more > 0 {
		t.prose("", "… "+plural(more, "more exchange")+" in the JSON report")
	}
	for _, f := range c.Findings {
		t.prose(pad(string(f.Verdict), 10), f.Text)
	}
	t.prose("expected  ", c.Expected)
	t.prose("actual    ", c.Actual)
	t.prose("effects   ", c.Effects)
	t.prose("reason    ", c.Reason)
	t.prose("impact    ", c.Impact)
	t.prose("known     ", t.o.Known.Why(c.ID))
	t.prose("try       ", c.Curl)
	t.line("")
}

// prose writes one indented line, and none for an empty text. A curl line is
// never cut: half a command is worse than a long one.
func (t *texter) prose(label, text string) {
	if text == "" {
		return
	}
	if text = oneLine(text); label != "try       " {
		text = clip(text, textLineMax)
	}
	t.line("      %s%s", t.paint(dim, label), text)
}

func nonEmpty(list ...string) []string {
	kept := list[:0]
	for _, s := range list {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

func refs(list []Ref) string {
	names := make([]string, len(list))
	for i, ref := range list {
		names[i] = ref.Name
	}
	return strings.Join(names, ", ")
}

// exchangeLine is one exchange in one line: what was sent, what came, what the
// witness saw, and what to look at.
func exchangeLine(x, before *Exchange) string {
	parts := nonEmpty(x.Lane, x.Method+" "+x.URL, keyNote(x, before))
	if x.Request != nil && x.Request.Body != "" {
		parts = append(parts, clip(x.Request.Body, textBodyMax))
	}
	parts = append(parts, "→ "+answer(x))
	if x.Response != nil && x.Response.Body != "" {
		parts = append(parts, clip(x.Response.Body, textBodyMax))
	}
	if x.Effects != "" {
		parts = append(parts, "["+x.Effects+"]")
	}
	if x.Note != "" {
		parts = append(parts, "← "+x.Note)
	}
	return strings.Join(parts, "  ")
}

func keyNote(x, before *Exchange) string {
	switch {
	case x.Key == "":
		return "no key"
	case before != nil && before.Key == x.Key:
		return "same key"
	}
	return "key " + clip(x.Key, 40)
}

// answer is the status, or why there is none.
func answer(x *Exchange) string {
	switch {
	case x.Status != 0 && x.Error != "":
		return strconv.Itoa(x.Status) + ", then " + x.Error
	case x.Status != 0:
		return strconv.Itoa(x.Status)
	case x.Error != "":
		return x.Error
	}
	return "no answer"
}

// known says what a list of known failures changes in the end.
func (t *texter) known(r *Report) {
	if t.o.Known == nil {
		return
	}
	j := t.o.Known.Apply(r, nil)
	for _, id := range j.Stale {
		t.line("%s  %s is listed as a known failure and does not fail: take it off the list", t.paint(red, "STALE"), id)
	}
	t.line("known failures: %d accepted, %d new, %d stale", len(j.Accepted), len(j.New), len(j.Stale))
	t.line("")
}

func (t *texter) totals(r *Report) {
	t.line("%s", t.paint(bold, oneLine(strings.Join(nonEmpty(r.Title(), plural(len(r.Cases), "case"),
		duration(r.MS), plural(r.Requests, "request")), " · "))))
	var grades []string
	for _, g := range Grades(r.Cases) {
		if g.Judged() > 0 {
			grades = append(grades, fmt.Sprintf("%s %d/%d", title(string(g.Level)), g.Pass, g.Judged()))
		}
	}
	if len(grades) > 0 {
		t.line("%s", strings.Join(grades, "   "))
	}
	t.line("%s", counts(r.Summary, true))
}

// counts spells out a summary; all seven, or those that are not zero.
func counts(s Summary, all bool) string {
	var parts []string
	for _, v := range Verdicts() {
		if n := s.Count(v); n > 0 || all {
			parts = append(parts, fmt.Sprintf("%s %d", v, n))
		}
	}
	return strings.Join(parts, "   ")
}

// title is s with its first letter, which is ASCII, as a capital.
func title(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

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
	// hundreds of similar ones.
	textExchangesMax = 12
)

// WriteText writes the report for a terminal: the cases grouped by the prefix
// of their id, then the failures with their evidence, then the totals by level.
// The failures stand in a list at the end, before the reader's eyes. No text sent by a
// server can act on the terminal. Lines are broken between words.
func WriteText(w io.Writer, r *Report, o Options) error {
	t := &texter{o: o}
	r = prepare(r, o)
	t.head(r)
	t.heading("Cases")
	t.groups(r)
	t.evidence(r)
	t.heading("Totals")
	t.known(r)
	t.totals(r)
	t.failures(r)
	return t.writeTo(w)
}

// texter builds the text. It is written in one piece: so a report is never
// interleaved with other output.
type texter struct {
	b strings.Builder
	o Options
}

// writeTo writes the whole text; it is called once, at the end.
func (t *texter) writeTo(w io.Writer) error {
	if _, err := io.WriteString(w, t.b.String()); err != nil {
		return fmt.Errorf("report: text: %w", err)
	}
	return nil
}

// line writes one line, without blanks at its end. The caller must have made its parts harmless by oneLine: line itself cannot, since colours are
// escape sequences, too.
func (t *texter) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.b.WriteString(strings.TrimRight(text, " ") + "\n")
}

// heading writes a heading and an empty line.
func (t *texter) heading(text string) {
	t.line("%s", t.paint(bold, strings.ToUpper(text)))
	t.line("")
}

// head writes the report's headline, its title and the facts of the run.
func (t *texter) head(r *Report) {
	if r.Headline != "" {
		t.block("", r.Headline)
	}
	t.line("%s", t.paint(bold, oneLine(r.Title())))
	t.line("%s", t.paint(dim, oneLine(strings.Join(facts(r), " · "))))
	t.line("")
}

// widthDefault is the width of lines, in columns.
const widthDefault = 100

// block writes a text as lines of whole words behind an indent. A word longer
// than a line stands on one of its own, whole.
func (t *texter) block(indent, text string) {
	for _, line := range wrap(oneLine(text), t.width()-utf8.RuneCountInString(indent)) {
		t.line("%s%s", indent, line)
	}
}

// width returns the width of lines, in columns.
func (t *texter) width() int {
	if t.o.Width > 0 {
		return t.o.Width
	}
	return widthDefault
}

// wrap breaks text between words into lines of at most width runes, and never in a word: a longer one makes a longer line. Spaces inside a line stay.
func wrap(text string, width int) []string {
	var lines []string
	for utf8.RuneCountInString(text) > width {
		cut, runes := -1, 0
		for i, r := range text {
			if r == ' ' && i > 0 && (runes <= width || cut < 0) {
				cut = i
			}
			if runes++; runes > width && cut > 0 {
				break
			}
		}
		if cut < 0 {
			break
		}
		lines = append(lines, strings.TrimRight(text[:cut], " "))
		text = strings.TrimLeft(text[cut:], " ")
	}
	return append(lines, text)
}

// facts returns the short facts about a run, for every format.
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

// groups writes one line for each case, group by group, with a heading for each group.
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
			t.line("  %s  %s  %s", t.verdict(c.Verdict, 12), pad(c.ID, width),
				t.paint(dim, pad(string(c.Level), 8)+"  "+pad(duration(c.MS), 7)+"  "+string(c.Witness)))
			if text := aside(c); text != "" {
				t.block(strings.Repeat(" ", 16), text)
			}
		}
		t.line("")
	}
}

// aside returns the short text beside a case in the list of all cases; empty for Pass.
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

// evidence writes the failures and errors with their details, the worst last. With Verbose it writes all cases.
func (t *texter) evidence(r *Report) {
	shown := false
	for _, v := range []Verdict{Pass, Skip, Seen, Inconclusive, Warn, Error, Fail} {
		if v != Fail && v != Error && !t.o.Verbose {
			continue
		}
		for i := range r.Cases {
			if r.Cases[i].Verdict != v {
				continue
			}
			if !shown {
				t.heading("Evidence")
			}
			t.details(&r.Cases[i])
			shown = true
		}
	}
}

// details writes one case with its evidence.
func (t *texter) details(c *Case) {
	label := strings.ToUpper(string(c.Verdict))
	if c.Verdict == Fail && t.o.Known.Has(c.ID) {
		label += " (known)"
	}
	t.line("%s  %s  %s", t.paint(color(c.Verdict), label), t.paint(bold, c.ID),
		t.paint(dim, strings.Join(nonEmpty(string(c.Level), duration(c.MS), string(c.Witness), oneLine(c.Odds)), " · ")))
	t.prose("rule", c.Rule)
	t.prose("source", refs(c.Spec))
	lines := exchangeLines(c.Exchanges)
	for _, line := range lines[:min(len(lines), textExchangesMax)] {
		t.prose("sent", line)
	}
	if more := len(lines) - textExchangesMax; more > 0 {
		t.prose("", "… "+plural(more, "more line")+" of exchanges in the JSON report")
	}
	for _, line := range findingLines(c.Findings) {
		if line[1] != "expected "+c.Expected+", saw "+c.Actual { // said below
			t.prose(line[0], line[1])
		}
	}
	t.prose("expected", c.Expected)
	t.prose("actual", c.Actual)
	t.prose("effects", c.Effects)
	t.prose("reason", c.Reason)
	t.prose("impact", c.Impact)
	if c.Verdict == Fail || c.Verdict == Warn {
		t.prose("fix", c.Fix)
	}
	t.prose("known", t.o.Known.Why(c.ID))
	for i, line := range c.Try {
		t.command(i == 0, line)
	}
	t.line("")
}

// findingLines returns the findings as pairs of verdict and text. Equal findings in a row are one line with their number.
func findingLines(list []Finding) [][2]string {
	var lines [][2]string
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n] == list[i] {
			n++
		}
		text := list[i].Text
		if n > 1 {
			text += fmt.Sprintf(" ×%d", n)
		}
		lines = append(lines, [2]string{string(list[i].Verdict), text})
		i += n
	}
	return lines
}

// labelWidth is the column of labels in the evidence.
const labelWidth = 14

// prose writes one text behind its label, and nothing for an empty text.
func (t *texter) prose(label, text string) {
	if text == "" {
		return
	}
	text = clip(oneLine(text), textLineMax)
	for i, line := range wrap(text, t.width()-6-labelWidth) {
		if i > 0 {
			label = ""
		}
		t.line("      %s%s", t.paint(dim, pad(label, labelWidth)), line)
	}
}

// command writes one line of shell, after the label "try" if it is the first one. It is neither cut nor broken: half a command
// is worse than a long line.
func (t *texter) command(first bool, line string) {
	if first {
		t.line("      %s", t.paint(dim, "try"))
	}
	t.line("        %s", oneLine(line))
}

// nonEmpty returns the non-empty texts. It uses the list's memory.
func nonEmpty(list ...string) []string {
	kept := list[:0]
	for _, s := range list {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// refs returns the names of the sources.
func refs(list []Ref) string {
	names := make([]string, len(list))
	for i, ref := range list {
		names[i] = ref.Name
	}
	return strings.Join(names, ", ")
}

// known writes how the list of known failures has changed the result: failures accepted, new ones, and entries that no longer fail.
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

// totals writes the counts by level and by verdict.
func (t *texter) totals(r *Report) {
	t.line("%s", oneLine(strings.Join(nonEmpty(r.Title(), plural(len(r.Cases), "case"),
		duration(r.MS), plural(r.Requests, "request")), " · ")))
	for _, g := range Grades(r.Cases) {
		t.line("%s  %s", pad(title(string(g.Level)), 8), g)
	}
	t.line("%s", counts(r.Summary, true))
	t.line("")
}

// failures ends the report: it lists the failures, or says so if there are none.
// It never hides undecided cases.
func (t *texter) failures(r *Report) {
	judgement := t.o.Known.Apply(r, nil)
	t.line("%s", t.paint(bold, oneLine(headline(r, judgement))))
	for _, v := range []Verdict{Error, Fail} {
		for i := range r.Cases {
			if c := &r.Cases[i]; c.Verdict == v {
				t.line("  %s  %s  %s", t.verdict(v, 5), c.ID, t.paint(dim, string(c.Level)))
				t.block(strings.Repeat(" ", 9), clip(message(c), textLineMax))
			}
		}
	}
}

// counts spells out a summary: all seven verdicts, or those with a count above zero.
func counts(s Summary, all bool) string {
	var parts []string
	for _, v := range Verdicts() {
		if n := s.Count(v); n > 0 || all {
			parts = append(parts, fmt.Sprintf("%s %d", v, n))
		}
	}
	return strings.Join(parts, "   ")
}

// title returns s with its first letter as a capital. The letter is ASCII.
func title(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

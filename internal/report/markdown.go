package report

import (
	"fmt"
	"io"
	"strings"
)

// markdownDetailsMax bounds the failures shown with their evidence;
// CI systems cut off a long summary.
const markdownDetailsMax = 40

// WriteMarkdown writes the report for the summary page of a CI system: the
// totals, then each failure with its evidence, then the other cases without a pass.
func WriteMarkdown(w io.Writer, r *Report, o Options) error {
	r = prepare(r, o)
	var b strings.Builder
	fmt.Fprintf(&b, "## %s %s\n\n", glyph(overall(r, o)), markdown(r.Title()))
	fmt.Fprintf(&b, "%s\n\n", markdown(strings.Join(append(facts(r), plural(len(r.Cases), "case"),
		duration(r.MS), plural(r.Requests, "request")), " · ")))
	fmt.Fprintf(&b, "**%s**\n\n", markdown(headline(r, o.Known.Apply(r, nil))))
	markdownGrades(&b, r)
	shown := 0
	for i := range r.Cases {
		if v := r.Cases[i].Verdict; v != Fail && v != Error {
			continue
		}
		if shown++; shown <= markdownDetailsMax {
			markdownCase(&b, &r.Cases[i], o)
		}
	}
	if more := shown - markdownDetailsMax; more > 0 {
		fmt.Fprintf(&b, "… and %s.\n\n", plural(more, "more failure"))
	}
	for _, id := range o.Known.Apply(r, nil).Stale {
		fmt.Fprintf(&b, "- %s is listed as a known failure and does not fail: take it off the list.\n", code(id))
	}
	markdownRest(&b, r)
	return flush(w, b.String())
}

// flush writes the whole text to w.
func flush(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("report: markdown: %w", err)
	}
	return nil
}

// overall returns the worst verdict of the report. Failures that are listed as known do not count.
func overall(r *Report, o Options) Verdict {
	worst := Skip
	for i := range r.Cases {
		if v := r.Cases[i].Verdict; v != Fail || !o.Known.Has(r.Cases[i].ID) {
			worst = Worst(worst, v)
		}
	}
	return worst
}

// glyph returns a character for a verdict, for readers who see no colours. An unknown verdict is "‼".
func glyph(v Verdict) string {
	switch v {
	case Pass:
		return "✓"
	case Fail:
		return "✗"
	case Warn:
		return "!"
	case Seen:
		return "○"
	case Skip:
		return "–"
	case Inconclusive:
		return "?"
	}
	return "‼"
}

// markdownGrades writes the table of verdicts by level.
func markdownGrades(b *strings.Builder, r *Report) {
	b.WriteString("| level |")
	for _, v := range Verdicts() {
		fmt.Fprintf(b, " %s |", v)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(Verdicts())) + "\n")
	for _, g := range append(Grades(r.Cases), Grade{Level: "**all**", Summary: r.Summary}) {
		fmt.Fprintf(b, "| %s |", g.Level)
		for _, v := range Verdicts() {
			if n := g.Count(v); n > 0 {
				fmt.Fprintf(b, " %d |", n)
			} else {
				b.WriteString(" · |")
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// markdownCase writes one case with its exchanges and the lines to try.
func markdownCase(b *strings.Builder, c *Case, o Options) {
	known := ""
	if c.Verdict == Fail && o.Known.Has(c.ID) {
		known = " (known)"
	}
	fmt.Fprintf(b, "### %s %s%s\n\n%s", glyph(c.Verdict), code(c.ID), known, markdown(c.Rule))
	if names := refs(c.Spec); names != "" {
		fmt.Fprintf(b, " *%s*", markdown(names))
	}
	b.WriteString("\n\n")
	for _, f := range [][2]string{
		{"expected", c.Expected}, {"actual", c.Actual}, {"effects", c.Effects}, {"reason", c.Reason},
		{"odds", c.Odds}, {"impact", c.Impact}, {"fix", c.Fix}, {"known", o.Known.Why(c.ID)},
	} {
		if f[1] != "" {
			fmt.Fprintf(b, "- %s: %s\n", f[0], markdown(clip(f[1], textLineMax)))
		}
	}
	lines := exchangeLines(c.Exchanges)
	for _, line := range lines[:min(len(lines), textExchangesMax)] {
		fmt.Fprintf(b, "- %s\n", code(clip(line, textLineMax)))
	}
	if len(c.Try) > 0 {
		fence := strings.Repeat("`", max(3, longestRun(strings.Join(c.Try, "\n"), '`')+1))
		fmt.Fprintf(b, "\n%ssh\n", fence)
		for _, line := range c.Try {
			fmt.Fprintf(b, "%s\n", oneLine(line))
		}
		fmt.Fprintf(b, "%s\n", fence)
	}
	b.WriteString("\n")
}

// markdownRest lists the cases without a pass, a failure or an error: so nobody
// takes a skip for a pass.
func markdownRest(b *strings.Builder, r *Report) {
	head := false
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Verdict == Pass || c.Verdict == Fail || c.Verdict == Error {
			continue
		}
		if !head {
			b.WriteString("| not a pass | verdict | why |\n|---|---|---|\n")
			head = true
		}
		why := c.Reason
		if why == "" {
			why = c.Actual
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", code(c.ID), c.Verdict, markdown(clip(why, 200)))
	}
}

// WriteMarkdownMatrix writes several reports side by side as one table.
func WriteMarkdownMatrix(w io.Writer, o Options, reports ...*Report) error {
	prepared := prepareAll(reports, o)
	m := newMatrix(prepared)
	var b strings.Builder
	b.WriteString("| case | level |")
	for _, name := range m.names {
		fmt.Fprintf(&b, " %s |", markdown(name))
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(m.names)) + "\n")
	for _, g := range m.groups {
		for _, row := range g.rows {
			fmt.Fprintf(&b, "| %s | %s |", code(row.id), row.level)
			for _, c := range row.cells {
				if c == nil {
					b.WriteString(" · |")
					continue
				}
				fmt.Fprintf(&b, " %s %s |", glyph(c.Verdict), c.Verdict)
			}
			b.WriteString("\n")
		}
	}
	return flush(w, b.String())
}

// markdown spells s without markup, HTML, mentions and ends of
// lines.
func markdown(s string) string {
	var b strings.Builder
	for _, r := range oneLine(s) {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '@' || r == '#':
			fmt.Fprintf(&b, "&#%d;", r) // else a mention, or a link to an issue
		case strings.ContainsRune("\\`*_{}[]()~|!", r):
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// code spells s as a code span. In it only the pipe and the backtick need care:
// a pipe would end a table's cell.
func code(s string) string {
	s = strings.ReplaceAll(oneLine(s), "|", "¦")
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// longestRun returns the length of the longest run of the rune.
func longestRun(s string, of rune) int {
	longest, run := 0, 0
	for _, r := range s {
		if run++; r != of {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // page.html, page.css and page.js
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
)

// The page's parts. Embedding needs package variables; nothing writes to them.
var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// htmlBodyMax bounds the bodies on the page, in runes; the JSON form has more.
const htmlBodyMax = 8 << 10

// htmlHeaderMax bounds the header lines shown of one message.
const htmlHeaderMax = 100

// WriteHTML writes one complete page: no request leaves it, its
// policy forbids any, and without scripts it still shows everything. Several
// reports get a table of cases by implementations first.
func WriteHTML(w io.Writer, o Options, reports ...*Report) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"glyph": glyph, "duration": duration, "millis": millis, "plural": plural, "title": title,
	}).Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, newPage(prepareAll(reports, o), o)); err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	return nil
}

// The data of the template. Everything in it is a plain string, to be escaped by
// html/template; only our own style and script are not.
type (
	pageView struct {
		Title    string
		Policy   string
		CSS      template.CSS
		JS       template.JS
		Several  bool
		Reports  []reportView
		Columns  []columnView
		Groups   []rowGroupView
		Verdicts []choice
		Levels   []choice
		Total    int
		Span     int // columns of the matrix
	}
	reportView struct {
		*Report
		ID       string
		Eyebrow  string
		Heading  string
		Facts    []string
		Headline string
		Overall  Verdict
		Segments []segment
		Grades   []Grade
		Failed   []caseView
		Stale    []string
		Config   [][2]string
		Groups   []groupView
	}
	groupView struct {
		Name   string
		Counts string
		Cases  []caseView
	}
	caseView struct {
		*Case
		Anchor    string
		Href      string
		Search    string
		Known     bool
		Wrong     bool   // a failure or a warning
		Observed  string // the observation, for a case without judgement
		Why       string
		Refs      []refView
		Timelines []*timeline // none, or one for each canvas
		Rows      []exchangeView
	}
	refView struct {
		Ref
		Link bool
	}
	exchangeView struct {
		*Exchange
		Anchor   string
		Number   int
		Answer   string
		Class    string
		SameKey  bool
		From     string // the caller, unless the first
		Request  *messageView
		Response *messageView
	}
	messageView struct {
		Header []string
		Body   string
		Note   string
	}
	columnView struct {
		Number  int
		Name    string
		Counts  string
		Anchor  string
		Overall Verdict
	}
	rowGroupView struct {
		Name string
		Rows []rowView
	}
	rowView struct {
		ID, Rule, Search, Verdicts string
		Level                      Level
		Cells                      []cellView
	}
	cellView struct {
		Verdict       Verdict
		Anchor, Title string
	}
	choice struct {
		Kind, Value string
		Glyph       string
		Count       int
	}
	segment struct {
		Verdict  Verdict
		X, Width float64
		Count    int
	}
)

// newPage returns the view of a page for its HTML template: one report, or several side by side. Style and script are allowed by their hashes alone.
func newPage(reports []*Report, o Options) pageView {
	css, js := lineFeeds(pageCSS), lineFeeds(pageJS)
	p := pageView{CSS: template.CSS(css), JS: template.JS(js), Several: len(reports) > 1}
	p.Policy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'",
		hash(css), hash(js))
	names := columnNames(reports)
	for i, r := range reports {
		v := newReportView(r, fmt.Sprintf("r%d", i+1), o)
		v.Heading = printable(names[i])
		p.Reports = append(p.Reports, v)
		p.Columns = append(p.Columns, columnView{Number: i + 1, Name: v.Heading, Counts: counts(r.Summary, false), Anchor: "#" + v.ID, Overall: v.Overall})
	}
	p.Title = "oncehttp: " + strings.Join(names, ", ")
	if p.Several {
		p.Groups = newRows(newMatrix(reports))
	}
	p.Span = len(reports) + 1
	p.choices(reports)
	return p
}

// lineFeeds undoes the line ends of a checkout on Windows: a browser hashes
// the text with plain line feeds.
func lineFeeds(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// hash returns the source expression for text in a Content-Security-Policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// choices sets the filters: the verdicts and levels of the cases, with their counts.
func (p *pageView) choices(reports []*Report) {
	verdicts, levels := map[Verdict]int{}, map[Level]int{}
	for _, r := range reports {
		p.Total += len(r.Cases)
		for i := range r.Cases {
			verdicts[r.Cases[i].Verdict]++
			levels[r.Cases[i].Level]++
		}
	}
	for _, v := range Verdicts() {
		if verdicts[v] > 0 {
			p.Verdicts = append(p.Verdicts, choice{"verdict", string(v), glyph(v), verdicts[v]})
		}
	}
	for _, l := range Levels() {
		if levels[l] > 0 {
			p.Levels = append(p.Levels, choice{"level", string(l), "", levels[l]})
		}
	}
}

// newReportView returns the view of one report for the HTML template. id is the prefix of its anchors.
func newReportView(r *Report, id string, o Options) reportView {
	v := reportView{Report: r, ID: id, Facts: facts(r), Overall: overall(r, o), Eyebrow: "Conformance of a server"}
	if r.Kind == KindReferee {
		v.Eyebrow = "Verdict on a client"
	}
	judgement := o.Known.Apply(r, nil)
	v.Headline, v.Stale = headline(r, judgement), judgement.Stale
	v.Grades = Grades(r.Cases)
	v.Segments = segments(r.Summary)
	for _, name := range slices.Sorted(maps.Keys(r.Config)) {
		v.Config = append(v.Config, [2]string{name, r.Config[name]})
	}
	for _, g := range r.Groups() {
		group := groupView{Name: g.Name, Counts: counts(g.Summary, false)}
		for i := range g.Cases {
			c := newCaseView(&g.Cases[i], id, o)
			group.Cases = append(group.Cases, c)
			if c.Verdict == Fail || c.Verdict == Error {
				v.Failed = append(v.Failed, c)
			}
		}
		v.Groups = append(v.Groups, group)
	}
	return v
}

// headline returns the verdict on the whole, and claims no more than was seen. The
// suite's own headline about the run goes before all else.
func headline(r *Report, j Judgement) string {
	text := verdictText(r, j)
	if r.Headline != "" {
		text = strings.TrimRight(r.Headline, ".") + ". " + text
	} else if r.Cut {
		text = "The run was cut short. " + text
	}
	return text
}

// verdictText returns the end of the run in a few words, the worst first. j.Accepted has the failures on the list of known ones. Cases that were only
// skipped, or only noted (Seen), are not judged.
func verdictText(r *Report, j Judgement) string {
	s := r.Summary
	known := ""
	if len(j.Accepted) > 0 {
		known = fmt.Sprintf(", %d of them known", len(j.Accepted))
	}
	open := len(Undecided(r.Cases)) // safety cases that were tried and not decided
	switch {
	case s.Fail > 0:
		return fmt.Sprintf("%s of %d failed%s", plural(s.Fail, "case"), len(r.Cases), known)
	case s.Error > 0:
		return fmt.Sprintf("%s could not be run", plural(s.Error, "case"))
	case s.Judged()+s.Inconclusive == 0:
		return "Nothing was judged"
	case open > 0:
		return fmt.Sprintf("No failure, but %s not decided", pluralBe(open, "safety case"))
	case s.Warn > 0:
		return fmt.Sprintf("No failure, %s", plural(s.Warn, "warning"))
	case s.Inconclusive > 0:
		return fmt.Sprintf("No failure, but %s not decided", pluralBe(s.Inconclusive, "case"))
	}
	return "No violation was seen"
}

// pluralBe returns "1 case was", "2 cases were".
func pluralBe(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return plural(n, noun) + " were"
}

// segments returns one rectangle for each verdict of the cases, the worst first, in units of the SVG. Together they fill 1000,
// with a gap of 2 after each. No rectangle is narrower than 1. Without cases it returns nil.
func segments(s Summary) []segment {
	var list []segment
	if s.Total() == 0 {
		return nil
	}
	x := 0.0
	for _, v := range []Verdict{Fail, Error, Warn, Inconclusive, Pass, Seen, Skip} {
		if n := s.Count(v); n > 0 {
			width := 1000 * float64(n) / float64(s.Total())
			list = append(list, segment{Verdict: v, X: round(x), Width: round(max(width-2, 1)), Count: n})
			x += width
		}
	}
	return list
}

// newCaseView returns the view of one case for the HTML template. report is the prefix of its anchors.
func newCaseView(c *Case, report string, o Options) caseView {
	v := caseView{
		Case: c, Anchor: report + "/" + c.ID, Href: "#" + report + "/" + c.ID,
		Known: c.Verdict == Fail && o.Known.Has(c.ID), Why: o.Known.Why(c.ID),
	}
	for i := range c.Try { // the only text for pasting into a shell
		c.Try[i] = oneLine(c.Try[i])
	}
	v.Wrong = c.Verdict == Fail || c.Verdict == Warn
	if c.Verdict == Seen {
		v.Observed = printable(clip(c.Actual, 200))
	}
	v.Search = searchable(c.ID, c.Rule, c.Actual, c.Reason, refs(c.Spec))
	for _, ref := range c.Spec {
		link := strings.HasPrefix(ref.URL, "https://") || strings.HasPrefix(ref.URL, "http://")
		v.Refs = append(v.Refs, refView{Ref: ref, Link: link})
	}
	if len(c.Exchanges) > 0 {
		v.Timelines = []*timeline{newTimeline(c.Exchanges, v.Anchor, wide(), "wide"), newTimeline(c.Exchanges, v.Anchor, narrow(), "narrow")}
	}
	for i := range c.Exchanges {
		x := &c.Exchanges[i]
		v.Rows = append(v.Rows, exchangeView{
			Exchange: x, Anchor: fmt.Sprintf("%s:x%d", v.Anchor, i+1), Number: i + 1, Answer: answer(x), Class: barClass(x), From: callerNote(x),
			SameKey: i > 0 && x.Key != "" && c.Exchanges[i-1].Key == x.Key,
			Request: newMessageView(x.Request), Response: newMessageView(x.Response),
		})
	}
	return v
}

// searchable returns the text for the search box, in lower case.
func searchable(texts ...string) string {
	return strings.ToLower(clip(printable(strings.Join(nonEmpty(texts...), " ")), 2000))
}

// newMessageView returns the view of a request or a response, with its body cut to a length for a page; nil if there is none.
func newMessageView(m *Message) *messageView {
	if m == nil {
		return nil
	}
	v := &messageView{Body: clip(printable(m.Body), htmlBodyMax)}
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		for _, value := range m.Header[name] {
			if len(v.Header) < htmlHeaderMax {
				v.Header = append(v.Header, oneLine(name+": "+value))
			}
		}
	}
	// Said of a body that was cut for the report, or is cut here.
	if shown := int64(len(m.Body)); m.BodyBytes > shown || v.Body != m.Body && len(v.Body) > htmlBodyMax {
		v.Note = fmt.Sprintf("%d bytes in all", m.BodyBytes)
	}
	return v
}

// newRows returns the view of several reports side by side: a row for each case, with a cell for each report.
func newRows(m matrix) []rowGroupView {
	var groups []rowGroupView
	for _, g := range m.groups {
		group := rowGroupView{Name: g.name}
		for _, row := range g.rows {
			v := rowView{ID: row.id, Rule: row.rule, Level: row.level, Search: searchable(row.id, row.rule)}
			var verdicts []string
			for i, c := range row.cells {
				if c == nil {
					v.Cells = append(v.Cells, cellView{Title: "not run"})
					continue
				}
				verdicts = append(verdicts, string(c.Verdict))
				v.Cells = append(v.Cells, cellView{
					Verdict: c.Verdict, Anchor: fmt.Sprintf("#r%d/%s", i+1, c.ID),
					Title: oneLine(m.names[i] + ": " + string(c.Verdict) + ". " + aside(c)),
				})
			}
			v.Verdicts = strings.Join(verdicts, " ")
			group.Rows = append(group.Rows, v)
		}
		groups = append(groups, group)
	}
	return groups
}

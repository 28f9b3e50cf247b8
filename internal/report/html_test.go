package report_test

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/report"
)

func TestHTMLIsSelfContained(t *testing.T) {
	t.Parallel()
	page := write(t, report.HTML, report.Options{}, sample(), betterSample())
	if !strings.HasPrefix(page, "<!doctype html>") {
		t.Error("no doctype")
	}
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil || !strings.HasPrefix(policy[1], "default-src &#39;none&#39;;") || strings.Contains(policy[1], "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	for _, loads := range []string{"<link", "<img", "<iframe", "@import", "url(", " src=", " style=", " onclick=", "fetch(", "XMLHttpRequest", "innerHTML"} {
		if strings.Contains(page, loads) {
			t.Errorf("the page has %q", loads)
		}
	}
	if got := strings.Count(page, "<script"); got != 1 {
		t.Errorf("%d scripts", got)
	}
}

func TestHTMLShowsTheEvidence(t *testing.T) {
	t.Parallel()
	page := write(t, report.HTML, report.Options{}, sample())
	for _, want := range []string{
		`<details class="case" id="r1/scope/other-path-not-answered" data-case data-verdict="fail" data-level="safety"`,
		`href="https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07#section-2.2"`, `<q>An idempotency key is a unique value.</q>`,
		"A refund is answered with the payment and never happens.", "201 with an id of its own", "1 case of 10 failed", "needs a second principal",
		"curl -sSig -X POST http://127.0.0.1:8080/refunds", "failed 3/3", "the refund was not executed", "How the run was set up", "no violation was seen",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if clean := write(t, report.HTML, report.Options{}, verdicts(report.Pass)); !strings.Contains(clean, "No violation was seen") || strings.Contains(clean, "What failed") {
		t.Error("a clean report does not look clean")
	}
	if skipped := write(t, report.HTML, report.Options{}, verdicts(report.Skip)); !strings.Contains(skipped, "Nothing was judged") {
		t.Error("a report of skips looks like a success")
	}
}

// TestTimeline reads the drawings back, the one for a screen and the one for a
// phone: every bar lies inside its picture, requests that overlap in time do so
// on the drawing, and the axis stands above the rows.
func TestTimeline(t *testing.T) {
	t.Parallel()
	for _, canvas := range []struct {
		svg         string
		left, right float64
	}{{`<svg viewBox="0 0 960 `, 132, 960}, {`<svg viewBox="0 0 340 `, 62, 340}} {
		for _, n := range []int{1, 6, 64, 300} {
			r := sample()
			r.Cases = []report.Case{burstCase(n)}
			page := write(t, report.HTML, report.Options{}, r)
			before, drawing, found := strings.Cut(page, canvas.svg)
			drawing, _, ended := strings.Cut(drawing, "</svg>")
			if !found || !ended || !strings.Contains(before[strings.LastIndex(before, "<svg"):], "ms</text>") {
				t.Fatalf("%d exchanges: no drawing %q with an axis above it", n, canvas.svg)
			}
			bars, lanes := bars(t, canvas.svg+drawing+"</svg>")
			if want := min(n, 128); len(bars) != want || lanes != want {
				t.Fatalf("%d exchanges: %d bars in %d lanes, want %d", n, len(bars), lanes, want)
			}
			for i, b := range bars {
				if b.X < canvas.left || b.Width < 3 || b.X+b.Width > canvas.right || b.Height < 5 {
					t.Errorf("%d exchanges: bar %d is %+v", n, i+1, b)
				}
				if i > 0 && (b.X < bars[i-1].X || b.Y <= bars[i-1].Y) {
					t.Errorf("%d exchanges: bar %d starts before the one above", n, i+1)
				}
			}
			if n == 300 && !strings.Contains(page, "172 not drawn") {
				t.Error("nothing says that lanes were left out")
			}
		}
	}
}

type rect struct {
	X      float64 `xml:"x,attr"`
	Y      float64 `xml:"y,attr"`
	Width  float64 `xml:"width,attr"`
	Height float64 `xml:"height,attr"`
}

// bars are the rectangles inside links, and the number of lanes.
func bars(t *testing.T, svg string) (list []rect, lanes int) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	inside := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return list, lanes
		}
		if err != nil {
			t.Fatalf("the drawing is not XML: %v", err)
		}
		element, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case element.Name.Local == "g":
			lanes++
		case element.Name.Local == "a":
			inside = true
		case element.Name.Local == "rect" && inside:
			var r rect
			if err := d.DecodeElement(&r, &element); err != nil {
				t.Fatal(err)
			}
			list, inside = append(list, r), false
		}
	}
}

func TestHTMLMatrix(t *testing.T) {
	t.Parallel()
	second := betterSample()
	second.Cases = second.Cases[:3]
	page := write(t, report.HTML, report.Options{}, sample(), second)
	for _, want := range []string{
		"2 implementations", `href="#r1/scope/other-path-not-answered"`, `href="#r2/scope/other-path-not-answered"`, `data-verdict="fail pass"`, `class="cell gone" title="not run"`,
		`<a href="#r2">fiber v3.2.0</a>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	ids := map[string]bool{}
	for _, id := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if ids[id[1]] {
			t.Errorf("id %s stands twice", id[1])
		}
		ids[id[1]] = true
	}
	for _, link := range regexp.MustCompile(` href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !ids[link[1]] {
			t.Errorf("a link to %s leads nowhere", link[1])
		}
	}
}

// FuzzHostile puts any text into every place that a server or a file can reach:
// no format may change its structure.
func FuzzHostile(f *testing.F) {
	benign := hostile("xtextx")
	o := report.Options{Width: 1 << 20, ShowSecrets: true, Verbose: true}
	pages := map[report.Format]string{}
	for _, format := range report.Formats() {
		pages[format] = write(f, format, o, benign)
	}
	for _, seed := range []string{attacks, "", "\x00\x1b]0;a\x07", "</svg>", "`````", "&quot;&#34;", "\u2028\u2029\ufeff\U000e0001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 300 {
			return
		}
		text = "x" + strings.ToValidUTF8(text, "?") + "x"
		r := hostile(text)
		page := write(t, report.HTML, o, r)
		for _, sign := range []string{"<", ">", `"`} {
			if got, want := strings.Count(page, sign), strings.Count(pages[report.HTML], sign); got != want {
				t.Fatalf("HTML: %d times %s, want %d, with %q", got, sign, want, text)
			}
		}
		if strings.Contains(page, "ZgotmplZ") {
			t.Fatal("HTML: a link with a scheme of its own was rendered")
		}
		all, tests := readJUnit(t, o, r)
		if len(tests["scope/other-path-not-answered"].Failure) != 1 {
			t.Fatalf("JUnit: the failure is gone, with %q", text)
		}
		if at := strings.IndexFunc(strings.ReplaceAll(tests["scope/other-path-not-answered"].Failure[0].Message, "\t", ""), acts); at >= 0 {
			t.Fatalf("JUnit: a control character got through, with %q", text)
		}
		if all.Tests != 10 || len(tests) != 10 || all.Failures != 1 {
			t.Fatalf("JUnit: %+v with %q", all, text)
		}
		for _, format := range []report.Format{report.Text, report.Markdown} {
			got := write(t, format, o, r)
			if n, want := strings.Count(got, "\n"), strings.Count(pages[format], "\n"); n != want {
				t.Fatalf("%s: %d lines, want %d, with %q", format, n, want, text)
			}
			if at := strings.IndexFunc(got, acts); at >= 0 {
				t.Fatalf("%s: %q acts on the terminal", format, got[at:min(at+4, len(got))])
			}
		}
		if _, err := report.Parse(strings.NewReader(write(t, report.JSON, o, r))); err != nil {
			t.Fatal(err)
		}
	})
}

// acts reports whether a terminal would do something else with r than show it.
func acts(r rune) bool {
	return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029
}

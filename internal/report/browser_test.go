//go:build browser

package report_test

import (
	"bytes"
	"image"
	_ "image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/chromium"
	"github.com/oncehttp/oncehttp/internal/report"
)

// page writes the reports as HTML to a file and gives its URL.
func page(t *testing.T, reports ...*report.Report) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(write(t, report.HTML, report.Options{}, reports...)), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

const visibleCases = `document.querySelectorAll('details.case:not([hidden])').length`

func chip(value string) string {
	return `document.querySelector('.chip[data-value="` + value + `"]').click()`
}

func TestBrowserFilters(t *testing.T) {
	t.Parallel()
	c := chromium.Start(t)
	c.Open(page(t, sample()))
	c.Want(visibleCases, "10")
	c.Want(`document.getElementById('shown').textContent`, "10 of 10 shown")
	c.Eval(chip("fail"))
	c.Want(visibleCases, "1")
	c.Want(`document.querySelector('details.case:not([hidden]) code').textContent`, "scope/other-path-not-answered")
	c.Want(`document.querySelectorAll('section.group:not([hidden])').length`, "1")
	c.Eval(chip("pass"))
	c.Want(visibleCases, "5")
	c.Eval(chip("safety"))
	c.Want(visibleCases, "3")
	c.Eval(`document.getElementById('clear').click()`)
	c.Want(visibleCases, "10")
	c.Want(`document.querySelectorAll('.chip[aria-pressed=true]').length`, "0")
	c.NoComplaints("report.html")
}

func TestBrowserSearch(t *testing.T) {
	t.Parallel()
	c := chromium.Start(t)
	c.Open(page(t, sample()))
	c.Key("/", "/")
	c.Want(`document.activeElement.id`, "search")
	c.Want(`document.getElementById('search').value`, "")
	for _, letter := range "REPLAY" {
		c.Key(string(letter), string(letter))
	}
	c.Want(visibleCases, "3")
	c.Eval(`(() => { const s = document.getElementById('search'); s.value = 'no such thing'; s.dispatchEvent(new Event('input')); })()`)
	c.Want(visibleCases, "0")
	c.Want(`document.getElementById('nothing').hidden`, "false")
	c.Key("Escape", "")
	c.Want(visibleCases, "10")
	c.NoComplaints("report.html")
}

func TestBrowserEvidence(t *testing.T) {
	t.Parallel()
	c := chromium.Start(t)
	c.Open(page(t, sample()))
	const failed = `document.getElementById('r1/scope/other-path-not-answered')`
	c.Want(failed+`.querySelector('.evidence').checkVisibility()`, "false")
	c.Eval(failed + `.querySelector('summary').focus()`)
	c.Key("Enter", "\r")
	c.Want(failed+`.open`, "true")
	c.Want(failed+`.querySelector('.evidence').checkVisibility()`, "true")
	c.Want(failed+`.querySelectorAll('.timeline.wide .bar rect').length`, "3")
	c.Want(failed+`.querySelectorAll('.timeline.wide .lane').length`, "2")
	c.Want(`(() => { const r = `+failed+`.querySelector('.bar rect').getBoundingClientRect(); return r.width > 20 && r.height > 8; })()`, "true")
	c.Want(failed+`.querySelectorAll('.exchanges tbody').length`, "3")
	c.Want(failed+`.querySelector('.curl code').textContent.split('\n').filter((l) => l.startsWith('curl ')).length`, "3")
	c.Eval(`document.getElementById('expand').click()`)
	c.Want(`document.querySelectorAll('details.case[open]').length`, "10")
	c.Eval(`document.getElementById('expand').click()`)
	c.Want(`document.querySelectorAll('details.case[open]').length`, "0")
	c.Eval(chip("pass") + `; document.querySelector('.failed a').click()`)
	c.Want(`new Promise((done) => setTimeout(() => done(`+failed+`.open && !`+failed+`.hidden), 50))`, "true")
	c.NoComplaints("report.html")
}

func TestBrowserMatrix(t *testing.T) {
	t.Parallel()
	c := chromium.Start(t)
	c.Open(page(t, sample(), betterSample()))
	c.Want(`document.querySelectorAll('.matrix thead th').length`, "3")
	c.Want(`document.querySelectorAll('.matrix [data-case]').length`, "10")
	c.Eval(chip("fail"))
	c.Want(`document.querySelectorAll('.matrix [data-case]:not([hidden])').length`, "1")
	c.Eval(`document.querySelector('.matrix [data-case]:not([hidden]) td:last-child a').click()`)
	c.Want(`new Promise((done) => setTimeout(() => done(document.getElementById('r2/scope/other-path-not-answered').querySelector('.evidence').checkVisibility()), 50))`, "true")
	c.NoComplaints("report.html")
}

func TestBrowserHostile(t *testing.T) {
	t.Parallel()
	c := chromium.Start(t)
	c.Open(page(t, hostile(attacks), hostile(attacks)))
	c.Eval(`document.getElementById('expand').click()`)
	c.Want(`String(window.pwned)`, "undefined")
	c.Want(`document.querySelectorAll('script').length`, "1")
	c.Want(`document.querySelectorAll('img, iframe, object, embed, link, base').length`, "0")
	c.Want(`[...document.querySelectorAll('a')].every((a) => /^(#|https?:)/.test(a.getAttribute('href')))`, "true")
	c.NoComplaints("report.html")
}

// TestBrowserComplains proves that the two nets above hold: a page with an
// error and an outside picture is caught by both.
func TestBrowserComplains(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bad.html")
	bad := `<!doctype html><script>addEventListener('load', () => setTimeout(() => { throw new Error('seen'); }))</script><img src="http://127.0.0.1:9/x.png">`
	if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	c := chromium.Start(t)
	c.Open("file://" + path)
	c.Eval(`new Promise((done) => setTimeout(done, 50))`)
	if !strings.Contains(strings.Join(c.Complaints(), " "), "Error: seen") {
		t.Error("an uncaught error was not noticed")
	}
	if !strings.Contains(strings.Join(c.Requests(), " "), "127.0.0.1:9/x.png") {
		t.Error("a request for a picture was not noticed")
	}
}

// TestBrowserPhone: at 400 pixels the answer of each request is in sight, and so
// is the whole width of the timeline; the axis of a burst stays in sight while
// its rows are scrolled.
func TestBrowserPhone(t *testing.T) {
	t.Parallel()
	c := chromium.Start(t)
	for _, r := range []*report.Report{sample(), burstOnly(60)} {
		c.Open(page(t, r))
		c.Picture(400, 900, false)
		c.Eval(`document.querySelectorAll('details.case').forEach((d) => { d.open = true; })`)
		const inside = `(e) => { const r = e.getBoundingClientRect(); return r.width > 0 && r.left >= 0 && r.right <= innerWidth; }`
		c.Want(`[...document.querySelectorAll('.exchanges .answer')].length > 2 && [...document.querySelectorAll('.exchanges .answer')].every(`+inside+`)`, "true")
		c.Want(`[...document.querySelectorAll('.timeline.narrow')].every(`+inside+`)`, "true")
		c.Want(`[...document.querySelectorAll('.timeline.narrow .bar rect')].every(`+inside+`)`, "true")
		c.Want(`[...document.querySelectorAll('.timeline.narrow .bar rect')].every((e) => e.getBoundingClientRect().height >= 5)`, "true")
		c.Want(`[...document.querySelectorAll('.timeline.wide')].every((e) => !e.checkVisibility())`, "true")
		c.Want(`document.documentElement.scrollWidth <= innerWidth`, "true")
	}
	for _, width := range []int{400, 1280} {
		c.Picture(width, 900, false)
		c.Want(`(() => { const d = [...document.querySelectorAll('.drawing')].find((e) => e.checkVisibility()); d.scrollTop = d.scrollHeight;
			const r = d.querySelector('.ruler').getBoundingClientRect(), f = d.getBoundingClientRect();
			return d.scrollTop > 50 && Math.abs(r.top - f.top) < 2 && d.querySelectorAll('.ruler text').length > 2; })()`, "true")
	}
	c.NoComplaints("report.html")
}

// TestBrowserLayout looks for what a person would see at once: a page that is
// blank, or wider than its window. Set REPORT_SHOTS to a directory to keep the
// pictures.
func TestBrowserLayout(t *testing.T) {
	t.Parallel()
	c := chromium.Start(t)
	for _, shot := range []struct {
		name          string
		width, height int
		dark          bool
		reports       []*report.Report
		script        string
	}{
		{"light", 1280, 1500, false, []*report.Report{sample()}, "scrollTo(0, 0)"},
		{"dark", 1280, 1500, true, []*report.Report{sample()}, `document.querySelector('details.case[data-verdict=fail]').open = true; scrollTo(0, 0)`},
		{"evidence", 1280, 1700, false, []*report.Report{sample()}, `document.querySelector('.failed a').click()`},
		{"burst", 1280, 1400, true, []*report.Report{burstOnly(6), burstOnly(64)}, `document.querySelectorAll('details').forEach((d) => { d.open = true; })`},
		{"lanes", 1280, 1400, false, []*report.Report{burstOnly(64)}, `document.querySelector("details.case").open = true; document.querySelector("details.case").scrollIntoView()`},
		{"matrix", 1280, 1000, false, []*report.Report{sample(), betterSample(), sample()}, "scrollTo(0, 0)"},
		{"narrow", 390, 1200, false, []*report.Report{sample()}, `document.querySelector('.failed a').click(); setTimeout(() => document.querySelector('.exchanges').scrollIntoView({block: "center"}), 30)`},
		{"phone-burst", 400, 1200, false, []*report.Report{burstOnly(60)}, `document.querySelector("details.case").open = true; document.querySelector(".timeline.narrow").scrollIntoView()`},
	} {
		c.Open(page(t, shot.reports...))
		c.Picture(shot.width, shot.height, shot.dark)
		c.Eval(shot.script)
		png := c.Picture(shot.width, shot.height, shot.dark)
		if colors := colorsOf(t, png); colors < 20 {
			t.Errorf("%s: %d colours, the page looks blank", shot.name, colors)
		}
		c.Want(`document.documentElement.scrollWidth <= innerWidth`, "true")
		if dir := os.Getenv("REPORT_SHOTS"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, shot.name+".png"), png, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	c.NoComplaints("report.html")
}

func burstOnly(n int) *report.Report {
	r := sample()
	r.Cases = []report.Case{burstCase(n)}
	return r
}

func colorsOf(t *testing.T, png []byte) int {
	t.Helper()
	img, _, err := image.Decode(bytes.NewReader(png))
	if err != nil {
		t.Fatal(err)
	}
	colors := map[[3]uint32]bool{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, _ := img.At(x, y).RGBA()
			colors[[3]uint32{r, g, b}] = true
		}
	}
	return len(colors)
}

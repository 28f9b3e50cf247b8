package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    samples
		want float64
	}{{samples{3}, 3}, {samples{9, 1, 3}, 3}, {samples{4, 1, 2, 9}, 3}} {
		if got := c.s.median(); got != c.want {
			t.Errorf("median of %v is %v, want %v", []float64(c.s), got, c.want)
		}
	}
	if !math.IsNaN(samples(nil).median()) {
		t.Error("the median of nothing is a number")
	}
	if got, want := (samples{0.5, 0.25, 1}).String(), "0.50 (0.25–1)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (samples{6, 8}).over(samples{3, 2}); got[0] != 2 || got[1] != 4 {
		t.Errorf("6/3, 8/2 gave %v", got)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(100-i))
	}
	for p, want := range map[float64]time.Duration{0.5: 50, 0.99: 99, 1: 100, 0: 1} {
		if got := percentile(all, p); got != want {
			t.Errorf("percentile %v is %d, want %d", p, got, want)
		}
	}
}

// TestTargets: the median decides, in both directions, and what was not measured
// is not reached.
func TestTargets(t *testing.T) {
	t.Parallel()
	b := &bench{report: newReport(&options{rounds: 3})}
	b.report.begin(section{name: "s", about: "a section"})
	b.atLeast("at least, reached", "", 2, samples{1, 2, 9})
	b.atLeast("at least, missed", "", 2, samples{1, 1, 9})
	b.atMost("at most, reached", "", 2, samples{1, 2, 9})
	b.atMost("at most, missed", "", 2, samples{1, 3, 9})
	b.atMost("not measured", "", 2, nil)
	for _, got := range b.report.last().Targets {
		if want := strings.Contains(got.Name, "reached"); got.Reached != want {
			t.Errorf("%s: reached is %t", got.Name, got.Reached)
		}
	}
}

// TestReportComesBack: what -json writes, -from reads, and -doc puts between the
// marks and nowhere else.
func TestReportComesBack(t *testing.T) {
	t.Parallel()
	b := &bench{report: newReport(&options{rounds: 2})}
	b.report.begin(section{name: "s", about: "a section"})
	b.add("group", "row", "ops/s", samples{10, 20})
	b.atLeast("goal", "", 1, samples{2, 2})
	b.note("a note")
	dir := t.TempDir()
	path := filepath.Join(dir, "r.json")
	if err := b.report.write(path); err != nil {
		t.Fatal(err)
	}
	back, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := back.markdown(), b.report.markdown(); got != want {
		t.Errorf("read back:\n%s\nwritten:\n%s", got, want)
	}
	doc := filepath.Join(dir, "doc.md")
	if err := os.WriteFile(doc, []byte("before\n"+docBegin+"\nold\n"+docEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time finds its own marks
		if err := back.writeDoc(doc); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "\nafter\n") || strings.Contains(got, "old") ||
		strings.Count(got, "| row | 15 (10–20) |") != 1 {
		t.Errorf("the document is now:\n%s", got)
	}
	if err := back.writeDoc(path); err == nil {
		t.Error("a document without marks was written to")
	}
}

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the result of a run, in the form of -json.
type report struct {
	Date     time.Time        `json:"date"`
	Go       string           `json:"go"`
	System   string           `json:"system"`
	CPU      string           `json:"cpu"`
	Cores    int              `json:"cores"`
	Rounds   int              `json:"rounds"`
	Tiny     bool             `json:"tiny"`
	Sections []*sectionReport `json:"sections"`
}

// sectionReport is the result of one section.
type sectionReport struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Seconds float64  `json:"seconds"`
	Figures []figure `json:"figures"`
	Targets []target `json:"targets"`
	Notes   []string `json:"notes"`
}

// figure is one measured number: a sample for each round, and their median.
// Figures with one Group are printed as one table, a row for each Name.
type figure struct {
	Group string  `json:"group"`
	Name  string  `json:"name"`
	What  string  `json:"what"`            // the column: "ops/s", "of plain", "fsyncs/op"
	X     float64 `json:"x"`               // its place in the chart
	Chart string  `json:"chart,omitempty"` // the name of its chart; empty: none

	Median  float64 `json:"median"`
	Samples samples `json:"rounds"` // empty: not measured
}

// target is one promise and its result.
type target struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"` // printed after numbers as it is; with a space in front, if any
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"at_least"` // Limit is the least; otherwise the greatest
	Reached bool    `json:"reached"`  // by the median
	Samples samples `json:"rounds"`
}

// newReport returns a report of this machine without sections.
func newReport(o *options) *report {
	return &report{
		Date: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH + kernel(),
		CPU: cpuModel(), Cores: runtime.NumCPU(), Rounds: o.rounds, Tiny: o.tiny,
	}
}

// begin adds a section; figures, targets and notes go to the last one.
func (r *report) begin(s section) {
	r.Sections = append(r.Sections, &sectionReport{Name: s.name, About: s.about})
}

// last returns the section of the report that runs now. There is always one: run begins it before it measures.
func (r *report) last() *sectionReport { return r.Sections[len(r.Sections)-1] }

// end notes the duration of the section that ends.
func (r *report) end(d time.Duration) { r.last().Seconds = d.Round(time.Millisecond).Seconds() }

// add records a figure in the row name and the column what of the table group, and in no chart. Without samples it records nothing.
func (b *bench) add(group, name, what string, s samples) { b.point("", group, name, what, 0, s) }

// point records a figure with its samples: in the row name and the column what of the table group, and as a point at x of a chart; chart "" means
// none. Without samples it records nothing.
func (b *bench) point(chart, group, name, what string, x float64, s samples) {
	if len(s) == 0 {
		return
	}
	last := b.report.last()
	last.Figures = append(last.Figures, figure{
		Group: group, Name: name, What: what, X: x, Chart: chart, Median: s.median(), Samples: s,
	})
}

// blank records a figure without samples in the row name and the column what of the table group, so that the table shows it as missing.
func (b *bench) blank(group, name, what string) {
	last := b.report.last()
	last.Figures = append(last.Figures, figure{Group: group, Name: name, What: what})
}

// note records a sentence for the report, without a full stop, in the section that runs now.
func (b *bench) note(format string, args ...any) {
	b.report.last().Notes = append(b.report.last().Notes, fmt.Sprintf(format, args...))
}

// atLeast records a target: the median of s must be limit or more. Without samples it is missed. unit is printed directly after the numbers.
func (b *bench) atLeast(name, unit string, limit float64, s samples) {
	b.target(target{Name: name, Unit: unit, Limit: limit, AtLeast: true, Samples: s})
}

// atMost records a target: the median of s must be limit or less. Without samples it is missed. unit is printed directly after the numbers.
func (b *bench) atMost(name, unit string, limit float64, s samples) {
	b.target(target{Name: name, Unit: unit, Limit: limit, Samples: s})
}

// target records a target (a limit for measured values), and sets its Reached: whether the median of the values keeps the limit. Without values it is
// missed.
func (b *bench) target(t target) {
	m := t.Samples.median()
	t.Reached = len(t.Samples) > 0 && (t.AtLeast && m >= t.Limit || !t.AtLeast && m <= t.Limit)
	b.report.last().Targets = append(b.report.last().Targets, t)
}

// headline returns a line about the machine and the run.
func (r *report) headline() string {
	s := fmt.Sprintf("oncehttp bench · %s · %s · %s · %d × %s · %d rounds",
		r.Date.Format(time.DateOnly), r.Go, r.System, r.Cores, r.CPU, r.Rounds)
	if r.Tiny {
		s += " · tiny: the figures mean nothing"
	}
	return s
}

// print prints the whole report.
func (r *report) print(w io.Writer) {
	fmt.Fprintln(w, r.headline())
	for _, s := range r.Sections {
		r.printSection(w, s)
	}
	r.printTargets(w)
}

// printSection prints a section: a table for each group, and the notes.
func (r *report) printSection(w io.Writer, s *sectionReport) {
	fmt.Fprintf(w, "\n== %s: %s (%.1f s)\n", s.Name, s.About, s.Seconds)
	for _, t := range tables(s.Figures) {
		t.print(w)
	}
	for _, n := range s.Notes {
		fmt.Fprintf(w, "   note: %s\n", n)
	}
}

// print prints the table with aligned columns.
func (t *table) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(tw, "\n%s\t%s\n", t.group, strings.Join(t.columns, "\t"))
	for _, row := range t.rows {
		fmt.Fprintf(tw, "  %s", row)
		for _, c := range t.columns {
			fmt.Fprintf(tw, "\t%s", t.cells[[2]string{row, c}])
		}
		fmt.Fprintln(tw)
	}
	_ = tw.Flush()
}

// printTargets prints a line for each target, and how many were reached.
func (r *report) printTargets(w io.Writer) {
	fmt.Fprintln(w, "\n== targets")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	reached, total := 0, 0
	for _, s := range r.Sections {
		for _, t := range s.Targets {
			total++
			verdict := "NOT REACHED"
			if t.Reached {
				verdict, reached = "reached", reached+1
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\twant %s\tgot %s\n", verdict, s.Name, t.Name, t.want(), t.got())
		}
	}
	_ = tw.Flush()
	fmt.Fprintf(w, "%d of %d targets reached\n", reached, total)
}

// want returns the limit in words.
func (t *target) want() string {
	sign := "≤"
	if t.AtLeast {
		sign = "≥"
	}
	return sign + " " + number(t.Limit) + t.Unit
}

// got returns the measured values with their unit, for the column beside the wanted limit.
func (t *target) got() string {
	if len(t.Samples) == 0 {
		return "nothing: not measured"
	}
	return t.Samples.String() + t.Unit
}

// write writes the report as JSON; readReport reads it.
func (r *report) write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// readReport reads a report from a JSON file that write has made. Errors of its JSON name the file.
func readReport(path string) (*report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &report{}
	if err := json.NewDecoder(bufio.NewReader(f)).Decode(r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

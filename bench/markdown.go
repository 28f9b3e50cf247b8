package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// The lines of a document before and after the figures.
const (
	docBegin = "<!-- measured: written by bench, do not edit -->"
	docEnd   = "<!-- end of what bench has written -->"
)

// writeDoc replaces the text between the two marked lines (docBegin, docEnd) in the document at path by the figures; an empty path means none. A document
// without the lines is an error and stays as it is.
func (r *report) writeDoc(path string) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, found := strings.Cut(string(text), docBegin)
	_, tail, ended := strings.Cut(rest, docEnd)
	if !found || !ended {
		return fmt.Errorf("%s has no lines %q and %q", path, docBegin, docEnd)
	}
	return os.WriteFile(path, []byte(head+docBegin+"\n\n"+r.markdown()+docEnd+tail), 0o644)
}

// markdown returns the figures as Markdown: the machine, the targets, and every table except those for charts.
func (r *report) markdown() string {
	var b strings.Builder
	var seconds float64
	for _, s := range r.Sections {
		seconds += s.Seconds
	}
	fmt.Fprintf(&b, "Measured %s, %s, %s, %d × %s, %d rounds, %.0f s in all.\n\n",
		r.Date.Format(time.DateOnly), r.Go, r.System, r.Cores, r.CPU, r.Rounds, seconds)
	b.WriteString("| | target | wanted | median (range) |\n|---|---|---|---|\n")
	for _, s := range r.Sections {
		for _, t := range s.Targets {
			verdict := "**missed**"
			if t.Reached {
				verdict = "reached"
			}
			fmt.Fprintf(&b, "| %s | %s: %s | %s | %s |\n", verdict, s.Name, t.Name, t.want(), t.got())
		}
	}
	for _, s := range r.Sections {
		if s.Name == "workers" {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n", strings.ToUpper(s.About[:1])+s.About[1:])
		for _, t := range tables(s.Figures) {
			if t.group != groupChart {
				t.markdown(&b)
			}
		}
		for _, n := range s.Notes {
			fmt.Fprintf(&b, "\n%s.\n", strings.ToUpper(n[:1])+n[1:])
		}
	}
	b.WriteString("\n")
	return b.String()
}

// table holds the figures of one group.
type table struct {
	group         string
	rows, columns []string
	cells         map[[2]string]string // by row and column; a missing one is empty
}

// tables returns the figures as tables, one for each group. Groups, rows and columns are in the order of their first figures.
func tables(all []figure) []*table {
	var list []*table
	for _, f := range all {
		i := slices.IndexFunc(list, func(t *table) bool { return t.group == f.Group })
		if i < 0 {
			i = len(list)
			list = append(list, &table{group: f.Group, cells: map[[2]string]string{}})
		}
		t := list[i]
		if !slices.Contains(t.rows, f.Name) {
			t.rows = append(t.rows, f.Name)
		}
		if !slices.Contains(t.columns, f.What) {
			t.columns = append(t.columns, f.What)
		}
		t.cells[[2]string{f.Name, f.What}] = f.Samples.String()
	}
	return list
}

// markdown appends the table to b, as Markdown.
func (t *table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n| %s | %s |\n|---%s|\n", t.group, strings.Join(t.columns, " | "), strings.Repeat("|---:", len(t.columns)))
	for _, row := range t.rows {
		fmt.Fprintf(b, "| %s |", row)
		for _, c := range t.columns {
			fmt.Fprintf(b, " %s |", t.cells[[2]string{row, c}])
		}
		b.WriteByte('\n')
	}
}

package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// matrix is several reports side by side: one row a case, one column a report.
type matrix struct {
	names  []string
	groups []matrixGroup
}

type matrixGroup struct {
	name string
	rows []matrixRow
}

// matrixRow holds one cell per report; nil if the report lacks the case.
type matrixRow struct {
	id    string
	level Level
	rule  string
	cells []*Case
}

// newMatrix joins the reports by case id, in the order of the first report, with those that only later reports have at the end of their group. Each row has a
// cell for each report; nil if the report does not have the case.
func newMatrix(reports []*Report) matrix {
	m := matrix{names: columnNames(reports)}
	groupAt, rowAt := map[string]int{}, map[string]int{}
	for column, r := range reports {
		for i := range r.Cases {
			c := &r.Cases[i]
			g, seen := groupAt[c.Group()]
			if !seen {
				g = len(m.groups)
				groupAt[c.Group()] = g
				m.groups = append(m.groups, matrixGroup{name: c.Group()})
			}
			rows := &m.groups[g].rows
			at, seen := rowAt[c.ID]
			if !seen {
				at = len(*rows)
				rowAt[c.ID] = at
				*rows = append(*rows, matrixRow{id: c.ID, level: c.Level, rule: c.Rule, cells: make([]*Case, len(reports))})
			}
			(*rows)[at].cells[column] = c
		}
	}
	return m
}

// columnNames returns the reports' titles, numbered if they are empty or occur twice.
func columnNames(reports []*Report) []string {
	times := map[string]int{}
	for _, r := range reports {
		times[r.Title()]++
	}
	names := make([]string, len(reports))
	for i, r := range reports {
		if names[i] = r.Title(); names[i] == "" || times[names[i]] > 1 {
			names[i] = strings.TrimSpace(names[i] + " #" + strconv.Itoa(i+1))
		}
	}
	return names
}

// WriteTextMatrix writes several reports side by side, as a table of verdicts.
func WriteTextMatrix(w io.Writer, o Options, reports ...*Report) error {
	t := &texter{o: o}
	prepared := prepareAll(reports, o)
	m := newMatrix(prepared)
	for i, name := range m.names {
		t.line("%s  %s  %s", t.paint(bold, fmt.Sprintf("[%d]", i+1)), oneLine(name), t.paint(dim, counts(prepared[i].Summary, false)))
	}
	width := 0
	for _, g := range m.groups {
		for _, row := range g.rows {
			width = max(width, utf8.RuneCountInString(row.id))
		}
	}
	t.line("")
	heads := make([]string, len(m.names))
	for i := range heads {
		heads[i] = pad(fmt.Sprintf("[%d]", i+1), 12)
	}
	t.line("%s  %s  %s", pad("", width), pad("", 8), t.paint(bold, strings.Join(heads, "  ")))
	for _, g := range m.groups {
		for _, row := range g.rows {
			t.line("%s  %s  %s", pad(row.id, width), t.paint(dim, pad(string(row.level), 8)), t.cells(row))
		}
	}
	return t.writeTo(w)
}

// cells returns one row's verdicts in columns.
func (t *texter) cells(row matrixRow) string {
	cells := make([]string, len(row.cells))
	for i, c := range row.cells {
		if c == nil {
			cells[i] = pad("·", 12)
			continue
		}
		cells[i] = t.verdict(c.Verdict, 12)
	}
	return strings.Join(cells, "  ")
}

// prepareAll returns each report in the form for writers: a copy without secrets, see prepare.
func prepareAll(reports []*Report, o Options) []*Report {
	prepared := make([]*Report, len(reports))
	for i, r := range reports {
		prepared[i] = prepare(r, o)
	}
	return prepared
}

package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// This file holds the rows of an export that seem to be of one operation twice.

// double returns all rows of the first type that has more than one row, such as two payments; nil if no type has. The type is the column of --type.
func double(rows []indexedRow) []indexedRow {
	for _, first := range rows {
		same := slices.DeleteFunc(slices.Clone(rows), func(r indexedRow) bool { return r.Type != first.Type })
		if len(same) > 1 {
			return same
		}
	}
	return nil
}

// rowsNamedMax bounds the rows of one finding.
const rowsNamedMax = 10

// doubleRows names the rows of an operation, with their amounts where these differ. rows has two or more (double); of many, the first rowsNamedMax are named.
func (a *audit) doubleRows(rows []indexedRow) string {
	differ := a.flags.amount != "" && slices.ContainsFunc(rows, func(r indexedRow) bool { return r.money() != rows[0].money() })
	var names []string
	for i := range rows[:min(len(rows), rowsNamedMax)] {
		name := rows[i].where()
		if differ {
			name = rows[i].money() + " in " + name
		}
		names = append(names, name)
	}
	text := strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	if len(rows) > rowsNamedMax {
		text = strings.Join(names, ", ") + fmt.Sprintf(" and %d more", len(rows)-rowsNamedMax)
	}
	return text
}

// countTypes counts an operation done here whose rows are all of one type (--type).
func (a *audit) countTypes(rows []indexedRow) {
	one := !slices.ContainsFunc(rows, func(r indexedRow) bool { return r.Type != rows[0].Type })
	if a.flags.typeCol == "" || !one {
		return
	}
	if a.oneType == nil {
		a.oneType = map[string]int{}
	}
	if _, known := a.oneType[rows[0].Type]; known || len(a.oneType) < typesMax {
		a.oneType[rows[0].Type]++
	}
}

// typesMax bounds the types that are counted.
const typesMax = 20

// typeSteps returns the next step where some operations have rows of one type alone, and others of another one: one with a refund alone may never have been paid, and
// no row tells the types apart.
func (a *audit) typeSteps() []string {
	if len(a.oneType) < 2 {
		return nil
	}
	var parts []string
	most := slices.MaxFunc(slices.Sorted(maps.Keys(a.oneType)), func(x, y string) int { return a.oneType[x] - a.oneType[y] })
	for _, kind := range slices.Sorted(maps.Keys(a.oneType)) {
		parts = append(parts, fmt.Sprintf("%s with %s=%s alone", words.Count(a.oneType[kind], "operation"), a.flags.typeCol, words.Clip(kind)))
	}
	return []string{fmt.Sprintf("types: %s, and the total there adds up all types; to compare one of them: --where %s", strings.Join(parts, ", "), words.ShellQuote(a.flags.typeCol+"="+most))}
}

// takeBack returns the next step for what took effect more than once by its rows. Some exports show one effect in several rows, and the step says so.
func (a *audit) takeBack(rows []indexedRow) string {
	step := "ask the provider; what took effect more than once, it takes back (a refund)"
	if a.flags.typeCol == "" {
		step += "; if one of the rows is itself a refund, a fee or the like, name the column that says so: --type COLUMN"
	}
	if slices.ContainsFunc(rows, func(r indexedRow) bool { return r.File != rows[0].File }) {
		step += "; if they are one row that several exports have, take it out of all but one"
	}
	return step
}

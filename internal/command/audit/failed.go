package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// failedWords are the words of a row of nothing done, or of something undone since.
var failedWords = []string{
	"failed", "failure", "declined", "denied", "refused", "refunded", "canceled", "cancelled", "rejected", "error", "reversed", "voided",
}

// statusWords are the last words in the names of columns with the status of a row.
var statusWords = []string{"status", "state", "outcome", "result"}

// wordsOf returns the words of a name or cell in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
}

// isStatus reports whether a column has the status of a row by its name, such as Status or payment_status.
func isStatus(column string) bool {
	name := wordsOf(column)
	return len(name) > 0 && slices.Contains(statusWords, name[len(name)-1])
}

// looksFailed reports whether the cell of a status says failed, such as "payment_failed".
func looksFailed(cell string) bool {
	in := wordsOf(cell)
	return slices.ContainsFunc(in, func(w string) bool { return slices.Contains(failedWords, w) }) &&
		!slices.ContainsFunc(in, func(w string) bool { return w == "no" || w == "not" })
}

// namesStatus reports whether --where names a column with a status.
func (f *auditFlags) namesStatus() bool {
	return slices.ContainsFunc(f.where, func(w string) bool {
		column, _, _ := strings.Cut(w, "=")
		return isStatus(column)
	})
}

// saysFailed returns the cell by which a row says that it is of nothing done, such as "status=failed"; "" if there is none, or
// --where names a column with a status. Without --where and --all-rows, a cell of any column that is one such word counts.
func (f *auditFlags) saysFailed(row map[string]string) string {
	if f.namesStatus() {
		return ""
	}
	anywhere := len(f.where) == 0 && !f.allRows
	for _, column := range slices.Sorted(maps.Keys(row)) {
		if column == f.match || column == f.typeCol {
			continue
		}
		cell := strings.ToLower(strings.TrimSpace(row[column]))
		if isStatus(column) && looksFailed(cell) || anywhere && slices.Contains(failedWords, cell) {
			return column + "=" + words.Clip(cell)
		}
	}
	return ""
}

// notes returns a note on each column with a status, if no flag names its values for done rows.
func (f *auditFlags) notes(name string, columns []string) []string {
	if len(f.where) > 0 || f.allRows {
		return nil
	}
	var notes []string
	for _, column := range columns {
		if isStatus(column) && column != f.match && column != f.typeCol {
			notes = append(notes, fmt.Sprintf("%s: column %q may say which rows are done: say --where %s", name, column, words.ShellQuote(column+"=VALUE")))
		}
	}
	return notes
}

// hints returns a line for each cell that says failed.
func (x *exportIndex) hints() []string {
	var lines []string
	for _, cell := range slices.Sorted(maps.Keys(x.failed)) {
		column, _, _ := strings.Cut(cell, "=")
		lines = append(lines, fmt.Sprintf("says failed: %s with %s, which no total has; say --where %s, with the value of rows that are done",
			words.Count(x.failed[cell], "row"), cell, words.ShellQuote(column+"=VALUE")))
	}
	return lines
}

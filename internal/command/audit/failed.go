package audit

import (
	"cmp"
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
	"void", "returned", "bounced", "chargeback", "expired", "unpaid", "blocked", "disputed", "aborted", "unsuccessful",
}

// doneWords are the words of a row of something done. A word that some API uses before the end, such as accepted, is none of them.
var doneWords = []string{
	"succeeded", "success", "successful", "successfully", "paid", "completed", "complete", "done", "ok", "settled", "captured", "posted", "executed",
	"confirmed", "approved", "cleared", "processed", "sent", "delivered", "booked", "credited",
}

// besideWords say nothing of the end in a status such as "payment.succeeded".
var besideWords = []string{"payment", "payout", "transfer", "transaction", "charge", "order", "fully", "and"}

// statusWords are the last words in the names of columns with the status of a row.
var statusWords = []string{"status", "state", "outcome", "result"}

// wordsOf returns the words of a name or cell in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
}

// isStatus reports whether the name of a column is that of a status of the rows, such as Status or payment_status.
func isStatus(column string) bool {
	name := wordsOf(column)
	return len(name) > 0 && slices.Contains(statusWords, name[len(name)-1])
}

// looksFailed reports whether the cell of a status column has a word of failure, such as "payment_failed", and no "no" or "not".
func looksFailed(cell string) bool {
	in := wordsOf(cell)
	return slices.ContainsFunc(in, func(w string) bool { return slices.Contains(failedWords, w) }) &&
		!slices.ContainsFunc(in, func(w string) bool { return w == "no" || w == "not" })
}

// undoneWords are words for what took effect, and was taken back.
var undoneWords = []string{"refunded", "reversed", "chargeback", "disputed"}

// looksUndone reports whether the cell of a status column speaks of something done and taken back, such as "refunded".
func looksUndone(cell string) bool {
	return looksFailed(cell) && slices.ContainsFunc(wordsOf(cell), func(w string) bool { return slices.Contains(undoneWords, w) })
}

// takenBack is the step for such a row.
const takenBack = "it took effect, and was taken back there: find out why, before anything is sent for it under another key"

// saysNothingDone sets the kind, the reason and the next step of the finding about a row which failed, or was taken back, by its own words. failed is the cell
// with that word, such as "status=failed".
func (x *Finding) saysNothingDone(failed string) {
	x.Finding, x.Why = Failed, "the row says that it is of nothing done"
	if _, cell, _ := strings.Cut(failed, "="); looksUndone(cell) {
		x.Why, x.Next = "the row says that it was taken back", takenBack
	}
}

// namesStatus reports whether --where names a column with a status.
func (f *auditFlags) namesStatus() bool {
	return slices.ContainsFunc(f.where, func(w string) bool {
		column, _, _ := strings.Cut(w, "=")
		return isStatus(column)
	})
}

// saysFailed returns the cell by which a row is of nothing done, such as "status=failed"; "" if there is none, or
// --where names a column with a status. Without --where and --all-rows, a cell of any column that is one such word counts.
func (f *auditFlags) saysFailed(row map[string]string) string {
	if f.namesStatus() {
		return ""
	}
	anywhere := len(f.where) == 0 && !f.allRows
	for _, column := range slices.Sorted(maps.Keys(row)) {
		if column == f.match || column == f.typeCol { // a reference is no status, and a type such as "refund" no failure
			continue
		}
		cell := strings.TrimSpace(row[column])
		if isStatus(column) && looksFailed(cell) || anywhere && slices.Contains(failedWords, strings.ToLower(cell)) {
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

// hints returns one line for each different status cell with a word of failure. The line tells how to leave these rows out (--where).
func (x *exportIndex) hints() []string {
	var lines []string
	for _, cell := range slices.Sorted(maps.Keys(x.failed)) {
		column, _, _ := strings.Cut(cell, "=")
		lines = append(lines, fmt.Sprintf("says failed: %s with %s, which no total has; say --where %s, with the value of rows that are done",
			words.Count(x.failed[cell], "row"), cell, words.ShellQuote(column+"=VALUE")))
	}
	return lines
}

// Unclear is the finding of rows with a status that is no known word of success or failure, of one column.
const Unclear = "unclear"

// unclear are the rows of one column with such a status.
type unclear struct {
	rows   int
	values map[string]int // rows by their cell, of the first unclearValuesMax different ones
}

const (
	unclearValuesMax   = 1000 // kept of a column
	unclearValuesShown = 5
)

// looksDone reports whether the cell of a status column means done: it has a word of doneWords, and no words but those of doneWords and besideWords.
func looksDone(cell string) bool {
	in, said := wordsOf(cell), false
	for _, w := range in {
		switch {
		case slices.Contains(doneWords, w):
			said = true
		case !slices.Contains(besideWords, w):
			return false
		}
	}
	return said
}

// unclearColumn returns the column with a status that does not say whether the row is of something done; "" if there is none, or if --where or --all-rows tells it. An
// empty cell is such a status only if no other column says done.
func (f *auditFlags) unclearColumn(row map[string]string) string {
	if len(f.where) > 0 || f.allRows {
		return ""
	}
	empty, done := "", false
	for _, column := range slices.Sorted(maps.Keys(row)) {
		switch cell := strings.TrimSpace(row[column]); {
		case !isStatus(column), column == f.match, column == f.typeCol:
		case cell == "":
			if empty == "" || len(column) < len(empty) {
				empty = column // status rather than dispute_status
			}
		case !looksDone(cell):
			return column
		default:
			done = true
		}
	}
	if done {
		return ""
	}
	return empty
}

// judge counts a row of the API's export as unclear if a status column does not say whether the row is of something done. It keeps the column and its
// value, to be shown to the user. Beyond unclearValuesMax values of a column, new ones are not kept, and their rows only counted.
func (x *exportIndex) judge(f *auditFlags, row map[string]string) {
	column := f.unclearColumn(row)
	if column == "" {
		return
	}
	u := x.unclear[column]
	if u == nil {
		u = &unclear{values: map[string]int{}}
		x.unclear[column] = u
	}
	u.rows++
	cell := words.Clip(strings.TrimSpace(row[column]))
	if u.values[cell] == 0 && len(u.values) >= unclearValuesMax {
		return
	}
	u.values[cell]++
}

// unclear prints a finding for each column with a status that is no known word, and counts its rows.
func (a *audit) unclear() error {
	for _, column := range slices.Sorted(maps.Keys(a.theirs.unclear)) {
		u := a.theirs.unclear[column]
		err := a.print(Finding{
			Finding: Unclear, There: fmt.Sprintf("%s with %s", words.Count(u.rows, "row"), u.text(column)), Why: "no known word of success or failure",
			Next: "say --where " + words.ShellQuote(column+"=VALUE") + " with each value of rows that are done, or --all-rows if all are",
		})
		if err != nil {
			return err
		}
		a.counts[Unclear] += u.rows
	}
	return nil
}

// text names the most frequent values of a status column, with the number of rows of each, for a finding.
func (u *unclear) text(column string) string {
	cells := slices.SortedFunc(maps.Keys(u.values), func(a, b string) int {
		return cmp.Or(cmp.Compare(u.values[b], u.values[a]), cmp.Compare(a, b))
	})
	var parts []string
	left := u.rows
	for _, cell := range cells[:min(len(cells), unclearValuesShown)] {
		text := fmt.Sprintf("%s=%q", column, cell)
		if u.values[cell] != u.rows {
			text += fmt.Sprintf(" ×%d", u.values[cell])
		}
		parts, left = append(parts, text), left-u.values[cell]
	}
	if left > 0 {
		parts = append(parts, words.Count(left, "row")+" with other values")
	}
	return strings.Join(parts, ", ")
}

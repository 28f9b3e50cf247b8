package journal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// columnsUsage is the help of --columns.
const columnsUsage = "the columns of a table or of CSV, separated by commas: those that stand there without the flag, age, or what stands in the requests, such as amount or /order/id"

// choose returns the columns of --columns: known ones by their names, and any other name as a value of the requests. Without --columns it returns known. It notes the
// latter kind in l.fields, for sayAbsent.
func (l *listFlags) choose(known []column, c clock) ([]column, error) {
	names := l.columns
	if len(names) == 0 {
		return known, nil
	}
	known = append(slices.Clip(known), column{"AGE", func(rec *persist.Record) string { return view.Roughly(c.now.Sub(rec.Created)) }})
	var chosen []column
	for _, name := range names {
		name = strings.TrimSpace(name)
		// last_error means the column LAST ERROR.
		i := slices.IndexFunc(known, func(k column) bool { return strings.EqualFold(k.name, strings.ReplaceAll(name, "_", " ")) })
		switch {
		case name == "":
			return nil, fmt.Errorf("--columns %q: an empty name", words.Clip(strings.Join(names, ",")))
		case i >= 0:
			chosen = append(chosen, known[i])
		default:
			f := &field{name: name}
			l.fields = append(l.fields, f)
			chosen = append(chosen, f.column())
		}
	}
	return chosen, nil
}

// field is a value of the requests, by its name or JSON pointer; of a pruned request it is the kept value.
type field struct {
	name       string
	shown, has int // listed records, and those of them with the value
}

// column returns a column with the value of a field of each request; "-" where the request has none. It counts the requests with the field, for sayAbsent.
func (f *field) column() column {
	pointer := f.name
	if !words.IsPointer(pointer) {
		pointer = words.PointerTo(f.name)
	}
	return column{strings.ToUpper(strings.TrimPrefix(f.name, "/")), func(rec *persist.Record) string {
		f.shown++
		text, why := results.RequestText(rec, pointer)
		if why != "" {
			return "-"
		}
		f.has++
		return words.OrDash(visible(strings.Join(strings.Fields(text), " ")))
	}}
}

// sayAbsent warns of fields named by --columns that no listed request has: a name may be mistyped.
func (l *listFlags) sayAbsent(w io.Writer) {
	for _, f := range l.fields {
		if f.shown > 0 && f.has == 0 {
			terminal.Say(w, "--columns %q: no request of the %s has it; columns of the record are those that stand there without the flag, and age",
				words.Clip(f.name), words.Count(f.shown, "listed operation"))
		}
	}
}

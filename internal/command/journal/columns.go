package journal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// columnsUsage is the help of --columns.
const columnsUsage = "the columns of a table or of CSV, separated by commas: those that stand there without the flag, age, or what stands in the requests, such as amount or /order/id"

// chooseColumns are the columns of --columns: those that are known by their names, and values of the requests.
func chooseColumns(known []column, names []string, c clock) ([]column, error) {
	if len(names) == 0 {
		return known, nil
	}
	known = append(slices.Clip(known), column{"AGE", func(rec *persist.Record) string { return view.Roughly(c.now.Sub(rec.Created)) }})
	var chosen []column
	for _, name := range names {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(known, func(k column) bool { return strings.EqualFold(k.name, strings.ReplaceAll(name, "_", " ")) })
		switch {
		case name == "":
			return nil, fmt.Errorf("--columns %q: an empty name", words.Clip(strings.Join(names, ",")))
		case i >= 0:
			chosen = append(chosen, known[i])
		default:
			chosen = append(chosen, fieldColumn(name))
		}
	}
	return chosen, nil
}

// fieldColumn is a value of the requests, by its name or JSON pointer; of a request that was pruned it is what was kept.
func fieldColumn(name string) column {
	pointer := name
	if !words.IsPointer(pointer) {
		pointer = words.PointerTo(name)
	}
	return column{strings.ToUpper(strings.TrimPrefix(name, "/")), func(rec *persist.Record) string {
		text, why := results.RequestText(rec, pointer)
		if why != "" {
			return "-"
		}
		return words.OrDash(visible(strings.Join(strings.Fields(text), " ")))
	}}
}

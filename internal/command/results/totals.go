package results

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// The classes of rows before they are sent, beside those of operations in the journal.
const (
	ClassNew     Class = "new"
	ClassChanged Class = "changed" // the key stands with other content
)

// Class is the part of a row or an operation in control totals. Each is in exactly one class, so the classes add up to all of them. A
// class is a result. Operations in doubt are parted: somebody goes on with them, or nobody does.
type Class string

const (
	ClassHeld    Class = Class(Held)
	ClassPending Class = "pending" // intended or in doubt, and the same command goes on
	ClassUnknown Class = Class(Unknown)
	ClassUnsent  Class = "unsent"        // never sent
	ClassUntried Class = "not looked at" // by this run; an earlier one may have ended them
	ClassStopped Class = "stopped before a send"
)

// AllClasses returns all classes (the states by which totals count rows, such as new or done), in the order of a summary.
func AllClasses() []Class {
	classes := make([]Class, 0, 15)
	classes = append(classes, ClassNew, ClassChanged)
	for _, r := range All() {
		if r == Unknown {
			classes = append(classes, ClassPending)
		}
		classes = append(classes, Class(r))
	}
	return append(classes, ClassUnsent, ClassUntried, ClassStopped)
}

// Class returns the class by which totals count a row: the result in its line, but pending if the same command goes on with it, and held for a duplicate that
// is held and does not just repeat another row (OfRow).
func (l *Line) Class() Class {
	switch {
	case l.Result == Duplicate && l.OfRow == 0 && l.State == persist.StateHeld.String():
		return ClassHeld
	case l.Result == Unknown && l.GoesOn:
		return ClassPending
	}
	return Class(l.Result)
}

// ClassOfRecord returns the class by which totals count an operation as it stands in the journal: held, pending, or else its result.
func (list Declines) ClassOfRecord(rec *persist.Record) Class {
	switch rec.State {
	case persist.StateHeld:
		return ClassHeld
	case persist.StatePending:
		return ClassPending
	}
	return Class(list.ResultOfRecord(rec))
}

// Totals are the numbers of rows and the sums of their amounts, by currency and class.
type Totals struct {
	Name  string // of the sums; "": nothing is added up
	Parts map[TotalOf]*total
	// without counts the operations without a known amount.
	without map[Class]int
}

type TotalOf struct {
	Currency string // "": none is named
	Class    Class
}

// total is one of totals.
type total struct {
	Rows int
	Sum  Decimal
}

// Add counts a row with its amount in the total of its class (such as done) and currency. A currency of "" is none.
func (t *Totals) Add(c Class, currency string, amount *Decimal) {
	of := TotalOf{currency, c}
	if t.Parts == nil {
		t.Parts = map[TotalOf]*total{}
	}
	if t.Parts[of] == nil {
		t.Parts[of] = &total{}
	}
	t.Parts[of].Rows++
	t.Parts[of].Sum.Add(amount)
}

// AddWithout counts one operation without a known amount.
func (t *Totals) AddWithout(c Class) {
	if t.without == nil {
		t.without = map[Class]int{}
	}
	t.without[c]++
}

// Currencies returns all currencies of the totals in alphabetical order; "" is among them for amounts without a currency.
func (t *Totals) Currencies() []string {
	seen := map[string]bool{}
	for of := range t.Parts {
		seen[of.Currency] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// All returns the number of rows in a currency, and the sum of their amounts, over all classes.
func (t *Totals) All(currency string) total {
	var sum total
	for of, part := range t.Parts {
		if of.Currency == currency {
			sum.Rows += part.Rows
			sum.Sum.Add(&part.Sum)
		}
	}
	return sum
}

// Rest counts the rows of all that t lacks, with their amounts, as untried (not looked at by this run), so that the classes of t add up to the whole input.
// all has the rows of the input.
func (t *Totals) Rest(all *Totals) {
	for _, currency := range all.Currencies() {
		left, has := all.All(currency), t.All(currency)
		left.Rows -= has.Rows
		has.Sum.units.Neg(&has.Sum.units)
		left.Sum.Add(&has.Sum)
		if left.Rows == 0 && left.Sum.units.Sign() == 0 {
			continue
		}
		if t.Parts == nil {
			t.Parts = map[TotalOf]*total{}
		}
		t.Parts[TotalOf{currency, ClassUntried}] = &left
	}
}

// label returns the name of a currency's sum in lines for the user, such as "total amount EUR".
func (t *Totals) label(currency string) string {
	return strings.TrimSpace("total " + t.Name + " " + currency)
}

// Sums returns a line for each currency with the sum and the number of all its rows. noun names a row.
func (t *Totals) Sums(noun string) []string {
	var lines []string
	for _, currency := range t.Currencies() {
		all := t.All(currency)
		lines = append(lines, fmt.Sprintf("%s: %s in %s", t.label(currency), all.Sum.String(), words.Count(all.Rows, noun)))
	}
	return lines
}

// Lines returns a line for each currency: the whole = the sum of its parts. One more line counts the operations without a known amount.
func (t *Totals) Lines(noun string) []string {
	lines := t.Sums(noun)
	for i, currency := range t.Currencies() {
		var parts []string
		for _, c := range AllClasses() {
			if part := t.Parts[TotalOf{currency, c}]; part != nil {
				parts = append(parts, fmt.Sprintf("%s in %d %s", part.Sum.String(), part.Rows, c))
			}
		}
		lines[i] += " = " + strings.Join(parts, " + ")
	}
	var parts []string
	for _, c := range AllClasses() {
		if n := t.without[c]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c))
		}
	}
	if len(parts) > 0 {
		lines = append(lines, fmt.Sprintf("total %s: not known of %s", t.Name, strings.Join(parts, ", ")))
	}
	return lines
}

// TotalView is a currency's totals in JSON. The sums are texts: a float would not be exact.
type TotalView struct {
	Of       string              `json:"of"`
	Currency string              `json:"currency,omitempty"`
	Rows     int                 `json:"rows"`
	Sum      string              `json:"sum"`
	Classes  map[Class]classView `json:"classes"`
}

type classView struct {
	Rows int    `json:"rows"`
	Sum  string `json:"sum"`
}

// Views returns the totals in JSON. Operations without an amount are a view without a sum.
func (t *Totals) Views() []TotalView {
	var views []TotalView
	for _, currency := range t.Currencies() {
		all := t.All(currency)
		v := TotalView{Of: t.Name, Currency: currency, Rows: all.Rows, Sum: all.Sum.String(), Classes: map[Class]classView{}}
		for of, part := range t.Parts {
			if of.Currency == currency {
				v.Classes[of.Class] = classView{part.Rows, part.Sum.String()}
			}
		}
		views = append(views, v)
	}
	if len(t.without) > 0 {
		v := TotalView{Of: t.Name, Classes: map[Class]classView{}}
		for c, n := range t.without {
			v.Rows += n
			v.Classes[c] = classView{Rows: n}
		}
		views = append(views, v)
	}
	return views
}

// SumFlags select the amounts to add up of operations in a journal.
type SumFlags struct{ Amount, currency string }

// Bind adds --sum and --currency to fs.
func (f *SumFlags) Bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.Amount, "sum", "", "JSON pointer to an amount of the requests, which is added up, such as /amount")
	fs.StringVar(&f.currency, "currency", "", "with --sum: JSON pointer to the currency, each of which has a sum of its own (default: "+DefaultCurrency+", where the requests have it)")
}

// Check returns an error if the value of --sum or --currency is no JSON pointer, and for a --currency without --sum.
func (f *SumFlags) Check() error {
	for _, p := range []struct{ flag, pointer string }{{"--sum", f.Amount}, {"--currency", f.currency}} {
		if p.pointer != "" && !words.IsPointer(p.pointer) {
			return fmt.Errorf("%s %q is not a JSON pointer, such as /amount", p.flag, words.Clip(p.pointer))
		}
	}
	if f.currency != "" && f.Amount == "" {
		return fmt.Errorf("--currency needs --sum, the amount")
	}
	return nil
}

// AddRecord adds an operation's amount, from its request or the kept fields of the request. An operation whose amount or currency is not known is only counted.
func (t *Totals) AddRecord(rec *persist.Record, c Class, f *SumFlags) {
	amount, currency, why := MoneyIn(rec, f.Amount, cmp.Or(f.currency, DefaultCurrency), f.currency != "")
	if why != "" {
		t.AddWithout(c)
		return
	}
	t.Add(c, currency, &amount)
}

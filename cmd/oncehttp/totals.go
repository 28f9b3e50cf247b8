package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/persist"
)

// class is where a row or an operation stands in control totals. Each is in exactly one, so that the classes add up
// to all of them: a result or, of those in doubt, whether somebody goes on with it.
type class string

const (
	classHeld    class = class(resultHeld)
	classPending class = "pending" // intended or in doubt, and the same command goes on
	classUnknown class = class(resultUnknown)
	classUnsent  class = "unsent" // not tried
)

func allClasses() []class {
	classes := make([]class, 0, 13)
	classes = append(classes, classNew, classChanged)
	for _, r := range allResults() {
		if r == resultUnknown {
			classes = append(classes, classPending)
		}
		classes = append(classes, class(r))
	}
	return append(classes, classUnsent)
}

// class is that of a row's line.
func (l *line) class() class {
	switch {
	case l.Result == resultDuplicate && l.OfRow == 0 && l.State == persist.StateHeld.String():
		return classHeld
	case l.Result == resultUnknown && l.goesOn:
		return classPending
	}
	return class(l.Result)
}

// classOfRecord is the class of an operation as it stands in the journal.
func (list declines) classOfRecord(rec *persist.Record) class {
	switch rec.State {
	case persist.StateHeld:
		return classHeld
	case persist.StatePending:
		return classPending
	}
	return class(list.resultOfRecord(rec))
}

// totals are the numbers of rows and the sums of their amounts, by currency and class.
type totals struct {
	name  string // of what is added up; "": nothing is
	parts map[totalOf]*total
	// without counts what has no amount that is known.
	without map[class]int
}

type totalOf struct {
	currency string // "": none is named
	class    class
}

// total is one of totals.
type total struct {
	rows int
	sum  decimal
}

// add counts one amount.
func (t *totals) add(c class, currency string, amount *decimal) {
	of := totalOf{currency, c}
	if t.parts == nil {
		t.parts = map[totalOf]*total{}
	}
	if t.parts[of] == nil {
		t.parts[of] = &total{}
	}
	t.parts[of].rows++
	t.parts[of].sum.add(amount)
}

// addWithout counts one whose amount is not known.
func (t *totals) addWithout(c class) {
	if t.without == nil {
		t.without = map[class]int{}
	}
	t.without[c]++
}

// currencies are those that occur, in their order.
func (t *totals) currencies() []string {
	seen := map[string]bool{}
	for of := range t.parts {
		seen[of.currency] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// all is the total of a currency.
func (t *totals) all(currency string) total {
	var sum total
	for of, part := range t.parts {
		if of.currency == currency {
			sum.rows += part.rows
			sum.sum.add(&part.sum)
		}
	}
	return sum
}

// rest counts as unsent what all has and t lacks.
func (t *totals) rest(all *totals) {
	for _, currency := range all.currencies() {
		left, has := all.all(currency), t.all(currency)
		left.rows -= has.rows
		has.sum.units.Neg(&has.sum.units)
		left.sum.add(&has.sum)
		if left.rows == 0 && left.sum.units.Sign() == 0 {
			continue
		}
		if t.parts == nil {
			t.parts = map[totalOf]*total{}
		}
		t.parts[totalOf{currency, classUnsent}] = &left
	}
}

// label is how lines call the sum of a currency.
func (t *totals) label(currency string) string {
	return strings.TrimSpace("total " + t.name + " " + currency)
}

// sums are a line for each currency: the whole, without its parts.
func (t *totals) sums(noun string) []string {
	var lines []string
	for _, currency := range t.currencies() {
		all := t.all(currency)
		lines = append(lines, fmt.Sprintf("%s: %s in %s", t.label(currency), all.sum.String(), count(all.rows, noun)))
	}
	return lines
}

// lines are a line for each currency: the whole, and its parts, which add up to it.
func (t *totals) lines(noun string) []string {
	lines := t.sums(noun)
	for i, currency := range t.currencies() {
		var parts []string
		for _, c := range allClasses() {
			if part := t.parts[totalOf{currency, c}]; part != nil {
				parts = append(parts, fmt.Sprintf("%s in %d %s", part.sum.String(), part.rows, c))
			}
		}
		lines[i] += " = " + strings.Join(parts, " + ")
	}
	var parts []string
	for _, c := range allClasses() {
		if n := t.without[c]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c))
		}
	}
	if len(parts) > 0 {
		lines = append(lines, fmt.Sprintf("total %s: not known of %s", t.name, strings.Join(parts, ", ")))
	}
	return lines
}

// totalView is a currency's totals in JSON. The sums are texts: a float would not be exact.
type totalView struct {
	Of       string              `json:"of"`
	Currency string              `json:"currency,omitempty"`
	Rows     int                 `json:"rows"`
	Sum      string              `json:"sum"`
	Classes  map[class]classView `json:"classes"`
}

type classView struct {
	Rows int    `json:"rows"`
	Sum  string `json:"sum"`
}

// views are the totals in JSON. What has no amount is a view without a sum.
func (t *totals) views() []totalView {
	var views []totalView
	for _, currency := range t.currencies() {
		all := t.all(currency)
		v := totalView{Of: t.name, Currency: currency, Rows: all.rows, Sum: all.sum.String(), Classes: map[class]classView{}}
		for of, part := range t.parts {
			if of.currency == currency {
				v.Classes[of.class] = classView{part.rows, part.sum.String()}
			}
		}
		views = append(views, v)
	}
	if len(t.without) > 0 {
		v := totalView{Of: t.name, Classes: map[class]classView{}}
		for c, n := range t.without {
			v.Rows += n
			v.Classes[c] = classView{Rows: n}
		}
		views = append(views, v)
	}
	return views
}

// sumFlags say what is added up of operations in a journal.
type sumFlags struct{ amount, currency string }

func (f *sumFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.amount, "sum", "", "JSON pointer to an amount of the requests, which is added up, such as /amount")
	fs.StringVar(&f.currency, "currency", "", "with --sum: JSON pointer to the currency, each of which has a sum of its own")
}

// check checks the pointers.
func (f *sumFlags) check() error {
	for _, p := range []struct{ flag, pointer string }{{"--sum", f.amount}, {"--currency", f.currency}} {
		if p.pointer != "" && !isPointer(p.pointer) {
			return fmt.Errorf("%s %q is not a JSON pointer, such as /amount", p.flag, clip(p.pointer))
		}
	}
	if f.currency != "" && f.amount == "" {
		return fmt.Errorf("--currency needs --sum, the amount")
	}
	return nil
}

// addRecord adds an operation's amount, from its request or what was kept of it.
func (t *totals) addRecord(rec *persist.Record, c class, f *sumFlags) {
	amount, currency, why := moneyIn(rec, f.amount, cmp.Or(f.currency, defaultCurrency), f.currency != "")
	if why != "" {
		t.addWithout(c)
		return
	}
	if f.currency == "" {
		currency = ""
	}
	t.add(c, currency, &amount)
}

// moneyIn is the amount and the currency at two pointers of an operation's request; why says why they are not known. The
// currency may be missing unless it is needed.
func moneyIn(rec *persist.Record, amountAt, currencyAt string, needed bool) (amount decimal, currency, why string) {
	text, why := requestText(rec, amountAt)
	if why != "" {
		return amount, "", why
	}
	amount, err := parseDecimal(strings.TrimSpace(text))
	if err != nil {
		return amount, "", fmt.Sprintf("what its request has at %s is no decimal number: %q", amountAt, clip(text))
	}
	currency, why = requestText(rec, currencyAt)
	if why != "" && needed {
		return amount, "", why
	}
	return amount, strings.ToUpper(strings.TrimSpace(currency)), ""
}

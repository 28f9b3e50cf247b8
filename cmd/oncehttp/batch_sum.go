package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// batchSums say which field of a row is added up, and what the sums have to be.
type batchSums struct {
	column     string
	currency   string
	expectRows int
	expectSums []string
}

func (f *batchSums) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.column, "sum", "", "a column or member that is added up, exactly: before the first send, in the summary, and from its kept field in journal stats")
	fs.StringVar(&f.currency, "currency", "", "with --sum: a column or member with the currency, each of which has a sum of its own")
	fs.IntVar(&f.expectRows, "expect-rows", -1, "refuse a file of any other number of rows before anything is sent")
	fs.StringArrayVar(&f.expectSums, "expect-sum", nil, "refuse a file of any other --sum: 1234.50 or, with --currency, EUR=1234.50 for each; may be repeated")
}

// expected are the sums of --expect-sum, by currency.
func (f *batchSums) expected() (map[string]*decimal, error) {
	sums := map[string]*decimal{}
	for _, text := range f.expectSums {
		currency, amount, has := strings.Cut(text, "=")
		if !has {
			currency, amount = "", text
		}
		d, err := parseDecimal(strings.TrimSpace(amount))
		currency = strings.ToUpper(strings.TrimSpace(currency))
		switch {
		case err != nil:
			return nil, fmt.Errorf("--expect-sum %q: %w", clip(text), err)
		case (currency != "") != (f.currency != ""):
			return nil, fmt.Errorf("--expect-sum %q: want 1234.50 or, with --currency, EUR=1234.50", clip(text))
		case sums[currency] != nil:
			return nil, fmt.Errorf("--expect-sum %q: %s has two sums", clip(text), orDash(currency))
		}
		sums[currency] = &d
	}
	return sums, nil
}

// set checks the flags, and puts what they need of each row into the plan.
func (f *batchSums) set(p *plan, needs *rowNeeds) error {
	p.sum, p.currency = -1, -1
	switch {
	case f.column == "" && (f.currency != "" || len(f.expectSums) > 0):
		return errors.New("--currency and --expect-sum need --sum, the amount")
	case f.expectRows < -1:
		return errors.New("--expect-rows must not be negative")
	case f.column == "":
		return nil
	}
	if _, err := f.expected(); err != nil {
		return err
	}
	p.sum = needs.index(f.column)
	if f.currency != "" {
		p.currency = needs.index(f.currency)
	}
	return nil
}

// index is that of a field among those that are needed, to which it is added if it is not there.
func (n *rowNeeds) index(field string) int {
	i := slices.Index(n.fields, field)
	if i < 0 {
		i = len(n.fields)
		n.fields = append(n.fields, field)
	}
	return i
}

// keeps is the pointer to the amount in a row's request, by which the journal knows it when the request is pruned; "" where
// --body puts it anywhere.
func (f *batchFlags) keeps() []string {
	var pointers []string
	for _, name := range []string{f.sums.column, f.sums.currency} {
		switch {
		case name == "" || f.template:
		case isPointer(name):
			pointers = append(pointers, name)
		default:
			pointers = append(pointers, pointerTo(name))
		}
	}
	return pointers
}

// keptFields are what the journal keeps of each request.
func (f *batchFlags) keptFields(keyFields []string) ([]string, error) {
	given := f.keepFields
	if len(given) > 0 && !slices.Contains(given, keepNone) {
		for _, p := range f.keeps() {
			if !slices.Contains(given, p) {
				given = append(slices.Clip(given), p)
			}
		}
	}
	byDefault := batchKeepFields(keyFields)
	for _, p := range slices.Backward(f.keeps()) {
		byDefault = slices.Insert(slices.DeleteFunc(byDefault, func(kept string) bool { return kept == p }), 0, p)
	}
	return parseKeepFields(given, byDefault)
}

// amount is the row's amount and its currency. An error is of column.
func (p *plan) amount(r *row) (amount decimal, currency, column string, err error) {
	amount, err = parseDecimal(strings.TrimSpace(r.fields[p.sum]))
	if err != nil {
		return amount, "", p.needs.fields[p.sum], fmt.Errorf("%q %w, and --sum adds it up", clip(r.fields[p.sum]), err)
	}
	if p.currency >= 0 {
		currency = strings.ToUpper(strings.TrimSpace(r.fields[p.currency]))
		if !isCurrency(currency) {
			return amount, "", p.needs.fields[p.currency], fmt.Errorf("%q is no currency of three letters", clip(r.fields[p.currency]))
		}
	}
	return amount, currency, "", nil
}

// checkAmount reads the amount of a row that is surveyed.
func (p *plan) checkAmount(file string, r *readRow) error {
	if p.sum < 0 {
		return nil
	}
	var column string
	var err error
	if r.amount, r.currency, column, err = p.amount(&r.row); err != nil {
		return &inputError{file: file, row: r.number, line: r.line, column: column, err: err, more: true}
	}
	return nil
}

// count adds a row to the totals, if there are any.
func (p *plan) count(t *totals, c class, r *row) {
	if p.sum < 0 {
		return
	}
	if amount, currency, _, err := p.amount(r); err == nil { // as it was when the row was checked
		t.add(c, currency, &amount)
	}
}

// check refuses an input that is not what --expect-rows and --expect-sum say.
func (f *batchSums) check(file string, sv *survey) error {
	var faults []string
	if f.expectRows >= 0 && sv.rows != f.expectRows {
		faults = append(faults, fmt.Sprintf("has %s, and --expect-rows says %d", count(sv.rows, "row"), f.expectRows))
	}
	expected, err := f.expected()
	if err != nil {
		return err
	}
	if len(expected) > 0 {
		for _, currency := range sv.totals.currencies() {
			has := sv.totals.all(currency)
			switch want := expected[currency]; {
			case want == nil:
				faults = append(faults, fmt.Sprintf("has %s %s in %s, of which --expect-sum says nothing", has.sum.String(), currency, count(has.rows, "row")))
			case !want.equals(&has.sum):
				faults = append(faults, fmt.Sprintf("adds up to %s, and --expect-sum says %s", strings.TrimSpace(has.sum.String()+" "+currency), want.String()))
			}
			delete(expected, currency)
		}
		for _, text := range f.expectSums {
			currency, _, _ := strings.Cut(text, "=")
			if want := expected[strings.ToUpper(strings.TrimSpace(currency))]; want != nil {
				faults = append(faults, fmt.Sprintf("has no %s, and --expect-sum says %s", currency, want.String()))
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &inputError{file: file, err: errors.New(strings.Join(faults, "; ") + "; nothing was sent")}
}

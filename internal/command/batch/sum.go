package batch

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// batchSums names the field to be added up, and the expected sums and number of rows.
type batchSums struct {
	decimal    string
	column     string
	currency   string
	expectRows int
	expectSums []string
}

// bind adds --sum, and the flags that go with it (--currency, --decimal and what is expected), to fs.
func (f *batchSums) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.column, "sum", "", "a column or member that is added up, exactly: before the first send, in the summary, and from its kept field in journal stats")
	fs.StringVar(&f.currency, "currency", "", "with --sum: a column or member with the currency, each of which has a sum of its own; that of {column:minor}, too")
	fs.StringVar(&f.decimal, "decimal", "", "the character before the decimals of numbers in a CSV file, . or , (default: a point; an amount such as 1.234, which may be read in two ways, or 1,50 is refused); cells that --sum alone reads are sent as they stand")
	fs.IntVar(&f.expectRows, "expect-rows", -1, "refuse a file of any other number of rows before anything is sent")
	fs.StringArrayVar(&f.expectSums, "expect-sum", nil, "refuse a file of any other --sum: 1234.50 or, with --currency, EUR=1234.50 for each; may be repeated")
}

// expected returns the sums of --expect-sum, by currency; that of a sum without one is "". A sum that cannot be read, or is given twice, is an error.
func (f *batchSums) expected() (map[string]*results.Decimal, error) {
	sums := map[string]*results.Decimal{}
	for _, text := range f.expectSums {
		currency, amount, has := strings.Cut(text, "=")
		if !has {
			currency, amount = "", text
		}
		d, err := results.ParseDecimal(strings.TrimSpace(amount))
		currency = strings.ToUpper(strings.TrimSpace(currency))
		switch {
		case err != nil:
			return nil, fmt.Errorf("--expect-sum %q: %w; write it as 1234.50, whatever --decimal says of the file", words.Clip(text), err)
		case (currency != "") != (f.currency != ""):
			return nil, fmt.Errorf("--expect-sum %q: want 1234.50 or, with --currency, EUR=1234.50", words.Clip(text))
		case sums[currency] != nil:
			return nil, fmt.Errorf("--expect-sum %q: %s has two sums", words.Clip(text), words.OrDash(currency))
		}
		sums[currency] = &d
	}
	return sums, nil
}

// set checks the flags, and has the amount and currency read from each row: p.sum and p.currency become the numbers of their fields, or -1 if the flag is not given.
func (f *batchSums) set(p *plan, needs *input.RowNeeds) error {
	p.sum, p.currency = -1, -1
	switch {
	case f.column == "" && len(f.expectSums) > 0, f.column == "" && f.currency != "" && needs.Body == nil: // {column:minor} in --body takes a --currency, too
		return errors.New("--currency and --expect-sum need --sum, the amount")
	case f.expectRows < -1:
		return errors.New("--expect-rows must not be negative")
	case f.column == "":
		return nil
	}
	if _, err := f.expected(); err != nil {
		return err
	}
	p.sum = needs.Index(f.column, "--sum")
	if f.currency != "" {
		p.currency = needs.Index(f.currency, "--currency")
	}
	return nil
}

// checkDecimal returns an error if --decimal is given and no column is read as a number: the cells would be sent as they stand, and the flag would do nothing.
func (f *batchSums) checkDecimal(needs *input.RowNeeds) error {
	if f.decimal == "" || f.column != "" || len(needs.Numbers) > 0 || needs.Body != nil && needs.Body.HasNumbers() {
		return nil
	}
	return errors.New("--decimal says how numbers are written, and no column is one: name it with --number or --sum, or as {column:number} in --body")
}

// sayUnread warns of a --sum whose cells --decimal reads for the total alone: they are sent as they stand. such is one that is no plain number; "": there is none.
func (f *batchSums) sayUnread(needs *input.RowNeeds, such string, quiet bool, stderr io.Writer) {
	if f.decimal == "" || f.column == "" || quiet || slices.Contains(needs.Numbers, f.column) || needs.Body != nil && needs.Body.ReadsNumber(f.column) {
		return
	}
	how := "--number " + words.ShellQuote(f.column)
	if needs.Body != nil {
		how = "{" + words.Clip(f.column) + ":number} in --body"
	}
	if such != "" {
		such = ", such as " + words.Clip(such)
	}
	terminal.Say(stderr, "warning: --decimal reads the column %q for --sum alone: its cells are sent as they stand%s; %s sends them as numbers", words.Clip(f.column), such, how)
}

// keeps returns JSON pointers to the amount and its currency in the request of a row. The journal keeps these values after it has pruned the request. With --body it
// returns none, since the template may put them anywhere.
func (f *batchFlags) keeps() []string {
	var pointers []string
	for _, name := range []string{f.sums.column, f.sums.currency} {
		switch {
		case name == "" || f.template:
		case words.IsPointer(name):
			pointers = append(pointers, name)
		default:
			pointers = append(pointers, words.PointerTo(name))
		}
	}
	return pointers
}

// keptFields returns JSON pointers to the values of each request that the journal keeps: those of --keep-field or the default ones, and the amounts of --sum in either
// case.
func (f *batchFlags) keptFields(keyFields []string) ([]string, error) {
	given := f.keepFields
	if len(given) > 0 && !slices.Contains(given, session.KeepNone) {
		for _, p := range f.keeps() {
			if !slices.Contains(given, p) {
				given = append(slices.Clip(given), p)
			}
		}
	}
	byDefault := session.BatchKeepFields(keyFields)
	// The amount and its currency go to the front: first the currency, then the amount before it.
	for _, p := range slices.Backward(f.keeps()) {
		byDefault = slices.Insert(slices.DeleteFunc(byDefault, func(kept string) bool { return kept == p }), 0, p)
	}
	return session.ParseKeepFields(given, byDefault)
}

// amount returns the amount of --sum in a row, with its currency, "" without --currency. An error is about column. It must not be called without --sum. Of cells of
// CSV (r.Cells), p.marks notes the decimal marks by which they can be read, for the text of an error.
func (p *plan) amount(r *input.Row) (amount results.Decimal, currency, column string, err error) {
	amount, err = p.amountIn(r.Fields[p.sum], r.Cells)
	if r.Cells && p.needs.Spelling.Mark() == "" {
		p.marks.see(r.Fields[p.sum])
	}
	if err != nil {
		return amount, "", p.needs.Fields[p.sum], &amountError{r.Fields[p.sum], err, &p.marks}
	}
	if p.currency >= 0 {
		currency = strings.ToUpper(strings.TrimSpace(r.Fields[p.currency]))
		if !results.IsCurrency(currency) {
			total := ""
			if r.Total != "" {
				total = fmt.Sprintf("; the row says %q: it may be the total of others", r.Total)
			}
			return amount, "", p.needs.Fields[p.currency], fmt.Errorf("%q is no currency of three letters%s", words.Clip(r.Fields[p.currency]), total)
		}
	}
	return amount, currency, "", nil
}

// marks are the values of --decimal that cannot read a cell seen so far. Safe for concurrent use.
type marks struct{ noPoint, noComma atomic.Bool }

// see notes for an amount whether it cannot be read with a point, or with a comma, as its decimal mark. After all rows, the notes tell whether one --decimal would read
// them all.
func (m *marks) see(cell string) {
	lookAt := func(mark string, no *atomic.Bool) {
		if no.Load() {
			return
		}
		if _, err := results.LocalDecimal(cell, mark); err != nil {
			no.Store(true)
		}
	}
	lookAt(".", &m.noPoint)
	lookAt(",", &m.noComma)
}

// amountError is a cell of --sum that cannot be read without --decimal, or not at all. Its text is made when all rows were seen: no mark is advised that another
// row cannot be read with.
type amountError struct {
	cell  string
	err   error
	marks *marks
}

// Error names the cell of the amount, and why --sum cannot add it up. If some rows have a decimal comma and others a point, no --decimal helps, and
// the text says so.
func (e *amountError) Error() string {
	why := e.err.Error()
	if !errors.Is(e.err, results.ErrNoDecimal) && e.marks.noPoint.Load() && e.marks.noComma.Load() {
		why = "is not a plain number, and neither --decimal . nor --decimal , reads all rows: write them alike"
	}
	return fmt.Sprintf("%q %s; --sum adds it up", words.Clip(e.cell), why)
}

// Unwrap returns the fault of the amount.
func (e *amountError) Unwrap() error { return e.err }

// amountIn reads an amount. cell is true for a cell of a CSV file, read with the decimal mark of --decimal; a JSON number has a point.
func (p *plan) amountIn(text string, cell bool) (results.Decimal, error) {
	if text = strings.TrimSpace(text); cell {
		return results.CellDecimal(text, p.needs.Spelling.Mark())
	}
	return results.ParseDecimal(text)
}

// checkAmount reads the amount and currency of a row into r, if there is a --sum. The first reading of the input calls it for each row; the error has the place of the
// fault in the file.
func (p *plan) checkAmount(file string, r *readRow) error {
	if p.sum < 0 {
		return nil
	}
	var column string
	var err error
	if r.amount, r.currency, column, err = p.amount(&r.Row); err != nil {
		return &input.RowError{File: file, Row: r.Number, Line: r.Line, Column: column, Err: err, More: true}
	}
	return nil
}

// count adds the amount of a row to the totals of its class, the state of the row, such as done. Without --sum it does nothing.
func (p *plan) count(t *results.Totals, c results.Class, r *input.Row) {
	if p.sum < 0 {
		return
	}
	if amount, currency, _, err := p.amount(r); err == nil { // as it was when the row was checked
		t.Add(c, currency, &amount)
	}
}

// check returns an error if the number of rows or the sums of the input differ from --expect-rows and --expect-sum. sv holds the counts of the first
// reading.
func (f *batchSums) check(file string, sv *survey) error {
	var faults []string
	if sv.rows == 0 && f.expectRows != 0 {
		return &input.RowError{File: file, Err: errors.New("has a header and no rows: there is nothing to send; where that is right, say --expect-rows 0")}
	}
	if f.expectRows >= 0 && sv.rows != f.expectRows {
		faults = append(faults, fmt.Sprintf("has %s, and --expect-rows says %d", words.Count(sv.rows, "row"), f.expectRows))
	}
	expected, err := f.expected()
	if err != nil {
		return err
	}
	if len(expected) > 0 {
		for _, currency := range sv.totals.Currencies() {
			has := sv.totals.All(currency)
			switch want := expected[currency]; {
			case want == nil:
				faults = append(faults, fmt.Sprintf("has %s %s in %s, of which --expect-sum says nothing", has.Sum.String(), currency, words.Count(has.Rows, "row")))
			case !want.Equals(&has.Sum):
				faults = append(faults, fmt.Sprintf("adds up to %s, and --expect-sum says %s", strings.TrimSpace(has.Sum.String()+" "+currency), want.String()))
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
	return &input.RowError{File: file, Err: errors.New(strings.Join(faults, "; ") + "; nothing was sent")}
}

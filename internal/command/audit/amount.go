package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// The words of --unit and --our-unit.
const (
	UnitMinor = "minor" // cents
	UnitMajor = "major" // euros
)

// units are the flags --unit and --our-unit.
type units struct{ theirs, ours string }

// check checks --unit and --our-unit, minor (cents) or major, and fills in the side that is not given: with --unit alone, our amounts are minor; with --our-unit alone,
// the export has the same unit.
func (u *units) check() error {
	for _, f := range []struct{ flag, value string }{{"--unit", u.theirs}, {"--our-unit", u.ours}} {
		if f.value != "" && f.value != UnitMinor && f.value != UnitMajor {
			return fmt.Errorf("%s %q: want minor or major", f.flag, words.Clip(f.value))
		}
	}
	switch {
	case u.theirs != "" && u.ours == "":
		u.ours = UnitMinor
	case u.theirs == "" && u.ours == UnitMajor:
		u.theirs = UnitMajor
	case u.theirs == "" && u.ours == UnitMinor:
		u.theirs = UnitMinor
	}
	return nil
}

// same reports whether our amount and that of the export are the same money in a currency, after the conversion of cents. It is false if the digits of the currency are
// needed and not known.
func (u *units) same(ours, theirs results.Decimal, currency string) bool {
	if u.ours != u.theirs {
		digits, known := minorDigits(currency)
		if !known {
			return false
		}
		if u.ours == UnitMinor {
			ours.Scale += digits // a division: 1234 cents are 12.34
		} else {
			theirs.Scale += digits
		}
	}
	return ours.Equals(&theirs)
}

// inMajor converts an amount in cents to major units if the two sides have different units, so that their totals can be compared. unit is that of the amount. Other
// amounts are returned as they are, and so is one of a currency with an unknown number of decimals.
func (u *units) inMajor(amount results.Decimal, unit, currency string) results.Decimal {
	if u.ours != u.theirs && unit == UnitMinor {
		digits, _ := minorDigits(currency)
		amount.Scale += digits // a division: 1234 cents become 12.34
	}
	return amount
}

// minorDigits returns the number of decimals of a currency, such as 2 for EUR; known is false for an unknown one. An amount without a currency is taken to have two.
func minorDigits(currency string) (digits int, known bool) {
	if currency == "" {
		return 2, true
	}
	return results.MinorDigits(currency)
}

// checkCurrency returns an error if the two sides have different units, cents and major ones, and the number of decimals of the currency is not known.
func (u *units) checkCurrency(currency string) error {
	if _, known := minorDigits(currency); u.ours != u.theirs && !known {
		return fmt.Errorf("%q: ISO 4217 lists no smallest unit of it, so minor and major units cannot be compared", words.Clip(currency))
	}
	return nil
}

// money is the amount of an operation by our side.
type money struct {
	amount   results.Decimal
	currency string
}

// knownMoney keeps the last result of moneyOf, since the totals and the comparison both ask for it.
type knownMoney struct {
	of    persist.ID
	money money
	why   string
}

// String returns the amount with its currency, as a report prints it.
func (m *money) String() string { return strings.TrimSpace(m.amount.String() + " " + m.currency) }

// moneyOf returns the amount and currency in the request of an operation; why is the reason if they are not known. If the request has no currency, and
// --our-currency does not ask for one, the currency is empty, and that of the export is taken as correct. The result for the last operation is kept, since callers
// ask several times.
func (a *audit) moneyOf(rec *persist.Record) (m money, why string) {
	if k := a.known; k != nil && k.of == rec.ID {
		return k.money, k.why
	}
	defer func() { a.known = &knownMoney{of: rec.ID, money: m, why: why} }()
	if rec.Erased {
		return m, "its record was erased, with its request"
	}
	m.amount, m.currency, why = results.MoneyIn(rec, a.flags.amount, cmp.Or(a.flags.ourCurrency, results.DefaultCurrency), a.flags.ourCurrency != "")
	return m, why
}

// currencyColumn returns the column of an export's row with the currency: that of --currency, else the one with a usual name. It returns "" if there is none, with
// --currency "" (hasCurrency: the flag was given), and without --amount. Several such columns are an error.
func (f *auditFlags) currencyColumn(row map[string]string) (string, error) {
	if f.amount == "" || f.hasCurrency || f.currency != "" {
		return f.currency, nil
	}
	var found []string
	for _, column := range slices.Sorted(maps.Keys(row)) {
		// The column of --match or --type has another task, whatever its name.
		if slices.Contains([]string{"currency", "currency code", "currency_code", "ccy", "curr"}, strings.ToLower(column)) && column != f.match && column != f.typeCol {
			found = append(found, column)
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("columns %s may have the currency: say --currency COLUMN", strings.Join(words.Quoted(found), ", "))
}

// total adds an operation of the journal to the totals of our side, by class of result and currency. An operation without a readable amount is only
// counted. Without --amount there are no totals.
func (a *audit) total(rec *persist.Record) {
	if a.flags.amount == "" {
		return
	}
	c := a.declines.ClassOfRecord(rec)
	if m, why := a.moneyOf(rec); why != "" {
		a.totals.AddWithout(c)
	} else {
		amount := a.flags.units.inMajor(m.amount, a.flags.units.ours, m.currency)
		a.totals.Add(c, m.currency, &amount)
	}
}

// agree reports whether a row of an export has the money m, if amounts are read in these units. Two known currencies must be equal; a missing one is not compared.
// An amount that cannot be read agrees with none.
func (u *units) agree(m *money, r *exportRow) bool {
	if r.Currency != "" && m.currency != "" && !strings.EqualFold(m.currency, r.Currency) {
		return false
	}
	theirs, err := results.ParseDecimal(r.Amount)
	return err == nil && u.same(m.amount, theirs, cmp.Or(r.Currency, m.currency))
}

// scale counts the compared operations whose amounts would agree by other units than the given ones.
type scale struct{ compared, minorThere, minorHere int }

// add counts a compared operation, and whether its amount would agree with cents on one side and major units (such as euros) on the other. At the end, hint names
// these units if all would. agree compares the amount in given units. ours and theirs are true if no amount of that side is written with decimals: one with decimals
// is not in cents.
func (s *scale) add(agree func(units) bool, ours, theirs bool) {
	s.compared++
	if theirs && agree(units{theirs: UnitMinor, ours: UnitMajor}) {
		s.minorThere++
	}
	if ours && agree(units{theirs: UnitMajor, ours: UnitMinor}) {
		s.minorHere++
	}
}

// withoutDecimals reports whether all rows have an amount without decimals, as cents have. It is false if one of them cannot be read.
func withoutDecimals(rows []indexedRow) bool {
	return !slices.ContainsFunc(rows, func(r indexedRow) bool {
		d, err := results.ParseDecimal(r.Amount)
		return err != nil || d.Scale > 0
	})
}

// hint returns a line with the values of --unit and --our-unit by which all compared amounts would agree; "" if there are none. differing is the number of amounts that
// differ as compared; with 0 no hint is needed.
func (s *scale) hint(differing int) string {
	const text = "units: every compared amount agrees with cents %s and major units %s: if that is how they count, say --unit %s --our-unit %s; else each is wrong by a hundred times or the like"
	switch {
	case differing == 0:
		return ""
	case s.minorThere == s.compared:
		return fmt.Sprintf(text, "there", "here", UnitMinor, UnitMajor)
	case s.minorHere == s.compared:
		return fmt.Sprintf(text, "here", "there", UnitMajor, UnitMinor)
	}
	return ""
}

// amountsOf returns the amounts of an operation here and of its first row in the exports as text for a finding, as far as they are known; "" without --amount.
func (a *audit) amountsOf(rec *persist.Record, rows []indexedRow) string {
	if a.flags.amount == "" {
		return ""
	}
	var parts []string
	if m, why := a.moneyOf(rec); why == "" {
		parts = append(parts, m.String()+" here")
	}
	if len(rows) > 0 && rows[0].Amount != "" {
		parts = append(parts, rows[0].money()+" there")
	}
	return strings.Join(parts, ", ")
}

package audit

import (
	"cmp"
	"fmt"
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

// check reads the units. Where one side alone is named, the other has the other unit, or, of ours, the smallest.
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

// same reports whether our amount and theirs are the same money in a currency.
func (u *units) same(ours, theirs results.Decimal, currency string) bool {
	if u.ours != u.theirs {
		digits := results.MinorDigits(currency)
		if u.ours == UnitMinor {
			ours.Scale += digits
		} else {
			theirs.Scale += digits
		}
	}
	return ours.Equals(&theirs)
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

func (m *money) String() string { return strings.TrimSpace(m.amount.String() + " " + m.currency) }

// moneyOf returns the amount of an operation; why is the reason if it is not known. If the request has no currency, and none is
// asked for, the export's currency is taken as correct.
func (a *audit) moneyOf(rec *persist.Record) (m money, why string) {
	if k := a.known; k != nil && k.of == rec.ID {
		return k.money, k.why
	}
	defer func() { a.known = &knownMoney{of: rec.ID, money: m, why: why} }()
	m.amount, m.currency, why = results.MoneyIn(rec, a.flags.amount, cmp.Or(a.flags.ourCurrency, results.DefaultCurrency), a.flags.ourCurrency != "")
	if a.flags.currency == "" {
		m.currency = ""
	}
	return m, why
}

// total adds an operation to our totals.
func (a *audit) total(rec *persist.Record) {
	if a.flags.amount == "" {
		return
	}
	c := a.declines.ClassOfRecord(rec)
	if m, why := a.moneyOf(rec); why != "" {
		a.totals.AddWithout(c)
	} else {
		a.totals.Add(c, m.currency, &m.amount)
	}
}

// agrees reports whether a row has this money.
func (a *audit) agrees(m *money, r *exportRow) bool {
	if a.flags.currency != "" && m.currency != "" && !strings.EqualFold(m.currency, r.Currency) {
		return false
	}
	theirs, err := results.ParseDecimal(r.Amount)
	return err == nil && a.flags.units.same(m.amount, theirs, r.Currency)
}

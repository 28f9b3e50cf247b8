package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// The words of --unit and --our-unit.
const (
	unitMinor = "minor" // cents
	unitMajor = "major" // euros
)

// minorDigits is how many decimals a currency has: ISO 4217 lists those with none and those with three.
func minorDigits(currency string) int {
	switch strings.ToUpper(currency) {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3
	}
	return 2
}

// units are the flags --unit and --our-unit.
type units struct{ theirs, ours string }

// check reads the units. Where one side alone is named, the other has the other unit, or, of ours, the smallest.
func (u *units) check() error {
	for _, f := range []struct{ flag, value string }{{"--unit", u.theirs}, {"--our-unit", u.ours}} {
		if f.value != "" && f.value != unitMinor && f.value != unitMajor {
			return fmt.Errorf("%s %q: want minor or major", f.flag, clip(f.value))
		}
	}
	switch {
	case u.theirs != "" && u.ours == "":
		u.ours = unitMinor
	case u.theirs == "" && u.ours == unitMajor:
		u.theirs = unitMajor
	case u.theirs == "" && u.ours == unitMinor:
		u.theirs = unitMinor
	}
	return nil
}

// same reports whether our amount and theirs are the same money in a currency.
func (u *units) same(ours, theirs decimal, currency string) bool {
	if u.ours != u.theirs {
		digits := minorDigits(currency)
		if u.ours == unitMinor {
			ours.scale += digits
		} else {
			theirs.scale += digits
		}
	}
	return ours.equals(&theirs)
}

// defaultCurrency is where our requests have their currency, unless --our-currency says otherwise.
const defaultCurrency = "/currency"

// money is what our side of an operation says of its amount.
type money struct {
	amount   decimal
	currency string
}

func (m *money) String() string { return strings.TrimSpace(m.amount.String() + " " + m.currency) }

// moneyOf is the amount of an operation; why says why it is not known. Where the request has no currency, and none is asked
// for, the export's is believed.
func (a *audit) moneyOf(rec *persist.Record) (m money, why string) {
	m.amount, m.currency, why = moneyIn(rec, a.flags.amount, cmp.Or(a.flags.ourCurrency, defaultCurrency), a.flags.ourCurrency != "")
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
	c := a.declines.classOfRecord(rec)
	if m, why := a.moneyOf(rec); why != "" {
		a.totals.addWithout(c)
	} else {
		a.totals.add(c, m.currency, &m.amount)
	}
}

// agrees reports whether a row has this money.
func (a *audit) agrees(m *money, r *exportRow) bool {
	if a.flags.currency != "" && m.currency != "" && !strings.EqualFold(m.currency, r.Currency) {
		return false
	}
	theirs, err := parseDecimal(r.Amount)
	return err == nil && a.flags.units.same(m.amount, theirs, r.Currency)
}

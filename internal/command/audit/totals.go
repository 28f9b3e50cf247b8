package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// lend collects the amounts of rows without a currency in a.lent, in the currency of their operation rec. addLent adds them to the totals of the exports, if several
// currencies are known at the end. A row taken for another operation before (r.fresh is false) is left out. Without --amount, and if an amount or the currency is not
// known, it collects nothing.
func (a *audit) lend(rec *persist.Record, rows []indexedRow) {
	if a.flags.amount == "" {
		return
	}
	for _, r := range rows {
		if !r.fresh || r.Failed != "" || r.Currency != "" {
			continue
		}
		m, why := a.moneyOf(rec)
		amount, err := results.ParseDecimal(r.Amount)
		if why != "" || m.currency == "" || err != nil {
			continue
		}
		amount = a.flags.units.inMajor(amount, a.flags.units.theirs, m.currency)
		a.lent.Add(results.Class(results.Done), m.currency, &amount)
	}
}

// totalLines returns the totals of both sides, one line for each currency. If several currencies are known, amounts without one are counted, and not added up;
// those of the exports get the currency of their operation here (addLent), as far as it has one.
func (a *audit) totalLines() []string {
	ours, theirs := &a.totals, &a.theirs.totals
	ours.Name, theirs.Name = a.flags.amount+" here", a.flags.amountCol+" there"
	known := slices.Concat(ours.Currencies(), theirs.Currencies())
	slices.Sort(known)
	if known = slices.Compact(known); slices.Contains(known, "") { // "": amounts without a currency; it sorts first
		known = known[1:]
	}
	if len(known) < 2 {
		return append(ours.Lines("operation"), theirs.Sums("row")...)
	}
	blank, lent := unnamed(ours), a.addLent(theirs)
	left := unnamed(theirs) - lent // rows of no operation, or of one without a currency
	lines := ours.Lines("operation")
	if blank > 0 {
		lines = append(lines, fmt.Sprintf("total %s: not added up of %s whose request names no currency, since there are %s: say --currency COLUMN and --our-currency /POINTER",
			ours.Name, words.Count(blank, "operation"), strings.Join(known, ", ")))
	}
	lines = append(lines, theirs.Sums("row")...)
	if lent > 0 {
		lines = append(lines, fmt.Sprintf("total %s: %s without a currency %s added in the currency of the request here, which was not compared: say --currency COLUMN",
			theirs.Name, words.Count(lent, "row"), wasWere(lent)))
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("total %s: not added up of %s without a currency, since there are %s: say --currency COLUMN",
			theirs.Name, words.Count(left, "row"), strings.Join(known, ", ")))
	}
	return lines
}

// addLent adds the amounts that lend has collected to the totals of the exports, and returns the number of their rows.
func (a *audit) addLent(theirs *results.Totals) int {
	rows := 0
	for of, part := range a.lent.Parts {
		rows += part.Rows
		if has := theirs.Parts[of]; has != nil {
			has.Rows += part.Rows
			has.Sum.Add(&part.Sum)
		} else {
			theirs.Parts[of] = part
		}
	}
	return rows
}

// unnamed takes the amounts without a currency out of the totals t, since they cannot be added to those of several currencies. It returns the number of their rows.
func unnamed(t *results.Totals) int {
	rows := t.All("").Rows
	for _, c := range results.AllClasses() {
		delete(t.Parts, results.TotalOf{Class: c})
	}
	return rows
}

// wasWere returns the verb for n things: "was" for one, else "were".
func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// compare holds one operation against its rows.
func (a *audit) compare(rec *persist.Record) error {
	res := a.declines.resultOfRecord(rec)
	inDoubt := res == resultUnknown || rec.State == persist.StateHeld
	done := !inDoubt && (res == resultDone || res == resultAccepted || res == resultDuplicate)
	x := finding{Key: rec.Key, Here: string(res)}
	reference, why := a.referenceOf(rec)
	if why != "" {
		if !done && !inDoubt || a.outside(rec.Finished) {
			return nil // nothing happened, or not in the exports' time, and nothing claims otherwise
		}
		return a.blind(x, why)
	}
	if reference != rec.Key {
		x.Reference = reference
	}
	rows, err := a.theirs.take(reference)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return a.missing(rec, x, done)
	}
	x.There = rows[0].where()
	switch {
	case inDoubt:
		x.Finding = "settle"
		x.Next = fmt.Sprintf("oncehttp journal settle %s --happened --journal %s", shellQuote(rec.Key), shellQuote(a.arg))
	case !done:
		x.Finding = "conflict"
	case a.twice(rows):
		x.Finding, x.There = "twice", fmt.Sprintf("%s and %s", rows[0].where(), rows[1].where())
	default:
		return a.amounts(rec, rows, x)
	}
	return a.found(x)
}

// blind reports an operation that cannot be audited, and why.
func (a *audit) blind(x finding, why string) error {
	x.Finding, x.Why = notAuditable, why
	return a.found(x)
}

// referenceOf is what a row of the operation has in the column --match; why says why
// that is not known.
func (a *audit) referenceOf(rec *persist.Record) (reference, why string) {
	if a.flags.reference == "" {
		return rec.Key, ""
	}
	return requestText(rec, a.flags.reference)
}

// requestText is what stands at a pointer in the operation's request, or was kept of
// it when that was pruned; why says why it is not known.
func requestText(rec *persist.Record, pointer string) (text, why string) {
	if !rec.Swept {
		text, err := request.FieldsOf(rec.Header, rec.Body).Text(pointer)
		switch {
		case errors.Is(err, request.ErrNoField):
			return "", "its request has nothing at " + pointer
		case err != nil:
			return "", "its request has no text, number or boolean at " + pointer
		}
		return text, ""
	}
	for _, f := range rec.KeptFields {
		switch {
		case f.Pointer != pointer:
		case f.Omitted:
			return "", "its request was pruned, and what stood at " + pointer + " was too long to be kept, or no text, number or boolean"
		default:
			return f.Value, ""
		}
	}
	return "", "its request was pruned, and nothing is kept of " + pointer + ": it had nothing there, or was sent without --keep-field " + shellQuote(pointer)
}

func (a *audit) missing(rec *persist.Record, x finding, done bool) error {
	at := rec.Finished
	switch {
	case !done, a.outside(at):
		return nil
	case a.maybeDeclined(rec):
		return a.blind(x, "its answer was pruned, so that --declined cannot be looked up in it, and the exports do not have it")
	case a.nearEdge(at):
		x.Finding, x.Here = "edge", string("missing, done here at "+at.UTC().Format(time.RFC3339))
	default:
		x.Finding = "missing"
	}
	return a.found(x)
}

// maybeDeclined reports whether an answer that is gone may have been one of --declined.
func (a *audit) maybeDeclined(rec *persist.Record) bool {
	return len(a.declines) > 0 && rec.Swept && rec.State == persist.StateConfirmed && rec.Status < http.StatusBadRequest
}

// twice reports whether one type has more than one row.
func (a *audit) twice(rows []exportRow) bool {
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.Type] {
			return true
		}
		seen[r.Type] = true
	}
	return false
}

// amounts compares what was asked for with what the rows say; one row of a type
// has to agree.
func (a *audit) amounts(rec *persist.Record, rows []exportRow, x finding) error {
	if a.flags.amount == "" {
		return nil
	}
	want, why := requestText(rec, a.flags.amount)
	if why != "" {
		return a.blind(x, why)
	}
	for _, r := range rows {
		if sameAmount(want, r.Amount, a.flags.unit == "major", r.Currency) {
			return nil
		}
	}
	x.Finding, x.Here, x.There = "amount", want, strings.TrimSpace(rows[0].Amount+" "+rows[0].Currency)+" in "+rows[0].where()
	return a.found(x)
}

// foreign is called for each row that no operation took.
func (a *audit) foreign(r exportRow) error {
	if a.outside(r.At) {
		return nil
	}
	x := finding{Finding: "foreign", Reference: r.Match, There: r.where()}
	if a.nearEdge(r.At) {
		x.Finding, x.Here = "edge", "foreign"
	}
	return a.found(x)
}

// outside reports whether the exports do not cover the time. The zero time is
// always covered.
func (a *audit) outside(at time.Time) bool {
	return !at.IsZero() && (!a.from.IsZero() && at.Before(a.from) || !a.to.IsZero() && !at.Before(a.to))
}

func (a *audit) nearEdge(at time.Time) bool {
	near := func(edge time.Time) bool { return !edge.IsZero() && at.Sub(edge).Abs() <= a.flags.edge }
	return !at.IsZero() && (near(a.from) || near(a.to))
}

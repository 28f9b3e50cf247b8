package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// ours compares every operation of the journal that the arguments KEY of the command select with its rows in the exports. The rows of the other operations are
// taken, so that they are not reported as rows of no operation. A KEY that selects nothing is an error.
func (a *audit) ours(ctx context.Context, ses *session.Session) error {
	q, used := a.flags.Query(), make([]bool, len(a.flags.keys))
	err := session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
		if !a.flags.keys.Match(rec.Key) {
			return a.leave(rec)
		}
		for i := range used {
			used[i] = used[i] || a.flags.keys[i:i+1].Match(rec.Key)
		}
		a.checked++
		a.total(rec)
		a.see(rec) // for the advice at the end
		if err := a.generations(ctx, ses, rec); err != nil {
			return err
		}
		return a.compare(rec)
	})
	if err == nil {
		err = a.others(ctx, ses) // takes the rows of other accounts, too
	}
	if i := slices.Index(used, false); err == nil && i >= 0 { // a KEY selected nothing
		err = a.noSuchKey(ctx, ses, a.flags.keys[i])
	}
	return err
}

// generations prints a finding if an operation done here was done in an earlier generation, too. (A generation is a further try, under a new key, after a refusal.)
// Both may have taken effect.
func (a *audit) generations(ctx context.Context, ses *session.Session, rec *persist.Record) error {
	old, err := session.DoneBefore(ctx, ses, a.declines, rec)
	if err != nil || old == "" {
		return err
	}
	return a.found(Finding{
		Finding: Generations, Key: rec.Key, Here: string(a.resultOf(rec)), Why: words.Clip(old) + " is done here, too",
		Next: "ask the provider whether both took effect; oncehttp journal declined --journal " + a.arg + " tells which answers count as declined",
	})
}

// markDone marks the rows of every operation done here, before the operations are compared. It is needed with --reference alone: several operations may have one
// reference, as the generations of a key (its tries, under new keys) do, and one that is not done must not be blamed for the row of another that is.
func (a *audit) markDone(ctx context.Context, ses *session.Session) error {
	if a.flags.reference == "" {
		return nil // a key has one operation
	}
	q := a.flags.Query()
	q.States = []persist.State{persist.StateConfirmed, persist.StateSettled}
	return session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
		if res := a.resultOf(rec); !isDone(res) && !isUnread(rec, res) { // isUnread: confirmed, and its answer is not kept: it counts as done
			return nil
		}
		if reference, why := a.referenceOf(rec); why == "" {
			a.theirs.markDone(reference)
		}
		return nil
	})
}

// isUnread reports whether the API has confirmed an operation by an answer without a kept body, so that a text of --declined (the business said no) may stand in it.
// It has ended: nothing settles it, and the exports alone tell what came of it. An operation contradicted by an event of the API counts as in doubt instead.
func isUnread(rec *persist.Record, res results.Result) bool {
	return rec.State == persist.StateConfirmed && res == results.Unknown && !results.IsContradicted(rec)
}

// isDone reports whether an operation with this result has happened. The caller looks at the state, too: an operation in doubt (held, with an effect possible) is
// not done. (Duplicate: the API has said that it was done before.)
func isDone(res results.Result) bool {
	return res == results.Done || res == results.Accepted || res == results.Duplicate
}

// found counts a finding by its kind, and prints it. Without --reference it also notes the key or text that the other side lacks: one side may have all keys behind
// a prefix, and a hint at the end says so.
func (a *audit) found(x Finding) error {
	switch {
	case a.flags.reference != "":
	case x.Finding == "missing" || x.Finding == "unresolved":
		a.prefixes.absent(x.Key, a.theirs.knows)
	case x.Finding == "foreign":
		a.prefixes.foreign(x.Reference)
	}
	a.counts[x.Finding]++
	return a.print(x)
}

// compare compares one operation of the journal with its rows in the exports, and prints what it finds. The rows count as taken then, so that they are not reported
// as rows of no operation. A row with a word of failure, such as "refunded", is a finding of its own. The error is one of reading or printing.
func (a *audit) compare(rec *persist.Record) error {
	here := a.stateOf(rec)
	x := Finding{Key: rec.Key, Here: string(here.result)}
	reference, why := a.referenceOf(rec)
	if why != "" {
		if !here.done && !here.inDoubt || a.outside(rec.Finished) {
			return nil // nothing happened, or not in the exports' time, and nothing claims otherwise
		}
		return a.blind(x, why)
	}
	if reference != rec.Key {
		x.Reference = reference
	}
	rows, others, err := a.theirs.take(reference) // --where counts rows as done, and others not
	if err != nil {
		return err
	}
	a.lend(rec, rows) // gives rows without a currency that of rec, for the totals
	if len(rows)+len(others) > 0 {
		a.matched++
	}
	x.Amounts = a.amountsOf(rec, rows)
	taken := len(rows)
	rows, failed := partFailed(rows) // failed: by a word of failure in them
	if here.done || here.inDoubt {
		if err := a.failed(x, failed); err != nil {
			return err
		}
	}
	if others = append(others, failed...); taken > 0 && len(rows) == 0 && !here.inDoubt {
		return nil // all its rows have a word of failure: done here, each is a finding already; not done here, both sides agree
	}
	switch {
	case here.inDoubt && len(rows) == 0:
		return a.unresolved(rec, x, others)
	case len(rows) == 0:
		return a.missing(rec, x, here.done, others)
	case here.inDoubt:
		return a.settle(rec, x, rows)
	}
	return a.compareRows(rec, here, x, rows)
}

// stateHere is the state of an operation in the journal, as an audit compares it.
type stateHere struct {
	result  results.Result
	inDoubt bool // held, or its outcome is unknown
	done    bool
	unread  bool // as isUnread says; it counts as done
}

// stateOf returns the state of an operation in the journal: in doubt (its effect is unknown, or it is held for a person), done, or neither. unread is set for one of
// the done: the API confirmed it, and the answer was not kept, so that it may have been a decline.
func (a *audit) stateOf(rec *persist.Record) stateHere {
	s := stateHere{result: a.resultOf(rec)}
	s.unread = isUnread(rec, s.result)
	s.inDoubt = s.result == results.Unknown && !s.unread || rec.State == persist.StateHeld
	s.done = !s.inDoubt && (isDone(s.result) || s.unread)
	return s
}

// compareRows compares an operation that is not in doubt with its rows of something done; there is one at least. It prints a finding if both sides disagree: one has
// it as not done, the row belongs to another operation, there are several rows, or the amounts differ. x has what is common to these findings.
func (a *audit) compareRows(rec *persist.Record, here stateHere, x Finding, rows []indexedRow) error {
	if !here.done && a.theirs.done.has(rows[0].number) {
		return nil // the rows are those of another operation with this reference
	}
	x.There = rows[0].where()
	if here.done {
		a.countTypes(rows)
	}
	switch {
	case here.unread && len(a.flags.where) == 0 && !a.flags.allRows: // neither side proves that it was done: a row may be of a payment that failed
		return a.blind(x, unreadAnswer+mayHaveFailed)
	case !here.done:
		return a.conflict(rec, x, rows)
	case !a.spend(rows): // another operation done here has taken each of them
		x.Finding, x.Why = "missing", "its row is that of another operation here"
	case len(double(rows)) > 0: // double: the rows of one type (--type), if there are several
		x.Finding, x.There, x.Next = "twice", a.doubleRows(double(rows)), a.takeBack(double(rows))
	case here.unread:
		if err := a.unread(x); err != nil {
			return err
		}
		return a.amounts(rec, rows, x)
	default:
		return a.amounts(rec, rows, x)
	}
	return a.found(x)
}

// conflict reports an operation not done here with rows of something done. More than one row of a type (double) is reported once for all operations of the reference,
// such as the generations of a key (its tries, under new keys): a.theirs.twice has the rows reported so. The operation begun in its place (successor) changes the advice.
func (a *audit) conflict(rec *persist.Record, x Finding, rows []indexedRow) error {
	twice := double(rows)
	next, err := a.successor(rec)
	if err != nil {
		return err
	}
	// With --reference, both have the same reference and rows, and these rows do not show that both were done.
	if a.flags.reference == "" && len(twice) == 0 && next != nil && a.stateOf(next).done {
		return a.bothDone(x, next)
	}
	x.Finding, x.Next = "conflict", a.afterConflict(rec, next)
	if len(twice) > 0 {
		x.There = a.doubleRows(twice)
	}
	if err := a.found(x); err != nil || len(twice) == 0 || a.theirs.twice.has(twice[0].number) {
		return err
	}
	a.theirs.twice.add(twice[0].number)
	x.Finding, x.Next = "twice", a.takeBack(twice)
	return a.found(x)
}

// spend takes a row of each type (the column --type, such as payment or refund) for an operation done here. It returns false if all of these rows were taken by
// other operations, so that none is left for this one.
func (a *audit) spend(rows []indexedRow) bool {
	types := map[string]bool{}
	for _, r := range rows {
		if !types[r.Type] && !a.theirs.spent.has(r.number) {
			types[r.Type] = true
			a.theirs.spent.add(r.number)
		}
	}
	return len(types) > 0
}

// settle reports an operation in doubt that the exports have as done, by rows (one at least). The command to settle it is printed only if mayNotSettle has no reason
// against it.
func (a *audit) settle(rec *persist.Record, x Finding, rows []indexedRow) error {
	x.Finding, x.There = "settle", rows[0].where()
	x.Why = a.mayNotSettle(rec, rows)
	if len(rows) > 1 {
		x.There += " and " + rows[1].where()
	}
	if x.Why == "" {
		x.Next = fmt.Sprintf("oncehttp journal settle %s --happened --journal %s", words.ShellQuote(rec.Key), a.arg)
	}
	return a.found(x)
}

// mayNotSettle returns the reason against settling an operation as happened by these rows alone; "" if there is none. Without --where and --all-rows, any row may be
// of a payment that failed.
func (a *audit) mayNotSettle(rec *persist.Record, rows []indexedRow) string {
	switch {
	case rec.State == persist.StateSettled:
		return "it was settled; oncehttp journal unsettle takes that back"
	case rec.State.Final():
		return "it was " + rec.State.String() + ", which is final"
	case len(a.flags.where) == 0 && !a.flags.allRows:
		return mayHaveFailed
	case len(rows) > 1:
		return "there is more than one row"
	case a.theirs.spent.has(rows[0].number), a.theirs.done.has(rows[0].number): // spent: taken by an operation done here; done: it has the reference of one
		return "the row is that of another operation here"
	case a.flags.amount == "":
		return ""
	}
	m, why := a.moneyOf(rec)
	if why == "" && !a.flags.units.agree(&m, &rows[0].exportRow) {
		why = "the amounts differ: " + m.String() + " here, " + rows[0].money() + " there"
	}
	return why
}

const (
	mayHaveFailed = "the row may be of a payment that failed; say --where, or --all-rows"
	unreadAnswer  = "its answer was too long to be kept, so that --declined cannot be looked up in it, and "
)

// blind prints the finding that an operation is not auditable: what would be compared is not known any more. why is the reason.
func (a *audit) blind(x Finding, why string) error {
	x.Finding, x.Why = NotAuditable, why
	return a.found(x)
}

// referenceOf returns the text by which the rows of an operation are found in the column --match: its key or, with --reference, a field of its request. why is the
// reason if it is not known, and "" if it is.
func (a *audit) referenceOf(rec *persist.Record) (reference, why string) {
	switch {
	case a.flags.reference == "" && rec.Erased:
		return a.gone(rec) // finds the key again among the rows, by its digest
	case a.flags.reference == "":
		return rec.Key, ""
	case rec.Erased:
		return "", "its record was erased, with its request"
	}
	reference, why = results.RequestText(rec, a.flags.reference)
	if why == "" && strings.TrimSpace(reference) == "" {
		return "", "its request has nothing but blanks at " + a.flags.reference
	}
	return reference, why
}

// amounts compares the requested amount with those of the rows; one row has to agree. It prints a finding if none does, or if the requested amount is not known.
// Without --amount it does nothing.
func (a *audit) amounts(rec *persist.Record, rows []indexedRow, x Finding) error {
	if a.flags.amount == "" {
		return nil
	}
	m, why := a.moneyOf(rec)
	if why != "" {
		return a.blind(x, why)
	}
	agree := func(u units) bool {
		return slices.ContainsFunc(rows, func(r indexedRow) bool { return u.agree(&m, &r.exportRow) })
	}
	a.scale.add(agree, m.amount.Scale <= 0, withoutDecimals(rows)) // for a hint at other units
	if agree(a.flags.units) {
		return nil
	}
	x.Amounts = "" // x.Here and x.There have them
	x.Finding, x.Here, x.There = "amount", m.String(), rows[0].money()+" in "+rows[0].where()
	return a.found(x)
}

// partFailed parts the rows into those counted as done and those with a word of failure, such as "refunded".
func partFailed(rows []indexedRow) (done, failed []indexedRow) {
	for _, r := range rows {
		if r.Failed != "" {
			failed = append(failed, r)
		} else {
			done = append(done, r)
		}
	}
	return done, failed
}

// failed prints a finding for each of the rows, which all have a word of failure. x has what is common to these findings.
func (a *audit) failed(x Finding, rows []indexedRow) error {
	for _, r := range rows {
		x.There, x.Next = r.where(), ""
		x.saysNothingDone(r.Failed)
		if err := a.found(x); err != nil {
			return err
		}
	}
	return nil
}

// foreign prints a finding for a row that belongs to no operation here. A row outside the compared time is left out, and one near its beginning or end is only an
// "edge": its operation may be on the other side of it.
func (a *audit) foreign(r indexedRow) error {
	if a.outside(r.At) {
		return nil
	}
	x := Finding{Finding: "foreign", Reference: r.Match, There: r.where()}
	if r.Amount != "" {
		x.Amounts = r.money() + " there"
	}
	if r.Failed != "" {
		x.saysNothingDone(r.Failed)
		return a.found(x)
	}
	if a.nearEdge(r.At) {
		x.Finding, x.Here = "edge", "foreign"
	} else if a.theirs.alike.has(r.number) {
		a.foreignAlike++
		x.Why = "an operation without a row here is alike but for " + butFor + "; its line names this one"
	}
	return a.found(x)
}

// outside reports whether the exports do not cover the time: it is before --since, or not before --until. The zero time is always covered, since nothing is known
// of it.
func (a *audit) outside(at time.Time) bool {
	return !at.IsZero() && (!a.from.IsZero() && at.Before(a.from) || !a.to.IsZero() && !at.Before(a.to))
}

// nearEdge reports whether a time is at most --edge away from the beginning or the end of the compared time. A zero time is not.
func (a *audit) nearEdge(at time.Time) bool {
	near := func(edge time.Time) bool { return !edge.IsZero() && at.Sub(edge).Abs() <= a.flags.edge }
	return !at.IsZero() && (near(a.from) || near(a.to))
}

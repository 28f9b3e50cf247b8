package audit

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// unresolved prints a finding for an operation in doubt (an effect is possible) if the exports do not have it as done, with the next step. others are its rows not
// counted as done. (spelled, in a case, sets the finding itself if the exports have another spelling of the reference.)
func (a *audit) unresolved(rec *persist.Record, x Finding, others []indexedRow) error {
	if rec.State.Final() && a.outside(rec.Finished) {
		return nil // it is reported with the exports of the time of its end
	}
	x.Finding, x.Here = "unresolved", view.StateText(rec)
	if len(others) > 0 {
		x.There = others[0].where()
	}
	switch {
	case results.IsContradicted(rec):
		x.Why, x.Next = "an event of the API says that it happened, and its recorded end that it did not", "ask the provider what came of it"
	case rec.State != persist.StatePending && len(others) == 0 && a.spelled(a.matchOf(rec), &x): // a pending one is resumed in any case: with its own key
	case rec.HoldReason == persist.HoldRestored:
		x.Next = session.RestoredStep(rec, time.Now(), a.arg)
	case rec.State == persist.StatePending:
		x.Next = fmt.Sprintf("oncehttp journal resume %s --journal %s", words.ShellQuote(rec.Key), a.arg)
	case rec.State == persist.StateHeld:
		x.Next = fmt.Sprintf("oncehttp journal show %s --journal %s", words.ShellQuote(rec.Key), a.arg)
	}
	return a.found(x)
}

// missing prints a finding for an operation done here without a row of something done in the exports; with done false it prints nothing. others are its rows
// not counted as done. A new request is advised only if neither side shows that the operation may have been done under another spelling or key, or may still be
// done.
func (a *audit) missing(rec *persist.Record, x Finding, done bool, others []indexedRow) error {
	if len(others) > 0 {
		x.There = others[0].where()
	}
	at := rec.Finished
	switch { // notDone, spelled, behindPrefix, doneBefore and doneSince set the finding x themselves if they return true
	case !done, a.outside(at):
		return nil
	case isUnread(rec, results.Result(x.Here)):
		return a.blind(x, unreadAnswer+theirWord(others))
	case a.maybeDeclined(rec):
		x.Here = string(results.Unknown)
		return a.blind(x, "its answer was pruned, so that --declined cannot be looked up in it, and "+theirWord(others))
	case a.notDone(rec, &x, others):
	case a.nearEdge(at): // its row may be in the next export, or in the one before
		x.Finding, x.Here = "edge", string("missing, done here at "+at.UTC().Format(time.RFC3339))
	default:
		x.Finding = "missing"
		switch {
		case len(others) == 0 && a.spelled(a.matchOf(rec), &x):
		case len(others) == 0 && a.behindPrefix(rec.Key, &x):
		case a.doneBefore(rec, &x), a.doneSince(rec, &x):
		case oncehttp.OutcomeOf(rec) == oncehttp.OutcomeAccepted:
			x.Next = "send it under no other key: its answer 202 is no end, and the API may still do it; ask the API, or compare with a later export"
		case rec.State == persist.StateConfirmed && a.theirs.rows > 0 && a.theirs.named == 0:
			x.Why = "the column of --match is empty in every row there"
		case rec.State == persist.StateConfirmed && a.theirs.rows > 0: // exports without a row of something done prove nothing
			x.Next = "its answer is final: " + place.NewKeyStep
		}
	}
	return a.found(x)
}

// notDone sets the finding x for an operation with rows in the exports whose status --where does not select, and reports whether there are such rows.
// A new request is advised only after a status of failure: any other operation may still be done.
func (a *audit) notDone(rec *persist.Record, x *Finding, others []indexedRow) bool {
	status, row := statusOf(others)
	if row == nil {
		return false
	}
	_, cell, _ := strings.Cut(status, "=")
	x.Finding, x.There, x.Why = NotDone, row.where(), theirWord(others)
	switch {
	case looksDone(cell):
		x.Next = "say --where " + words.ShellQuote(status) + ", too, if that is done"
	case looksUndone(cell):
		x.Next = takenBack
	case !looksFailed(cell):
		x.Next = "send it under no other key: it may still be done; compare again with a later export"
	case oncehttp.OutcomeOf(rec) == oncehttp.OutcomeAccepted:
		x.Next = "its answer 202 was no end, and this may be it: if the API says that it stays so, " + newKey
	case rec.State == persist.StateConfirmed:
		x.Next = "its answer is final: if the API says that it stays so, " + newKey
	}
	return true
}

const newKey = "send it alone under a new key: send --key NEWKEY, or batch a file of such rows only, with another text in --key and --new-journal"

// statusOf returns the cell of the first row whose status is not selected by --where, such as "status=pending", and that row; "" and nil if there is no such row.
func statusOf(others []indexedRow) (cell string, row *indexedRow) {
	for i := range others {
		if column, _, _ := strings.Cut(others[i].Not, "="); isStatus(column) { // Not: the cell by which --where leaves the row out
			return others[i].Not, &others[i]
		}
	}
	return "", nil
}

// theirWord describes the rows of the exports for an operation, none of which counts as done.
func theirWord(others []indexedRow) string {
	status, row := statusOf(others)
	if row == nil {
		return "the exports do not have it"
	}
	_, cell, _ := strings.Cut(status, "=")
	return fmt.Sprintf("the provider has it as %q", cell)
}

// maybeDeclined reports whether an operation that counts as done may be one of --declined (a success whose text says that the business said no). That cannot be
// looked up any more, since its answer was pruned.
func (a *audit) maybeDeclined(rec *persist.Record) bool {
	return len(a.declines) > 0 && rec.Swept && rec.State == persist.StateConfirmed && rec.Status < http.StatusBadRequest
}

// afterConflict returns the next step for an operation done by the exports, and without effect here.
// next is the operation that stands in its place; nil: none. (ResultOfRecord of no Declines is the result without --declined: if it is not Declined, --declined alone
// makes it so.)
func (a *audit) afterConflict(rec, next *persist.Record) string {
	const no = "do not try it anew (batch --generation): it may take effect twice; "
	here, journal := a.resultOf(rec), " --journal "+a.arg
	switch {
	case here == results.Declined && results.Declines(nil).ResultOfRecord(rec) != results.Declined && len(a.flags.declined) > 0:
		return no + "--declined counts it as declined: where that is a mistake, leave that value out here, and take it back in the journal if it keeps it: oncehttp journal declined --forget VALUE" + journal
	case here == results.Declined && results.Declines(nil).ResultOfRecord(rec) != results.Declined:
		return no + "--declined counts it as declined: where that is a mistake, oncehttp journal declined --forget VALUE" + journal + " takes the value back"
	case next != nil:
		return no + fmt.Sprintf("%s stands in its place (%s); ask the API what came of both", words.Clip(next.Key), view.StateText(next))
	case here == results.Rejected && rec.State == persist.StateSettled:
		return no + "ask the API; where it took effect: oncehttp journal unsettle " + words.ShellQuote(rec.Key) + " --reason WHY" + journal + ", and settle it as happened"
	}
	return no + "ask the API what came of it"
}

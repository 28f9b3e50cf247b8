package batch

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the declined rows that no run tries anew without --yes.

// judgeDeclined adds a note to the result line of a row declined by --declined that nobody may take for refused without a look: an earlier run told it as done, or an earlier
// send may have taken effect. l.Was is in the plural ("they"), since the summary prints it once for all rows with the same text.
func (b *batch) judgeDeclined(rec *persist.Record, l *results.Line) {
	if l.Result != results.Declined {
		return
	}
	next := cmp.Or(l.First, b.plan.generation+1) // the --generation that would try it anew; First: an earlier one has to run before
	switch {
	case b.flags.WasDone(rec) && isAccepted(rec):
		l.Was = fmt.Sprintf("they were accepted (%d) before this --declined, and may still succeed: ask the API what came of them; --generation %d sends them once more, and only with --yes", l.Status, next)
	case b.flags.WasDone(rec):
		l.Was = fmt.Sprintf("they were done (%d) before this --declined: look at their answers; --generation %d sends them once more, and only with --yes", l.Status, next)
	case b.flags.MayHideEffect(rec):
		l.Was = fmt.Sprintf("each was sent more than once, and an earlier send may have taken effect: ask the API about them; --generation %d sends them once more, and only with --yes", next)
	}
}

// whyKeptBack returns the reason for which a declined operation is not tried anew without --yes, of one row or of several: an earlier run told it as done, before a
// --declined made its answer a refusal, or an earlier send of it may have taken effect. It returns "" if there is no reason. %d in the texts is for the status of the answer.
func (b *batch) whyKeptBack(rec *persist.Record) (row, rows string) {
	switch {
	case b.flags.WasDone(rec) && isAccepted(rec):
		return "was accepted (%d) before a --declined made a decline of it, and may still succeed: ask the API what came of it; --yes sends the row once more",
			"of them was accepted (%d) before a --declined made a decline of it, and may still succeed: ask the API what came of them; --yes sends them once more"
	case b.flags.WasDone(rec):
		return "was done (%d) before a --declined made a decline of it: look at its answer; --yes sends the row once more",
			"of them was done (%d) before a --declined made a decline of it: look at their answers; --yes sends them once more"
	case b.flags.MayHideEffect(rec):
		return "was declined (%d) after more than one send, and an earlier one may have taken effect: ask the API about it; --yes sends the row once more",
			"of them was declined (%d) after more than one send, and an earlier one may have taken effect: ask the API about them; --yes sends them once more"
	}
	return "", ""
}

// isAccepted reports whether the API has answered that it took an operation on, so that it may still fail.
func isAccepted(rec *persist.Record) bool { return rec.FinalStatus() == http.StatusAccepted }

// isKeptBack reports whether a declined operation is not tried anew, for a reason of whyKeptBack and without --yes.
func (b *batch) isKeptBack(rec *persist.Record) bool {
	why, _ := b.whyKeptBack(rec)
	return why != "" && !b.flags.yes
}

// keptBack returns the result line of a row that is not tried anew without --yes. rec is the record of its earlier generation (try), of which isKeptBack is true.
// l.Was is the text about all such rows in the summary.
func (b *batch) keptBack(rec *persist.Record, generation int) results.Line {
	l := b.flags.Declines.Confirmed(rec)
	row, rows := b.whyKeptBack(rec)
	l.Error = &results.LineError{Code: "generation", Message: fmt.Sprintf("generation %d "+row, generation, l.Status)}
	l.Was = fmt.Sprintf("generation %d "+rows, generation, l.Status)
	return l
}

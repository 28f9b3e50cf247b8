package run

import (
	"context"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds what there is where a caller gets an answer before the record says so (persist.LateFinisher), and how other
// calls wait for the record then.

// lateFinisher returns the journal as one that can wait with the end of a record; nil if it cannot.
func lateFinisher(j persist.Journal) persist.LateFinisher {
	late, _ := j.(persist.LateFinisher)
	if late != nil && late.FinishesLate() != j { // it embeds one, and may have a Finish of its own
		return nil
	}
	return late
}

// answersFirst reports whether those who wait may have the answer before the record says so. If this process dies in between,
// the same key finds the answer again.
func (d ending) answersFirst() bool {
	return d.drive.MayAnswerFirst(d.now()) && d.shared.calls.Ending() < answeredMost
}

// answeredMost bounds how many answers are out whose records are not written yet, in this process. Each keeps its memory.
const answeredMost = 256

// answerFirst gives the answer to those who wait, and then records it. If that fails, the record stays pending, as in confirm.
func (d ending) answerFirst() *result {
	write := d.journal.Finish // where Config.Observe panics, or ends the goroutine: nobody has the answer but the record
	told := false
	defer func() {
		if err := d.conclude(write); told {
			d.engine.answered(&d.rec, err)
		}
	}()
	res := d.finished(&result{answer: d.answered()})
	d.call.Answer(res)
	told = true
	write = d.late.FinishLate
	return res
}

// recorded waits until the records of the operations that pick selects say what callers were told of them before. Errors: the
// cause of ctx, and those of which waitedInVain says so.
func (e *engine) recorded(ctx context.Context, pick func(persist.ID) bool) error {
	return e.shared.calls.Ended(ctx, e.cfg.patience(), pick)
}

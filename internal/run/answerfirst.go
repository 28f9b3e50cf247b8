package run

import (
	"context"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the answers to callers before the end of a record is written (persist.LateFinisher), and the wait of other calls for the
// record.

// lateFinisher returns the journal as a persist.LateFinisher; nil if it cannot wait with the end of a record.
func lateFinisher(j persist.Journal) persist.LateFinisher {
	late, _ := j.(persist.LateFinisher)
	if late != nil && late.FinishesLate() != j { // it embeds one, and may have a Finish of its own
		return nil
	}
	return late
}

// answersFirst reports whether waiting callers may have the answer before the record has it. If this process dies in between, the same key
// finds the answer again.
func (d ending) answersFirst() bool {
	return d.drive.MayAnswerFirst(d.now()) && d.shared.calls.Ending() < answeredMost
}

// answeredMost bounds the number of answers given before their records are written, in this process. Each keeps its memory.
const answeredMost = 256

// answerFirst gives the answer to the waiting callers, and then records it. If that fails, the record stays pending.
func (d ending) answerFirst() *result {
	write := d.journal.Finish // if Config.Observe panics, or ends the goroutine: then only the record has the answer
	told := false
	d.handed = &handover{}
	defer func() {
		err := d.conclude(write)
		if owed := d.owed; d.handed.isWritten(owed) {
			d.engine.results.markDelivered(d.call.Values(), d.rec.ID, owed)
		}
		if told {
			d.engine.doubts.answered(&d.rec, err)
		}
	}()
	res := d.finished(&result{answer: d.answered(), handed: d.handed})
	d.drive.AnswersFirst()
	d.call.Answer(res)
	told = true
	write = d.late.FinishLate
	return res
}

// recorded waits until the records of the operations selected by pick agree with the answers given to callers before. Errors: the cause of
// ctx, and those known to waitedInVain.
func (e *engine) recorded(ctx context.Context, pick func(persist.ID) bool) error {
	return e.shared.calls.Ended(ctx, e.cfg.patience(), pick)
}

package run

import "github.com/oncehttp/oncehttp/persist"

// This file holds the answers to callers before the end of a record is written (persist.LateFinisher), and the
// wait of other calls for the record.

// lateFinisher returns the journal as a persist.LateFinisher, by which the end of a record may be written after the callers have it; nil if the journal cannot do
// so, or only embeds one that can.
func lateFinisher(j persist.Journal) persist.LateFinisher {
	late, _ := j.(persist.LateFinisher)
	if late != nil && late.FinishesLate() != j { // it embeds one, and may have a Finish of its own
		return nil
	}
	return late
}

// answersFirst reports whether waiting callers may have the answer before the record has it, so that they need not wait for the journal. Fewer than answeredMost
// such answers may wait for their records. If this process dies in between, the same key finds the answer again at the server.
func (r *run) answersFirst() bool {
	t := &r.task
	return t.drive.MayAnswerFirst(t.engine.now()) && t.engine.shared.calls.Ending() < answeredMost
}

// answeredMost bounds the number of answers given before their records are written, in this process. Each keeps
// its memory.
const answeredMost = 256

// answerFirst gives the answer to the waiting callers, and then records it; it returns their result. handed tells the writer whether a caller has taken it: then
// OnResult need not get it. If the write fails, the record stays pending: a note of that (doubts) makes Flush return an error, and the same key finds the answer
// again at the server. Until the write is over, the run counts as in progress, so that other calls wait for the record (recorded).
func (r *run) answerFirst() *result {
	t := &r.task
	write := t.journal.Finish // if Config.Observe panics, or ends the goroutine: then only the record has the answer
	told := false
	r.ending.handed = &handover{}
	defer func() {
		err := r.ending.conclude(write)
		if owed := r.ending.owed; r.ending.handed.isWritten(owed) {
			t.engine.results.markDelivered(t.call.Values(), t.rec.ID, owed)
		}
		if told {
			t.engine.doubts.answered(&t.rec, err)
		}
	}()
	res := r.finished(&result{answer: r.replies.answered(), handed: r.ending.handed})
	t.drive.AnswersFirst()
	t.call.Answer(res)
	told = true
	write = t.engine.late.FinishLate
	return res
}

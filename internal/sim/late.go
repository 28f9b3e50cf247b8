package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the parts used if Setting.Late is set: a journal with late writes of ends, so that a process may die between
// telling an answer and the journal's write of it; and the checks of such answers.

// lateFor is the longest time until an end is written. Most are written soon.
const lateFor = 20 * time.Second

// FinishLate implements [persist.LateFinisher]. The process may die before the end is written, while it waits for that, and after
// that; and the write may fail. None of it reaches the caller, who has the answer.
func (h lateHandle) FinishLate(ctx context.Context, rec persist.Record) error {
	if h.step("finish late") {
		return errDead
	}
	r := h.life.w.dice.of("late "+rec.Account+rec.Key, int(rec.Revision))
	time.Sleep(upTo(r, pick(r, 5*time.Millisecond, 50*time.Millisecond, lateFor)))
	err := h.around("finish later", func() error { return h.to.(persist.LateFinisher).FinishLate(ctx, shift(rec, -h.clock)) })
	h.life.w.model.finished(h.life, rec.ID, err)
	return err
}

// FinishesLate implements [persist.LateFinisher]. It returns h and not the journal inside, so h's own FinishLate is called.
func (h lateHandle) FinishesLate() persist.Journal { return h }

// Finish implements [persist.Journal], and tells the model its result: an end that may be told only after this write is told to callers although the write
// fails.
func (h lateHandle) Finish(ctx context.Context, rec persist.Record) error {
	err := h.sharedHandle.Finish(ctx, rec)
	h.life.w.model.finished(h.life, rec.ID, err)
	return err
}

// early counts answers told before the journal had them: see Result.
type early struct{ told, cut, again int }

// toldEarly is the note of the last such answer of an operation.
type toldEarly struct {
	by      *life     // the last process to tell it; nil: none
	at      time.Time // the time of this
	text    string    // of the first answer of all, and its life
	open    bool      // the journal did not have it
	cut     bool      // the process died meanwhile
	refused bool      // the journal has failed to write an end
}

// toldAnswer notes that a caller got an answer of success, and checks that other callers got the same. For the result of the run it counts answers told before
// the journal had them, and those given again after the death of the process that told them (cut). The caller holds mu.
func (m *model) toldAnswer(o *order, op *operation, l *life, id persist.ID, text []byte) {
	if text != nil && op.told.text != "" && op.told.text != string(text) {
		m.failLocked(ServersAnswer, "%s under %q is told another answer than before: %.200s; before: %.200s", o.ref, id.Key, text, op.told.text)
	}
	if text != nil {
		op.told.text = string(text)
	}
	if op.told.cut && op.told.by != l {
		m.early.again++
		op.told.cut = false
	}
	op.told.by, op.told.at = l, time.Now()
	if d, ok := l.store.(*disk); ok && m.w.plan.Setting.Late && !d.ended(id) {
		m.early.told++
		op.told.open = true
	}
}

// notTold checks a send: this process must not have told the operation's answer while it still writes its end (open), unless the journal has refused that
// (refused): then the same key finds the answer again. The caller holds mu.
func (m *model) notTold(l *life, s *send) {
	if told := m.op(s.id).told; told.open && told.by == l && !told.refused {
		m.failLocked(JournalFirst, "%q is sent by %s, which has told its answer and writes its end", s.id.Key, l.name)
	}
}

// finished notes the result of a journal call that writes an operation's end. A caller may have been told the end before. After success the journal has it.
// After an error (refused) the process may send the request again, which notTold allows then.
func (m *model) finished(l *life, id persist.ID, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op := m.op(id)
	if op.told.refused = op.told.refused || err != nil; err == nil && !l.dead.Load() {
		op.told.open = false
	}
}

// cut notes the death of a process whose callers had answers before the journal: a later process must get the same answers again.
func (m *model) cut(l *life) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, op := range m.ops {
		if op.told.open && op.told.by == l {
			m.early.cut++
			op.told.open, op.told.cut = false, true
		}
	}
}

// tells returns the operations whose answers callers have got from this process so far; the value is always true.
func (m *model) tells(l *life) map[persist.ID]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	told := map[persist.ID]bool{}
	for id, op := range m.ops {
		if op.told.by == l {
			told[id] = true
		}
	}
	return told
}

// recorded checks the operations whose answers one run of a process (life) has told to callers: their records must be final. stands returns the
// record of an operation; only limits the check to some operations, nil means all. Two records may be missing or open: one whose end the journal has
// refused, since the same key finds the answer again; and one old enough for a sweep. when says, for the error, when that is.
func (m *model) recorded(l *life, stands func(persist.ID) (persist.Record, bool), only map[persist.ID]bool, when string) {
	if !m.w.plan.Setting.Late || !l.told() {
		return
	}
	if only == nil {
		only = m.tells(l)
	}
	for id := range only {
		rec, found := stands(id)
		m.mu.Lock()
		told := m.op(id).told
		m.mu.Unlock()
		swept := !found && time.Since(told.at) >= m.w.remembered()
		if !rec.State.Final() && !told.refused && !swept && l.told() {
			m.fail(AnswerKept, "the answer under %q was told, and its record is %v %s", id.Key, rec.State, when)
		}
	}
}

// look simulates a person who lists the unfinished operations, and looks up each. Operations answered before must not be among them.
func (w *world) look(l *life, r *rand.Rand) {
	told, ctx := w.model.tells(l), context.Background()
	var open []persist.Record
	for rec, err := range l.client(r).Unfinished(ctx) {
		if err == nil {
			open = append(open, rec)
		}
	}
	for _, rec := range open {
		if told[rec.ID] {
			stands := func(persist.ID) (persist.Record, bool) { return rec, true }
			w.model.recorded(l, stands, map[persist.ID]bool{rec.ID: true}, "for Unfinished")
		}
		now, err := l.client(r).Lookup(ctx, oncehttp.Key(rec.Key)) // it must not hang
		if err == nil && told[now.ID] {
			stands := func(persist.ID) (persist.Record, bool) { return now, true }
			w.model.recorded(l, stands, map[persist.ID]bool{now.ID: true}, "for Lookup")
		}
	}
}

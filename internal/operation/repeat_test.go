package operation_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// persist.Record.CheckRepeat cannot import this package, and says the same: nil where an Enqueue would write nothing, and otherwise the
// verdict of its error, by Open, PromiseOf and Judge. All states, effects, answers and marks are compared, erased records and placeholders, too, for the same
// request, another one, and one that cannot be compared.
func TestCheckRepeatSaysAsEnqueue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	seen := map[string]int{}
	for _, r := range allRecords(now) {
		for know, change := range map[operation.Knowledge]func(*persist.Record){
			operation.Same:         func(*persist.Record) {},
			operation.Other:        func(rec *persist.Record) { rec.Fingerprint = []byte("other"); rec.Content = "other" },
			operation.Incomparable: func(rec *persist.Record) { rec.Fingerprint, rec.Recipe, rec.Content = []byte("other"), "other", "" },
		} {
			rec := r.Clone()
			rec.Created, rec.State, rec.Effect, rec.Answer, rec.Evidence = now, persist.StatePending, persist.EffectUnknown, nil, nil
			change(&rec)
			want := saysEnqueue(&r, know, now)
			err := r.CheckRepeat(&rec)
			if want == nil && err != nil || want != nil && !errors.Is(err, want) {
				t.Errorf("%v %v: CheckRepeat: %v, want %v", describe(&r), know, err, want)
			}
			seen[fmt.Sprint(want)]++
		}
	}
	if len(seen) != 4 {
		t.Errorf("verdicts met: %v, want each of four", seen)
	}
}

// saysEnqueue returns the verdict of an Enqueue on a record, nil if it writes nothing and succeeds. A transaction cannot look at what stands in the place of the
// record, nor note that it tells an end: of a record without an effect it says "unknown" then.
func saysEnqueue(r *persist.Record, know operation.Knowledge, now time.Time) error {
	op := operation.OpOf(r, 0)
	verdict := operation.Unknown
	call := operation.Call{Request: know, Enqueues: true, Replaced: r.ReplacedBy != "" && r.Evidence == nil}
	switch call.Open(&op) {
	case operation.SaysErased, operation.SaysOther:
		verdict = operation.Judge(operation.ToldStanding(r), operation.Other)
	case operation.Promises:
		switch operation.PromiseOf(&op, now) {
		case operation.PromisesKept:
			return nil
		case operation.PromisesEnded:
			if hadNoEffect := op.HadNoEffect() && r.Evidence == nil; !hadNoEffect || !operation.NotesTold(r) {
				verdict = operation.Judge(operation.ToldStanding(r), operation.Same)
			}
		}
	}
	return map[operation.Verdict]error{
		operation.NoEffect: persist.ErrNoEffect, operation.Final: persist.ErrFinal, operation.Unknown: persist.ErrOutcomeUnknown,
	}[verdict]
}

// allRecords returns a record for each combination of the fields read by CheckRepeat; of those that have ended an erased one, and placeholders.
func allRecords(now time.Time) (all []persist.Record) {
	for _, r := range standing(now) {
		all = append(all, r)
		if r.State.Final() {
			r.Erase([]byte("secret"))
			all = append(all, r)
		}
	}
	for _, r := range []persist.Record{{State: persist.StateHeld, HoldReason: persist.HoldPredecessor}, {State: persist.StateSettled, Effect: persist.EffectAbsent}} {
		r.Fingerprint, r.Recipe, r.Content, r.Created, r.ReplacedBy = []byte("same"), "r", "same", now.Add(-time.Minute), "k:gen=2"
		r.Acts = []persist.Act{{Did: persist.ActSkipped}}
		all = append(all, r)
	}
	return all
}

// standing returns the records with their texts, and those that are operations.
func standing(now time.Time) (all []persist.Record) {
	for _, state := range []persist.State{persist.StatePending, persist.StateHeld, persist.StateConfirmed, persist.StateMismatched, persist.StateSettled, persist.StateAbandoned} {
		for _, effect := range []persist.Effect{persist.EffectUnknown, persist.EffectHappened, persist.EffectRefused, persist.EffectAbsent} {
			for _, answer := range []*persist.Answer{nil, {Status: 201}, {Status: 202}, {Status: 402}, {Status: 409, AlreadyDone: true}} {
				for bits := range 64 {
					r := persist.Record{
						Fingerprint: []byte("same"), Recipe: "r", Content: "same", Created: now.Add(-time.Minute),
						State: state, Effect: effect, Answer: answer, Enqueued: bits&1 != 0, MaybeSent: bits&2 != 0,
					}
					if bits&4 != 0 {
						r.SendBefore = now.Add(-time.Second)
					}
					if bits&8 != 0 {
						r.Evidence = &persist.Evidence{Event: "e"}
					}
					r.Told = bits&16 != 0
					if bits&32 != 0 {
						r.ReplacedBy = "the next"
					}
					if !possible(&r) {
						continue
					}
					if state != persist.StateHeld {
						all = append(all, r)
						continue
					}
					for _, hold := range []persist.HoldReason{persist.HoldCaller, persist.HoldExpired, persist.HoldUndo, persist.HoldUnclear} {
						r.HoldReason = hold
						all = append(all, r)
					}
				}
			}
		}
	}
	return all
}

// possible reports whether a journal can hold the record: only a confirmed or settled record has an effect.
func possible(r *persist.Record) bool {
	switch r.State {
	case persist.StateConfirmed:
		return r.Effect != persist.EffectAbsent
	case persist.StateSettled:
		return r.Effect == persist.EffectHappened || r.Effect == persist.EffectAbsent
	}
	return r.Effect == persist.EffectUnknown
}

func describe(r *persist.Record) string {
	return fmt.Sprintf("state %v, effect %v, answer %v, hold %q, enqueued %t, maybe sent %t, late %t, contradicted %t, told %t, replaced by %q",
		r.State, r.Effect, r.Answer, r.HoldReason, r.Enqueued, r.MaybeSent, !r.SendBefore.IsZero(), r.Evidence != nil, r.Told, r.ReplacedBy)
}

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
// verdict of Judge. All states, effects, answers and marks are compared, for the same request, another one, and one that cannot be compared.
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
			op := operation.OpOf(&r, 0)
			want := map[operation.Verdict]error{operation.NoEffect: persist.ErrNoEffect, operation.Final: persist.ErrFinal,
				operation.Unknown: persist.ErrOutcomeUnknown}[operation.Judge(op.Standing, know)]
			if know == operation.Same {
				switch hadNoEffect := r.Evidence == nil && (op.Standing == operation.Refused || op.Standing == operation.Absent); {
				case operation.PromiseOf(&op, now) == operation.PromisesKept:
					want = nil
				case hadNoEffect && r.ReplacedBy != "", hadNoEffect && operation.NotesTold(&r):
					want = persist.ErrOutcomeUnknown // Enqueue is told of the other one, or notes first that it tells the end: a transaction can do neither
				}
			}
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

// allRecords returns a record for each combination of the fields read by CheckRepeat.
func allRecords(now time.Time) (all []persist.Record) {
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

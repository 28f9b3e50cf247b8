package acts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// erasable is a record that may be erased at from, and not a moment before.
func erasable(state persist.State) (rec persist.Record, from time.Time) {
	sent := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rec = persist.Record{
		State: state, MaybeSent: true, FirstSent: sent, Window: 24 * time.Hour, SendUntil: sent.Add(time.Minute), Finished: sent.Add(time.Second), Sends: 1,
	}
	if state == persist.StateConfirmed {
		rec.Answer = &persist.Answer{Status: 201}
	}
	if !state.Final() {
		rec.Finished = time.Time{}
	}
	return rec, sent.Add(24 * time.Hour)
}

// TestMayErase walks every state with every reason against an erasure, alone and in pairs: each stops it, whatever else is true, and without
// one it may be.
func TestMayErase(t *testing.T) {
	t.Parallel()
	type facts struct {
		rec *persist.Record
		e   *acts.Erasing
	}
	reasons := []struct {
		name string
		is   acts.Refusal
		set  func(f facts)
	}{
		{"unreported", acts.IsUnreported, func(f facts) { f.rec.Unreported = true }},
		{"owed", acts.IsOwed, func(f facts) { f.rec.Results, f.rec.OwedFrom = true, f.e.Now }},
		{"a successor is not there", acts.IsGoingOn, func(f facts) { f.e.Unbegun = true }},
		{"a successor is unfinished", acts.IsGoingOn, func(f facts) { f.e.Unfinished = true }},
		{"a send", acts.IsSending, func(f facts) { f.rec.SendUntil = f.e.Now.Add(1) }},
		{"a deserted send", acts.IsSending, func(f facts) { f.rec.DesertedUntil = f.e.Now.Add(1) }},
		{"the window", acts.IsInWindow, func(f facts) { f.rec.Window++ }},
		{"the answer", acts.IsInWindow, func(f facts) { f.e.KeepAnswer = f.e.Now.Sub(f.e.Finished) + 1 }},
	}
	for state := persist.StatePending; state <= persist.StateAbandoned; state++ {
		for i := -1; i < len(reasons); i++ {
			for j := -1; j < len(reasons); j++ {
				rec, from := erasable(state)
				e := acts.ErasingOf(&rec, from)
				want, name := acts.MayAct, state.String()
				for _, k := range []int{max(i, j), min(i, j)} {
					if k >= 0 {
						reasons[k].set(facts{&rec, &e})
						want, name = reasons[k].is, name+", "+reasons[k].name
					}
				}
				if !state.Final() {
					want = acts.NotEnded
				}
				op := operation.OpOf(&rec, 0)
				if got := e.MayErase(&op); got != want {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
				op.Erased = true
				if got := e.MayErase(&op); got != acts.MayAct {
					t.Errorf("%s, erased: %v", name, got)
				}
			}
		}
	}
}

// TestErasableFrom: the later end counts, of the key's window and of the answer's time; that of a swept answer is over, and what was never sent has no
// window.
func TestErasableFrom(t *testing.T) {
	t.Parallel()
	sent := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		sent         bool
		keep         time.Duration
		swept        bool
		window, want time.Duration // after sent; want 0: at any time
	}{
		{true, 0, false, time.Hour, time.Hour}, {true, 2 * time.Hour, false, time.Hour, 2*time.Hour + time.Second},
		{true, 2 * time.Hour, true, time.Hour, time.Hour}, {true, time.Minute, false, time.Hour, time.Hour},
		{false, time.Hour, true, time.Hour, 0}, {false, time.Hour, false, time.Minute, time.Hour + time.Second},
	} {
		rec := persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent, Window: row.window, KeepAnswer: row.keep, Swept: row.swept, Finished: sent.Add(time.Second)}
		if row.sent {
			rec.FirstSent = sent
		}
		op, want := operation.OpOf(&rec, 0), time.Time{}
		if row.want > 0 {
			want = sent.Add(row.want)
		}
		if got := acts.ErasingOf(&rec, sent).ErasableFrom(&op); !got.Equal(want) {
			t.Errorf("%s: %v, want %v", fmt.Sprintf("%+v", row), got, want)
		}
	}
}

// TestErasedIsNotBegunAnew: nothing of an erased operation is begun once more, and its settlement stays.
func TestErasedIsNotBegunAnew(t *testing.T) {
	t.Parallel()
	for act, end := range map[acts.Anew]persist.Effect{acts.Redrives: persist.EffectAbsent, acts.Rekeys: persist.EffectAbsent, acts.Unsettles: persist.EffectHappened} {
		rec, from := erasable(persist.StateSettled)
		rec.Effect = end
		op := operation.OpOf(&rec, 0)
		if got := act.MayAnew(&op, acts.Successors{}, from); got != acts.MayAct {
			t.Errorf("%v: %v", act, got)
		}
		rec.Erase(make([]byte, persist.SecretSize))
		op = operation.OpOf(&rec, 0)
		if got := act.MayAnew(&op, acts.Successors{}, from); got != acts.IsErased {
			t.Errorf("%v of an erased one: %v", act, got)
		}
	}
}

// TestMayEraseWithoutRequest: a named successor without a record stops an Erase as long as it can begin: while the request is there. An unfinished one always does.
func TestMayEraseWithoutRequest(t *testing.T) {
	t.Parallel()
	for gone, want := range map[bool]acts.Refusal{false: acts.IsGoingOn, true: acts.MayAct} {
		rec, from := erasable(persist.StateSettled)
		rec.RequestDropped = gone
		e, op := acts.ErasingOf(&rec, from), operation.OpOf(&rec, 0)
		if e.Unbegun = true; e.MayErase(&op) != want {
			t.Errorf("request gone %t: %v, want %v", gone, e.MayErase(&op), want)
		}
		if e.Unfinished = true; e.MayErase(&op) != acts.IsGoingOn {
			t.Errorf("request gone %t, unfinished: %v", gone, e.MayErase(&op))
		}
	}
}

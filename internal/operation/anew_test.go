package operation_test

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestMayAnew: what ended without an effect may be begun once more, and a settlement taken back, unless something stands in its place.
func TestMayAnew(t *testing.T) {
	t.Parallel()
	const redrive, rekey, unsettle = operation.Redrives, operation.Rekeys, operation.Unsettles
	acts := []operation.Anew{redrive, rekey, unsettle}
	for name, c := range map[string]struct {
		rec persist.Record
		may []operation.Anew
	}{
		"pending":               {persist.Record{}, nil},
		"held":                  {persist.Record{State: persist.StateHeld, HoldReason: persist.HoldExpired}, nil},
		"reopened":              {persist.Record{State: persist.StateHeld, HoldReason: persist.HoldReopened}, []operation.Anew{unsettle}},
		"refused":               {persist.Record{State: persist.StateConfirmed, Effect: persist.EffectRefused}, []operation.Anew{redrive}},
		"a success":             {persist.Record{State: persist.StateConfirmed, Effect: persist.EffectHappened}, nil},
		"no effect":             {persist.Record{State: persist.StateConfirmed}, nil},
		"mismatched":            {persist.Record{State: persist.StateMismatched}, nil},
		"abandoned":             {persist.Record{State: persist.StateAbandoned}, nil},
		"absent":                {persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent}, acts},
		"refused, contradicted": {persist.Record{State: persist.StateConfirmed, Effect: persist.EffectRefused, Evidence: &persist.Evidence{}}, nil},
		"absent, contradicted":  {persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent, Evidence: &persist.Evidence{}}, []operation.Anew{unsettle}},
		"proven":                {persist.Record{State: persist.StateSettled, Effect: persist.EffectHappened, Evidence: &persist.Evidence{}}, nil},
		"happened":              {persist.Record{State: persist.StateSettled, Effect: persist.EffectHappened}, []operation.Anew{unsettle}},
	} {
		op := operation.OpOf(&c.rec, 0)
		for _, act := range acts {
			want := operation.NotAbsent
			if name == "proven" && act == unsettle || name == "refused, contradicted" && act == redrive {
				want = operation.IsWitnessed
			}
			for _, may := range c.may {
				if may == act {
					want = operation.MayAct
				}
			}
			if got := op.MayAnew(act, operation.Successors{}, time.Time{}); got != want {
				t.Errorf("%s, act %d: %d, want %d", name, act, got, want)
			}
			for _, s := range []operation.Successors{{Replaced: true}, {Higher: true}, {Taken: true}} {
				if got := op.MayAnew(act, s, time.Time{}); want == operation.MayAct && got != operation.IsReplaced || want != operation.MayAct && got != want {
					t.Errorf("%s, act %d, %+v: %d", name, act, s, got)
				}
			}
		}
	}
}

// TestReopened: it is held for persons alone, and nothing of the settlement is left.
func TestReopened(t *testing.T) {
	t.Parallel()
	was := persist.Record{State: persist.StateSettled, Effect: persist.EffectHappened, Generated: true, Unreported: true, MaybeSent: true, Answer: &persist.Answer{Status: 201, Stored: true, BodyDropped: true}}
	op := operation.OpOf(&was, 0)
	got, want := op.Reopened(), persist.Record{State: persist.StateHeld, HoldReason: persist.HoldReopened, Generated: true, MaybeSent: true}
	if held := operation.OpOf(&want, 0); got != held {
		t.Errorf("%+v, want %+v", got, held)
	}
	if !got.IsActedOn() || got.Open(operation.Call{Request: operation.Same}) != operation.SaysHeld || got.Promise(time.Time{}) != operation.PromisesHeld {
		t.Error("something goes on with it by itself")
	}
}

// TestRedriven: it is promised, and was never sent.
func TestRedriven(t *testing.T) {
	t.Parallel()
	before := time.Unix(1000, 0)
	if op := (operation.Op{}).Promised(before); !op.Enqueued || !op.SendBefore.Equal(before) || op.MaybeSent || op.State != persist.StatePending {
		t.Errorf("%+v", op)
	}
}

// TestTold: who must be noted, and of what nobody was told.
func TestTold(t *testing.T) {
	t.Parallel()
	untold := persist.Record{State: persist.StateConfirmed, Effect: persist.EffectRefused, Enqueued: true}
	if !operation.IsUntold(&untold) || !operation.NotesTold(&untold) {
		t.Error("a refusal of a pass is told")
	}
	owed := untold
	owed.Results, owed.OwedFrom = true, time.Unix(1, 0)
	if operation.IsUntold(&owed) {
		t.Error("what OnResult may be hearing at this moment is untold")
	}
	acted := untold
	acted.Acts = []persist.Act{{Did: persist.ActAbsent}}
	if !operation.IsUntold(&acted) {
		t.Error("what a person has settled is told")
	}
	for name, change := range map[string]func(*persist.Record){
		"told":         func(r *persist.Record) { r.Told = true },
		"not enqueued": func(r *persist.Record) { r.Enqueued = false },
		"generated":    func(r *persist.Record) { r.Generated = true },
		"plain HTTP":   func(r *persist.Record) { r.PlainHTTP = true },
		"delivered":    func(r *persist.Record) { r.Results = true },
		"reopened":     func(r *persist.Record) { r.Acts = []persist.Act{{Did: persist.ActAbsent}, {Did: persist.ActReopened}} },
		"not ended":    func(r *persist.Record) { r.State, r.Effect = persist.StatePending, "" },
	} {
		rec := untold
		if change(&rec); operation.IsUntold(&rec) {
			t.Errorf("%s: nobody was told", name)
		}
	}
	for name, c := range map[string]struct {
		rec  persist.Record
		want bool
	}{
		"told":       {persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent, Told: true}, false},
		"absent":     {persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent}, true},
		"happened":   {persist.Record{State: persist.StateSettled, Effect: persist.EffectHappened}, true},
		"a success":  {persist.Record{State: persist.StateConfirmed, Effect: persist.EffectHappened}, false},
		"abandoned":  {persist.Record{State: persist.StateAbandoned}, false},
		"mismatched": {persist.Record{State: persist.StateMismatched}, false},
		"pending":    {persist.Record{}, false},
	} {
		if got := operation.NotesTold(&c.rec); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestTells: which openings tell an end.
func TestTells(t *testing.T) {
	t.Parallel()
	for o := operation.SaysUnreadable; o <= operation.Adopts; o++ {
		want := o == operation.SaysOther || o >= operation.SaysGone && o <= operation.SaysHappened || o == operation.GivesAnswer || o == operation.AsksAgain
		if o.Tells() != want {
			t.Errorf("opening %d: %t", o, o.Tells())
		}
	}
}

// TestAnewWhileSending: nothing is begun while a send of a process that lost its lease may be on its way; a settlement may be taken back.
func TestAnewWhileSending(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	refused := operation.Op{State: persist.StateConfirmed, Standing: operation.Refused, Deserted: now}
	absent := operation.Op{State: persist.StateSettled, Standing: operation.Absent, Deserted: now}
	for _, c := range []struct {
		op   operation.Op
		act  operation.Anew
		at   time.Time
		want operation.Refusal
	}{
		{refused, operation.Redrives, now.Add(-1), operation.IsSending}, {refused, operation.Redrives, now, operation.MayAct},
		{absent, operation.Rekeys, now.Add(-1), operation.IsSending}, {absent, operation.Rekeys, now, operation.MayAct},
		{absent, operation.Unsettles, now.Add(-1), operation.MayAct},
	} {
		if got := c.op.MayAnew(c.act, operation.Successors{}, c.at); got != c.want {
			t.Errorf("%d at %v: %d, want %d", c.act, c.at, got, c.want)
		}
	}
}

package acts_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestMayAnew: what ended without an effect may be begun once more, and a settlement taken back, unless something stands in its place.
func TestMayAnew(t *testing.T) {
	t.Parallel()
	const redrive, rekey, unsettle = acts.Redrives, acts.Rekeys, acts.Unsettles
	all := []acts.Anew{redrive, rekey, unsettle}
	for name, c := range map[string]struct {
		rec persist.Record
		may []acts.Anew
	}{
		"pending":               {persist.Record{}, nil},
		"held":                  {persist.Record{State: persist.StateHeld, HoldReason: persist.HoldExpired}, nil},
		"reopened":              {persist.Record{State: persist.StateHeld, HoldReason: persist.HoldReopened}, []acts.Anew{unsettle}},
		"refused":               {persist.Record{State: persist.StateConfirmed, Effect: persist.EffectRefused}, []acts.Anew{redrive}},
		"a success":             {persist.Record{State: persist.StateConfirmed, Effect: persist.EffectHappened}, nil},
		"no effect":             {persist.Record{State: persist.StateConfirmed}, nil},
		"mismatched":            {persist.Record{State: persist.StateMismatched}, nil},
		"abandoned":             {persist.Record{State: persist.StateAbandoned}, nil},
		"absent":                {persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent}, all},
		"refused, contradicted": {persist.Record{State: persist.StateConfirmed, Effect: persist.EffectRefused, Evidence: &persist.Evidence{}}, nil},
		"absent, contradicted":  {persist.Record{State: persist.StateSettled, Effect: persist.EffectAbsent, Evidence: &persist.Evidence{}}, []acts.Anew{unsettle}},
		"proven":                {persist.Record{State: persist.StateSettled, Effect: persist.EffectHappened, Evidence: &persist.Evidence{}}, nil},
		"happened":              {persist.Record{State: persist.StateSettled, Effect: persist.EffectHappened}, []acts.Anew{unsettle}},
	} {
		op := operation.OpOf(&c.rec, 0)
		for _, act := range all {
			want := acts.NotAbsent
			if name == "proven" && act == unsettle || name == "refused, contradicted" && act == redrive {
				want = acts.IsWitnessed
			}
			for _, may := range c.may {
				if may == act {
					want = acts.MayAct
				}
			}
			if got := act.MayAnew(&op, acts.Successors{}, time.Time{}); got != want {
				t.Errorf("%s, act %d: %d, want %d", name, act, got, want)
			}
			for _, s := range []acts.Successors{{Replaced: true}, {Higher: true}, {Taken: true}} {
				if got := act.MayAnew(&op, s, time.Time{}); want == acts.MayAct && got != acts.IsReplaced || want != acts.MayAct && got != want {
					t.Errorf("%s, act %d, %+v: %d", name, act, s, got)
				}
			}
		}
	}
}

// TestPlaceholderIsNotBegunAnew: nothing is begun in the place of a placeholder, and its end stays.
func TestPlaceholderIsNotBegunAnew(t *testing.T) {
	t.Parallel()
	op := operation.Op{Phase: operation.Phase{State: persist.StateSettled, Standing: operation.Absent, Skipped: true}}
	for _, act := range []acts.Anew{acts.Redrives, acts.Rekeys, acts.Unsettles} {
		if got := act.MayAnew(&op, acts.Successors{}, time.Unix(1, 0)); got != acts.IsReplaced {
			t.Errorf("%v: %v", act, got)
		}
	}
}

// TestReopened: it is held for persons alone, and nothing of the settlement is left.
func TestReopened(t *testing.T) {
	t.Parallel()
	was := persist.Record{State: persist.StateSettled, Effect: persist.EffectHappened, Generated: true, Unreported: true, MaybeSent: true, Answer: &persist.Answer{Status: 201, Stored: true, BodyDropped: true}}
	op := operation.OpOf(&was, 0)
	got, want := acts.Reopened(op), persist.Record{State: persist.StateHeld, HoldReason: persist.HoldReopened, Generated: true, MaybeSent: true}
	if held := operation.OpOf(&want, 0); got != held {
		t.Errorf("%+v, want %+v", got, held)
	}
	if !got.IsActedOn() || (operation.Call{Request: operation.Same}).Open(&got) != operation.SaysHeld || operation.PromiseOf(&got, time.Time{}) != operation.PromisesHeld {
		t.Error("something goes on with it by itself")
	}
}

// TestReopenedRecord: the record has the settlement and the reason among its acts, and nobody counts as told. OnResult is owed the hold, and the settlement once more
// if that is put back.
func TestReopenedRecord(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	was := persist.Record{
		State: persist.StateSettled, Effect: persist.EffectAbsent, Finished: now.Add(-time.Hour), Note: "not in the books", Told: true, Generated: true, KeyTold: true, Unreported: true,
		Results: true, Answer: &persist.Answer{Status: 404}, Revision: 3,
	}
	held := acts.ReopenedRecord(&was, "it is there", now)
	done := []persist.Act{{At: was.Finished, Did: persist.ActAbsentTold, Note: was.Note}, {At: now, Did: persist.ActReopened, Note: "it is there"}}
	if held.State != persist.StateHeld || held.HoldReason != persist.HoldReopened || !reflect.DeepEqual(held.Acts, done) || held.Note != "it is there" || !held.OwedFrom.Equal(now) {
		t.Errorf("held as %+v", held)
	}
	if held.Effect != "" || !held.Finished.IsZero() || held.Answer != nil || held.Told || held.KeyTold || held.Unreported {
		t.Errorf("left of the settlement: %+v", held)
	}
	held.Revision = 4
	back := acts.SettledAgain(&was, &held, now.Add(time.Second))
	if want := was.Clone(); back.Revision != 4 || !back.OwedFrom.Equal(now.Add(time.Second)) {
		t.Errorf("put back as %+v", back)
	} else if want.Revision, want.OwedFrom = back.Revision, back.OwedFrom; !reflect.DeepEqual(back, want) {
		t.Errorf("put back as %+v, was %+v", back, was)
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
	if !acts.IsUntold(&untold) || !operation.NotesTold(&untold) {
		t.Error("a refusal of a pass is told")
	}
	owed := untold
	owed.Results, owed.OwedFrom = true, time.Unix(1, 0)
	if acts.IsUntold(&owed) {
		t.Error("what OnResult may be hearing at this moment is untold")
	}
	acted := untold
	acted.Acts = []persist.Act{{Did: persist.ActAbsent}}
	if !acts.IsUntold(&acted) {
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
		if change(&rec); acts.IsUntold(&rec) {
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

// TestAnewWhileSending: nothing is begun while a send of a process that lost its lease may be on its way; a settlement may be taken back.
func TestAnewWhileSending(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	refused := operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Refused}, Sending: operation.Sending{Deserted: now}}
	absent := operation.Op{Phase: operation.Phase{State: persist.StateSettled, Standing: operation.Absent}, Sending: operation.Sending{Deserted: now}}
	for _, c := range []struct {
		op   operation.Op
		act  acts.Anew
		at   time.Time
		want acts.Refusal
	}{
		{refused, acts.Redrives, now.Add(-1), acts.IsSending}, {refused, acts.Redrives, now, acts.MayAct},
		{absent, acts.Rekeys, now.Add(-1), acts.IsSending}, {absent, acts.Rekeys, now, acts.MayAct},
		{absent, acts.Unsettles, now.Add(-1), acts.MayAct},
	} {
		if got := c.act.MayAnew(&c.op, acts.Successors{}, c.at); got != c.want {
			t.Errorf("%d at %v: %d, want %d", c.act, c.at, got, c.want)
		}
	}
}

// TestSettledAs: a settlement, once taken back, leaves an act with its effect, and with the word that a caller was told. The latest one counts.
func TestSettledAs(t *testing.T) {
	t.Parallel()
	for did, rec := range map[string]persist.Record{
		persist.ActAbsentTold: {Effect: persist.EffectAbsent, Told: true}, persist.ActAbsent: {Effect: persist.EffectAbsent},
		persist.ActHappenedTold: {Effect: persist.EffectHappened, Told: true}, persist.ActHappened: {Effect: persist.EffectHappened},
	} {
		if got := acts.SettledAs(&rec); got != did {
			t.Errorf("%v, told %t: %q, want %q", rec.Effect, rec.Told, got, did)
		}
		for _, earlier := range []string{persist.ActAbsentTold, persist.ActAbsent} {
			took := []persist.Act{{Did: earlier}, {Did: persist.ActReopened}, {Did: did}, {Did: persist.ActReopened}}
			if got := acts.WasTold(took); got != rec.Told {
				t.Errorf("told of %q after %q: %t", did, earlier, got)
			}
		}
	}
	if acts.WasTold(nil) || acts.WasTold([]persist.Act{{Did: persist.ActAbandoned}}) {
		t.Error("told of no settlement")
	}
}

// TestMayReopen: a settlement is taken back once, and only while the request is there.
func TestMayReopen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rec  persist.Record
		want acts.Refusal
	}{
		"settled":                 {persist.Record{State: persist.StateSettled}, acts.MayAct},
		"held otherwise":          {persist.Record{State: persist.StateHeld, HoldReason: persist.HoldUnclear}, acts.MayAct},
		"reopened":                {persist.Record{State: persist.StateHeld, HoldReason: persist.HoldReopened}, acts.IsReopened},
		"without its request":     {persist.Record{State: persist.StateSettled, RequestDropped: true}, acts.IsGone},
		"swept":                   {persist.Record{State: persist.StateSettled, Swept: true}, acts.IsGone},
		"reopened, and then gone": {persist.Record{State: persist.StateHeld, HoldReason: persist.HoldReopened, RequestDropped: true}, acts.IsReopened},
	} {
		if got := acts.MayReopen(&c.rec); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

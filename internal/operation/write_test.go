package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestOwedAs: each end and each new hold is owed, that of a call after the grace; the same hold is owed as before, and pending owes nothing.
func TestOwedAs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	earlier := now.Add(-time.Hour)
	pending := Op{Results: true}
	held := Op{Phase: Phase{State: persist.StateHeld, Hold: persist.HoldExpired}, Results: true, OwedFrom: earlier}
	underWay := held
	underWay.OwedFrom = now.Add(time.Second)
	delivered := held
	delivered.OwedFrom = time.Time{}
	for _, r := range []struct {
		name  string
		op    Op
		state persist.State
		hold  persist.HoldReason
		grace time.Duration
		want  time.Time
	}{
		{"an end by a pass", pending, persist.StateConfirmed, "", 0, now},
		{"an end by a call", pending, persist.StateConfirmed, "", ResultGrace, now.Add(ResultGrace)},
		{"an end by a pass that delivers", pending, persist.StateConfirmed, "", time.Second, now.Add(time.Second)},
		{"of a hold under delivery by others", underWay, persist.StateConfirmed, "", time.Millisecond, underWay.OwedFrom},
		{"a new hold", pending, persist.StateHeld, persist.HoldExpired, 0, now},
		{"the same hold, owed", held, persist.StateHeld, persist.HoldExpired, 0, earlier},
		{"the same hold, delivered", delivered, persist.StateHeld, persist.HoldExpired, 0, time.Time{}},
		{"another hold", delivered, persist.StateHeld, persist.HoldUnclear, 0, now},
		{"the end of a hold", held, persist.StateSettled, "", 0, now},
		{"pending again", held, persist.StatePending, "", 0, time.Time{}},
		{"the end of a hold under delivery", underWay, persist.StateSettled, "", 0, underWay.OwedFrom},
		{"by a call", underWay, persist.StateConfirmed, "", ResultGrace, now.Add(ResultGrace)},
		{"pending again, under delivery", underWay, persist.StatePending, "", 0, underWay.OwedFrom},
		{"pending again, under delivery, by a call", underWay, persist.StatePending, "", ResultGrace, underWay.OwedFrom},
		{"begun without OnResult", Op{}, persist.StateConfirmed, "", 0, time.Time{}},
	} {
		if got := OwedAs(&r.op, r.state, r.hold, r.grace, now); !got.Equal(r.want) {
			t.Errorf("%s: owed from %v; want %v", r.name, got, r.want)
		}
	}
}

// TestDriveHeedsEvidence: at its last write a drive heeds evidence, unless it has a success, or callers have their answer.
func TestDriveHeedsEvidence(t *testing.T) {
	t.Parallel()
	op := Op{Phase: Phase{Standing: Open}, Sending: Sending{MaybeSent: true, Window: time.Hour, Pauses: UsualPauses}}
	for name, c := range map[string]struct {
		drive Drive
		told  bool
		want  Writing
	}{
		"left open":             {flat{step: Write, write: LeaveOpen}.drive(), false, EndHappened},
		"left unsent":           {flat{step: Write, write: LeaveUnsent}.drive(), false, EndHappened},
		"forgotten":             {flat{step: Write, write: Forget}.drive(), false, EndHappened},
		"absent":                {flat{step: Write, write: EndAbsent}.drive(), false, EndHappened},
		"mismatched":            {flat{step: Write, write: EndMismatched}.drive(), false, EndHappened},
		"refused":               {flat{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 402}, proof: Proof{Kind: ProvesEnd}}.drive(), false, EndHappened},
		"refused in a 200":      {flat{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 200}, proof: Proof{Kind: ProvesEnd, Refused: true}}.drive(), false, EndHappened},
		"refused, and told":     {flat{proof: Proof{Kind: ProvesEnd}, step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 402}}.drive(), true, EndConfirmed},
		"succeeded":             {flat{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 201}, proof: Proof{Kind: ProvesEnd}}.drive(), false, EndConfirmed},
		"done before":           {flat{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 409}, proof: Proof{Kind: ProvesEnd, AlreadyDone: true}}.drive(), false, EndConfirmed},
		"not at its last write": {flat{step: Check, write: WriteNothing}.drive(), false, WriteNothing},
	} {
		d := c.drive
		if c.told {
			d.AnswersFirst()
		}
		if d.Moved(op); d.Writing() != c.drive.write {
			t.Errorf("%s: without evidence it writes %d", name, d.Writing())
		}
		proven := op
		proven.Witnessed = true
		if d.Moved(proven); d.Writing() != c.want {
			t.Errorf("%s: with evidence it writes %d, want %d", name, d.Writing(), c.want)
		}
	}
	pass := flat{step: Write, write: EndHappened, op: op, given: Given{Pass: true}}.drive()
	pass.op.Generated = true
	if c := pass.Change(Meanwhile{}, time.Unix(1, 0)); c.State != persist.StateSettled || c.Effect != persist.EffectHappened || c.Answer != KeepNone || !c.Final || !c.Unreported {
		t.Errorf("a pass writes %+v", c)
	}
}

// TestStanding: a drive says how the operation ended only by its evidence, or by an answer that is its end; the same is written.
func TestStanding(t *testing.T) {
	t.Parallel()
	end := Proof{Kind: ProvesEnd}
	for name, c := range map[string]struct {
		drive Drive
		want  Standing
	}{
		"evidence":            {flat{write: EndHappened, proof: end, answer: Answer{ID: 1, Status: 402}}.drive(), Happened},
		"a success":           {flat{write: EndConfirmed, proof: end, answer: Answer{ID: 1, Status: 201}}.drive(), Succeeded},
		"taken on":            {flat{write: EndConfirmed, proof: end, answer: Answer{ID: 1, Status: 202}}.drive(), Accepted},
		"a refusal":           {flat{write: EndConfirmed, proof: end, answer: Answer{ID: 1, Status: 402}}.drive(), Refused},
		"refused in a 200":    {flat{write: EndConfirmed, proof: Proof{Kind: ProvesEnd, Refused: true}, answer: Answer{ID: 1, Status: 200}}.drive(), Refused},
		"done before":         {flat{write: EndConfirmed, proof: Proof{Kind: ProvesEnd, AlreadyDone: true}, answer: Answer{ID: 1, Status: 409}}.drive(), Succeeded},
		"an answer, no proof": {flat{answer: Answer{ID: 1, Status: 201}}.drive(), Unclear},
		"a refused send":      {flat{proof: Proof{Kind: ProvesRefusal}, answer: Answer{ID: 1, Status: 402}}.drive(), Unclear},
		"no answer":           {flat{proof: end}.drive(), Unclear},
	} {
		d := c.drive
		if got := d.Standing(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		if d.write == EndConfirmed || d.write == EndHappened {
			if got := d.Change(Meanwhile{}, noon).Effect; got != c.want.Effect() {
				t.Errorf("%s: the effect %q is written, want %q", name, got, c.want.Effect())
			}
		}
	}
}

// TestUnmarkedHasNoWindow: an operation that is pending as never sent has no window, so that its pause is not cut by one.
func TestUnmarkedHasNoWindow(t *testing.T) {
	t.Parallel()
	first := time.Unix(1_000_000, 0)
	now := first.Add(24*time.Hour - 91*time.Second)
	op := Op{Sending: Sending{MaybeSent: true, FirstSent: first, Window: 24 * time.Hour, Pauses: UsualPauses}}
	d := flat{op: op, step: Write, write: LeaveUnsent, proof: Proof{Kind: ProvesRefusal}, attempts: 1, sends: 1, reached: true}.drive()
	if c := d.Change(Meanwhile{}, now); !c.Unmark || c.NextAttempt.Sub(now) != UsualPauses.First {
		t.Errorf("due after %v, unmarked %t; want %v", c.NextAttempt.Sub(now), c.Unmark, UsualPauses.First)
	}
}

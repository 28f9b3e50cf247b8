package operation

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestTestimony: an event says something about what was, or may have been, sent, and has not ended.
func TestTestimony(t *testing.T) {
	t.Parallel()
	sent := Op{MaybeSent: true, Standing: Open}
	for name, c := range map[string]struct {
		op   Op
		want Testimony
	}{
		"never sent":              {Op{Standing: Open}, TestifiesNothing},
		"sent, and refused since": {Op{Standing: Open, Sends: 1}, Testifies},
		"may have been sent":      {sent, Testifies},
		"held":                    {sent.HeldFor(persist.HoldExpired), Testifies},
		"held for an undo":        {sent.HeldFor(persist.HoldUndo), Testifies},
		"witnessed":               {sent.WithEvidence(), Testifies},
		"happened":                {sent.Settled(persist.EffectHappened, 0), TestifiesAgain},
		"succeeded":               {Op{State: persist.StateConfirmed, Standing: Succeeded}, TestifiesAgain},
		"taken on":                {Op{State: persist.StateConfirmed, Standing: Accepted}, TestifiesAgain},
		"refused":                 {Op{State: persist.StateConfirmed, Standing: Refused}, Contradicts},
		"mismatched":              {Op{State: persist.StateMismatched, Standing: Ended}, Contradicts},
		"absent":                  {sent.Settled(persist.EffectAbsent, 0), Contradicts},
		"absent, never sent":      {(&Op{Standing: Open}).Settled(persist.EffectAbsent, 0), Contradicts},
		"abandoned":               {sent.Abandoned(), Contradicts},
	} {
		if got := c.op.Testimony(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestEvidenceEndsIt: an unfinished operation ends by its evidence, whatever held it, but for an undo; a person ends it as happened only.
func TestEvidenceEndsIt(t *testing.T) {
	t.Parallel()
	sent := Op{MaybeSent: true, Standing: Open, NextAttempt: time.Unix(9, 0), Answered: true, Status: 500}
	for _, why := range append(persist.HoldReasons(), "") {
		op := sent
		if why != "" {
			op = op.HeldFor(why)
		}
		with := op.WithEvidence()
		undo := why == persist.HoldUndo
		if with.EndsByEvidence() == undo || op.EndsByEvidence() {
			t.Errorf("held for %q: with evidence %t, without %t", why, with.EndsByEvidence(), op.EndsByEvidence())
		}
		if !undo && (with.State != persist.StatePending || with.Hold != "" || with.Answered || !with.NextAttempt.IsZero()) || undo && with.Hold != why {
			t.Errorf("held for %q: with evidence it is %+v", why, with)
		}
		for _, e := range []Ending{{}, {Absent: true}, {Happened: true}} {
			want := MayAct
			if !undo && !e.Happened {
				want = IsWitnessed
			}
			if got := with.MayEnd(e); got != want {
				t.Errorf("held for %q: a person with %+v: %d, want %d", why, e, got, want)
			}
		}
		if got := with.MayLookBefore(false, true); (got == IsWitnessed) == undo {
			t.Errorf("held for %q: a Rekey: %d", why, got)
		}
		if got := with.Adopt(time.Unix(1, 0), true); (got == IsProven) == undo {
			t.Errorf("held for %q: a drive before it: %d", why, got)
		}
	}
	if settled := sent.WithEvidence().Settled(persist.EffectHappened, 0); settled.EndsByEvidence() {
		t.Error("it ends by its evidence twice")
	}
}

// TestDriveHeedsEvidence: at its last write a drive heeds evidence, unless it has a success, or callers have their answer.
func TestDriveHeedsEvidence(t *testing.T) {
	t.Parallel()
	op := Op{MaybeSent: true, Standing: Open, Window: time.Hour, Pauses: UsualPauses}
	for name, c := range map[string]struct {
		drive Drive
		told  bool
		want  Writing
	}{
		"left open":             {Drive{step: Write, write: LeaveOpen}, false, EndHappened},
		"left unsent":           {Drive{step: Write, write: LeaveUnsent}, false, EndHappened},
		"forgotten":             {Drive{step: Write, write: Forget}, false, EndHappened},
		"absent":                {Drive{step: Write, write: EndAbsent}, false, EndHappened},
		"mismatched":            {Drive{step: Write, write: EndMismatched}, false, EndHappened},
		"refused":               {Drive{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 402}}, false, EndHappened},
		"refused in a 200":      {Drive{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 200}, proof: Proof{Refused: true}}, false, EndHappened},
		"refused, and told":     {Drive{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 402}}, true, EndConfirmed},
		"succeeded":             {Drive{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 201}}, false, EndConfirmed},
		"done before":           {Drive{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 409}, proof: Proof{AlreadyDone: true}}, false, EndConfirmed},
		"not at its last write": {Drive{step: Check, write: WriteNothing}, false, WriteNothing},
	} {
		d := c.drive
		if c.told {
			d.AnswersFirst()
		}
		if d.Moved(op); d.Writing() != c.drive.write {
			t.Errorf("%s: without evidence it writes %d", name, d.Writing())
		}
		if d.Moved(op.WithEvidence()); d.Writing() != c.want {
			t.Errorf("%s: with evidence it writes %d, want %d", name, d.Writing(), c.want)
		}
	}
	pass := Drive{step: Write, write: EndHappened, op: op, given: Given{Pass: true}}
	pass.op.Generated = true
	if c := pass.Change(Meanwhile{}, time.Unix(1, 0)); c.State != persist.StateSettled || c.Effect != persist.EffectHappened || c.Answer != KeepNone || !c.Final || !c.Unreported {
		t.Errorf("a pass writes %+v", c)
	}
}

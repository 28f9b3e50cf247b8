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
		if got := c.op.Testimony(false); got != c.want {
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
		"refused":               {Drive{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 402}, proof: Proof{Kind: ProvesEnd}}, false, EndHappened},
		"refused in a 200":      {Drive{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 200}, proof: Proof{Kind: ProvesEnd, Refused: true}}, false, EndHappened},
		"refused, and told":     {Drive{proof: Proof{Kind: ProvesEnd}, step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 402}}, true, EndConfirmed},
		"succeeded":             {Drive{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 201}, proof: Proof{Kind: ProvesEnd}}, false, EndConfirmed},
		"done before":           {Drive{step: Write, write: EndConfirmed, answer: Answer{ID: 1, Status: 409}, proof: Proof{Kind: ProvesEnd, AlreadyDone: true}}, false, EndConfirmed},
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

// TestStanding: a drive says how the operation ended only by its evidence, or by an answer that is its end; the same is written.
func TestStanding(t *testing.T) {
	t.Parallel()
	end := Proof{Kind: ProvesEnd}
	for name, c := range map[string]struct {
		drive Drive
		want  Standing
	}{
		"evidence":            {Drive{write: EndHappened, proof: end, answer: Answer{ID: 1, Status: 402}}, Happened},
		"a success":           {Drive{write: EndConfirmed, proof: end, answer: Answer{ID: 1, Status: 201}}, Succeeded},
		"taken on":            {Drive{write: EndConfirmed, proof: end, answer: Answer{ID: 1, Status: 202}}, Accepted},
		"a refusal":           {Drive{write: EndConfirmed, proof: end, answer: Answer{ID: 1, Status: 402}}, Refused},
		"refused in a 200":    {Drive{write: EndConfirmed, proof: Proof{Kind: ProvesEnd, Refused: true}, answer: Answer{ID: 1, Status: 200}}, Refused},
		"done before":         {Drive{write: EndConfirmed, proof: Proof{Kind: ProvesEnd, AlreadyDone: true}, answer: Answer{ID: 1, Status: 409}}, Succeeded},
		"an answer, no proof": {Drive{answer: Answer{ID: 1, Status: 201}}, Unclear},
		"a refused send":      {Drive{proof: Proof{Kind: ProvesRefusal}, answer: Answer{ID: 1, Status: 402}}, Unclear},
		"no answer":           {Drive{proof: end}, Unclear},
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

// TestIsContradicted: only evidence beside an end without an effect contradicts something.
func TestIsContradicted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op   Op
		want bool
	}{
		"refused":             {Op{State: persist.StateConfirmed, Standing: Refused, Witnessed: true}, true},
		"mismatched":          {Op{State: persist.StateMismatched, Standing: Ended, Witnessed: true}, true},
		"succeeded":           {Op{State: persist.StateConfirmed, Standing: Succeeded, Witnessed: true}, false},
		"happened":            {Op{State: persist.StateSettled, Standing: Happened, Witnessed: true}, false},
		"not ended":           {Op{State: persist.StatePending, Standing: Open, Witnessed: true}, false},
		"refused, no witness": {Op{State: persist.StateConfirmed, Standing: Refused}, false},
	} {
		if got := c.op.IsContradicted(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestNamed: of operations that replace each other the last one is meant, or the one that is known to have happened; of others none.
func TestNamed(t *testing.T) {
	t.Parallel()
	sent := Op{MaybeSent: true, Standing: Open}
	happened := Op{Sends: 1, State: persist.StateConfirmed, Standing: Succeeded}
	first, second := Referred{Op: sent, First: "a"}, Referred{Op: sent, First: "a", Steps: 1}
	for name, c := range map[string]struct {
		all     []Referred
		unclear bool
		at      int
		want    Naming
	}{
		"none":                       {nil, false, -1, NamesNone},
		"none, and others may be":    {nil, true, -1, NamesNone},
		"one":                        {[]Referred{first}, false, 0, NamesOne},
		"one, and others may be":     {[]Referred{first}, true, 0, NamesSeveral},
		"never sent":                 {[]Referred{{Op: Op{Standing: Open}, First: "a"}}, false, -1, NamesUnsent},
		"never sent, others may be":  {[]Referred{{Op: Op{Standing: Open}, First: "a"}}, true, -1, NamesUnsent},
		"sent later":                 {[]Referred{{Op: sent, First: "a", Early: true}}, false, -1, NamesUnsent},
		"the last of a chain":        {[]Referred{first, second}, false, 1, NamesOne},
		"the last stands first":      {[]Referred{second, first}, false, 0, NamesOne},
		"the last was not sent":      {[]Referred{first, {Op: Op{Standing: Open}, First: "a", Steps: 1}}, false, 0, NamesOne},
		"the first happened":         {[]Referred{{Op: happened, First: "a"}, second}, false, 0, NamesOne},
		"the first happened, as 2nd": {[]Referred{second, {Op: happened, First: "a"}}, false, 1, NamesOne},
		"two of one step":            {[]Referred{first, first}, false, 0, NamesOne},
		"two that happened":          {[]Referred{{Op: happened, First: "a"}, {Op: happened, First: "a", Steps: 1}}, false, 0, NamesOne},
		"two chains":                 {[]Referred{first, {Op: sent, First: "b"}}, false, 0, NamesSeveral},
		"another chain, not sent":    {[]Referred{first, {Op: Op{Standing: Open}, First: "b"}}, false, 0, NamesOne},
	} {
		if at, got := Named(c.all, c.unclear); at != c.at || got != c.want {
			t.Errorf("%s: %d, %d, want %d, %d", name, at, got, c.at, c.want)
		}
	}
}

// TestStoresEvidence: a record gets the evidence of one event, and only where it says something new.
func TestStoresEvidence(t *testing.T) {
	t.Parallel()
	for said := range Testifies + 1 {
		if got, want := (&Op{}).StoresEvidence(said), said == Testifies || said == Contradicts; got != want {
			t.Errorf("%d: %t, want %t", said, got, want)
		}
		if (&Op{Witnessed: true}).StoresEvidence(said) {
			t.Errorf("%d: evidence is written over other evidence", said)
		}
	}
}

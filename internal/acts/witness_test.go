package acts

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestEarlierEvents: an event created more than an hour before the first send, or before the begin of an unsent operation, is about something else.
// It says nothing of what has ended, either.
func TestEarlierEvents(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sent := persist.Record{Created: at.Add(-24 * time.Hour), FirstSent: at, MaybeSent: true, State: persist.StatePending}
	refused := persist.Record{Created: at, Sends: 1, State: persist.StatePending} // and unmarked
	for name, c := range map[string]struct {
		rec     persist.Record
		created time.Time
		want    bool
	}{
		"later": {sent, at.Add(time.Second), false}, "an hour before": {sent, at.Add(-time.Hour), false},
		"more than an hour before": {sent, at.Add(-time.Hour - 1), true}, "the event does not say": {sent, time.Time{}, false},
		"refused before": {refused, at.Add(-time.Hour), false}, "refused before, earlier": {refused, at.Add(-time.Hour - 1), true},
	} {
		if got := IsEarlier(&c.rec, c.created); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for _, op := range []operation.Op{{Phase: operation.Phase{Standing: operation.Open}, Sending: operation.Sending{MaybeSent: true}}, {Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Refused}}} {
		if got := TestimonyOf(&op, true); got != TestifiesNothing {
			t.Errorf("%v: %d, want nothing", op.State, got)
		}
	}
}

// TestTestimony: an event says something about what was, or may have been, sent, and has not ended.
func TestTestimony(t *testing.T) {
	t.Parallel()
	sent := operation.Op{Phase: operation.Phase{Standing: operation.Open}, Sending: operation.Sending{MaybeSent: true}}
	for name, c := range map[string]struct {
		op   operation.Op
		want Testimony
	}{
		"never sent":              {operation.Op{Phase: operation.Phase{Standing: operation.Open}}, TestifiesNothing},
		"sent, and refused since": {operation.Op{Phase: operation.Phase{Standing: operation.Open}, Sending: operation.Sending{Sends: 1}}, Testifies},
		"may have been sent":      {sent, Testifies},
		"held":                    {HeldFor(sent, persist.HoldExpired), Testifies},
		"held for an undo":        {HeldFor(sent, persist.HoldUndo), Testifies},
		"witnessed":               {WithEvidence(sent), Testifies},
		"happened":                {Settled(sent, persist.EffectHappened, 0), TestifiesAgain},
		"succeeded":               {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}}, TestifiesAgain},
		"taken on":                {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Accepted}}, TestifiesAgain},
		"refused":                 {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Refused}}, Contradicts},
		"mismatched":              {operation.Op{Phase: operation.Phase{State: persist.StateMismatched, Standing: operation.Ended}}, Contradicts},
		"absent":                  {Settled(sent, persist.EffectAbsent, 0), Contradicts},
		"absent, never sent":      {Settled(operation.Op{Phase: operation.Phase{Standing: operation.Open}}, persist.EffectAbsent, 0), Contradicts},
		"abandoned":               {Abandoned(sent), Contradicts},
	} {
		if got := TestimonyOf(&c.op, false); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestEvidenceEndsIt: an unfinished operation ends by its evidence, whatever held it, but for an undo; a person ends it as happened only.
func TestEvidenceEndsIt(t *testing.T) {
	t.Parallel()
	sent := operation.Op{Phase: operation.Phase{Standing: operation.Open}, Sending: operation.Sending{MaybeSent: true, NextAttempt: time.Unix(9, 0)}, Recorded: operation.Recorded{Answered: true, Status: 500}}
	for _, why := range append(persist.HoldReasons(), "") {
		op := sent
		if why != "" {
			op = HeldFor(op, why)
		}
		with := WithEvidence(op)
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
			if got := e.MayEnd(&with); got != want {
				t.Errorf("held for %q: a person with %+v: %d, want %d", why, e, got, want)
			}
		}
		if got := MayLookBefore(&with, false, true); (got == IsWitnessed) == undo {
			t.Errorf("held for %q: a Rekey: %d", why, got)
		}
		if got := operation.Adopt(&with, time.Unix(1, 0), true); (got == operation.IsProven) == undo {
			t.Errorf("held for %q: a drive before it: %d", why, got)
		}
	}
	if settled := Settled(WithEvidence(sent), persist.EffectHappened, 0); settled.EndsByEvidence() {
		t.Error("it ends by its evidence twice")
	}
}

// TestNamed: of operations that replace each other the last one is meant, or the one that is known to have happened; of others none.
func TestNamed(t *testing.T) {
	t.Parallel()
	sent := operation.Op{Phase: operation.Phase{Standing: operation.Open}, Sending: operation.Sending{MaybeSent: true}}
	happened := operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}, Sending: operation.Sending{Sends: 1}}
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
		"never sent":                 {[]Referred{{Op: operation.Op{Phase: operation.Phase{Standing: operation.Open}}, First: "a"}}, false, -1, NamesUnsent},
		"never sent, others may be":  {[]Referred{{Op: operation.Op{Phase: operation.Phase{Standing: operation.Open}}, First: "a"}}, true, -1, NamesUnsent},
		"sent later":                 {[]Referred{{Op: sent, First: "a", Early: true}}, false, -1, NamesUnsent},
		"the last of a chain":        {[]Referred{first, second}, false, 1, NamesOne},
		"the last stands first":      {[]Referred{second, first}, false, 0, NamesOne},
		"the last was not sent":      {[]Referred{first, {Op: operation.Op{Phase: operation.Phase{Standing: operation.Open}}, First: "a", Steps: 1}}, false, 0, NamesOne},
		"the first happened":         {[]Referred{{Op: happened, First: "a"}, second}, false, 0, NamesOne},
		"the first happened, as 2nd": {[]Referred{second, {Op: happened, First: "a"}}, false, 1, NamesOne},
		"two of one step":            {[]Referred{first, first}, false, 0, NamesOne},
		"two that happened":          {[]Referred{{Op: happened, First: "a"}, {Op: happened, First: "a", Steps: 1}}, false, 0, NamesOne},
		"two chains":                 {[]Referred{first, {Op: sent, First: "b"}}, false, 0, NamesSeveral},
		"another chain, not sent":    {[]Referred{first, {Op: operation.Op{Phase: operation.Phase{Standing: operation.Open}}, First: "b"}}, false, 0, NamesOne},
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
		if got, want := StoresEvidence(&operation.Op{}, said), said == Testifies || said == Contradicts; got != want {
			t.Errorf("%d: %t, want %t", said, got, want)
		}
		if StoresEvidence(&operation.Op{Phase: operation.Phase{Witnessed: true}}, said) {
			t.Errorf("%d: evidence is written over other evidence", said)
		}
	}
}

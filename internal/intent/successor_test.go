package intent

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestSuccessorOf: what the two records say of each other. The other one was begun early if the first ended after that, or was itself begun later.
func TestSuccessorOf(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	ended := persist.Record{Seq: 1, State: persist.StateConfirmed, Finished: at}
	for name, c := range map[string]struct {
		change       func(*persist.Record)
		begun        time.Time
		seq          uint64
		unbegun, led bool
		want         Successor
	}{
		"begun before its end":           {func(*persist.Record) {}, at.Add(-1), 2, false, false, Successor{Early: true}},
		"begun at its end":               {func(*persist.Record) {}, at, 2, false, false, Successor{AtOnce: true}},
		"begun before it, at one time":   {func(old *persist.Record) { old.Seq = 3 }, at, 2, false, false, Successor{Early: true, AtOnce: true}},
		"of a journal without numbers":   {func(old *persist.Record) { old.Seq = 2 }, at.Add(1), 2, false, false, Successor{}},
		"it has not ended, and is later": {func(old *persist.Record) { old.Seq, old.State, old.Finished = 3, persist.StatePending, time.Time{} }, at, 2, false, false, Successor{Early: true}},
		"about to begin":                 {func(old *persist.Record) { old.Seq = 3 }, at, 0, true, false, Successor{Unbegun: true}},
		"it has not ended":               {func(old *persist.Record) { old.State, old.Finished = persist.StatePending, time.Time{} }, at, 2, false, false, Successor{}},
		"it names another one":           {func(old *persist.Record) { old.ReplacedBy = "other" }, at.Add(1), 2, false, false, Successor{Another: true}},
		"what it names has led to this":  {func(old *persist.Record) { old.ReplacedBy = "other" }, at.Add(1), 2, false, true, Successor{}},
	} {
		old := ended
		c.change(&old)
		for _, named := range []bool{false, true} {
			c.want.Begun = named
			if got := SuccessorOf(&old, c.begun, c.seq, named, c.unbegun, c.led); got != c.want {
				t.Errorf("%s, named %t: %+v, want %+v", name, named, got, c.want)
			}
		}
	}
}

// TestIsDecline: a recorded success is a decline only if the verdicts of the profile say so now.
func TestIsDecline(t *testing.T) {
	t.Parallel()
	for v, want := range map[classify.Verdict]bool{
		{Kind: classify.KindFinal, Refused: true}: true, {Kind: classify.KindRefused}: true,
		{Kind: classify.KindFinal}: false, {Kind: classify.KindUnknown}: false, {Kind: classify.KindUnknown, Refused: true}: false, {Kind: classify.KindMismatch}: false,
	} {
		if got := IsDecline(v); got != want {
			t.Errorf("%+v: %t", v, got)
		}
	}
}

// TestStopsSuccessor: what has not ended, an event that contradicts its end, another successor, and an absence that was taken back stop what stands in the place of an operation, and so
// does one that a person has begun, unless it had no effect; any other success stops only what a person has begun there.
func TestStopsSuccessor(t *testing.T) {
	t.Parallel()
	refused := operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Refused}}
	proven := refused
	proven.Witnessed = true
	happened := operation.Op{Phase: operation.Phase{State: persist.StateSettled, Standing: operation.Happened, Witnessed: true}}
	happenedAgain := operation.Op{Phase: operation.Phase{State: persist.StateSettled, Standing: operation.Happened, TakenBack: true}}
	absentAgain := operation.Op{Phase: operation.Phase{State: persist.StateSettled, Standing: operation.Absent, TakenBack: true}}
	person, personDone := operation.Op{Phase: operation.Phase{Standing: operation.Open}, Replaces: true}, operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}, Replaces: true}
	personRefused := refused
	personRefused.Replaces = true
	for name, c := range map[string]struct {
		op   operation.Op
		s    Successor
		want bool
	}{
		"refused": {refused, Successor{Begun: true}, false}, "refused, and it is a caller's": {refused, Successor{}, false},
		"an event contradicts": {proven, Successor{Begun: true}, true}, "an event contradicts, and it is a caller's": {proven, Successor{}, true},
		"another stands there": {refused, Successor{Another: true}, true}, "another stands there, of two acts": {refused, Successor{Begun: true, Another: true}, true},
		"an absence was taken back": {operation.Op{Phase: operation.Phase{State: persist.StateHeld, Standing: operation.Open, TakenBack: true}}, Successor{}, true}, "it happened then": {happenedAgain, Successor{}, true},
		"it was absent all the same": {absentAgain, Successor{}, false}, "open": {operation.Op{Phase: operation.Phase{Standing: operation.Open}}, Successor{}, true}, "open and held": {operation.Op{Phase: operation.Phase{State: persist.StateHeld, Standing: operation.Open}}, Successor{Begun: true}, true},
		"abandoned": {operation.Op{Phase: operation.Phase{State: persist.StateAbandoned, Standing: operation.Abandoned}}, Successor{}, false}, "abandoned, and a person has begun it": {operation.Op{Phase: operation.Phase{State: persist.StateAbandoned, Standing: operation.Abandoned}, Replaces: true}, Successor{}, true},
		"open, and a person has begun it": {person, Successor{}, true}, "done, and a person has begun it": {personDone, Successor{}, true}, "refused, and a person has begun it": {personRefused, Successor{}, false},
		"happened after the other one was begun": {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}}, Successor{Early: true}, true}, "refused after the other one was begun": {refused, Successor{Early: true}, false},
		"happened before the other one was begun": {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}}, Successor{}, false}, "happened, and the other one is not begun": {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}}, Successor{Unbegun: true}, true},
		"happened, and is a decline to the program": {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}}, Successor{Unbegun: true, Declined: true}, false}, "refused, and the other one is not begun": {refused, Successor{Unbegun: true}, false},
		"a decline to the program, begun too early": {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}}, Successor{Early: true, Declined: true}, true}, "abandoned after the other one was begun": {operation.Op{Phase: operation.Phase{State: persist.StateAbandoned, Standing: operation.Abandoned}}, Successor{Early: true}, false},
		"abandoned, and erased": {operation.Op{Phase: operation.Phase{State: persist.StateAbandoned, Standing: operation.Ended, Erased: true}}, Successor{}, true}, "refused, and erased": {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Refused, Erased: true}}, Successor{}, false},
		"happened, and erased": {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded, Erased: true}}, Successor{}, false}, "mismatched": {operation.Op{Phase: operation.Phase{State: persist.StateMismatched, Standing: operation.Ended}}, Successor{}, false},
		"happened as the other one was begun": {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}}, Successor{AtOnce: true}, true}, "so, and is a decline": {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}}, Successor{AtOnce: true, Declined: true}, false},
		"abandoned, and an event proves it": {operation.Op{Phase: operation.Phase{State: persist.StateAbandoned, Standing: operation.Abandoned, Witnessed: true}}, Successor{}, true},
		"happened":                          {happened, Successor{Begun: true}, true}, "happened, and it is a caller's": {happened, Successor{}, false}, "happened, and another": {happened, Successor{Another: true}, true},
	} {
		if got := c.s.IsStoppedBy(&c.op); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestIsReplacedBy: one that had no effect, or is a placeholder, is replaced by one that took effect, or may.
func TestIsReplacedBy(t *testing.T) {
	t.Parallel()
	for standing, none := range map[operation.Standing]bool{operation.Absent: true, operation.Refused: true, operation.Open: false, operation.Succeeded: false, operation.Abandoned: false} {
		for last, lastNone := range map[operation.Standing]bool{operation.Absent: true, operation.Refused: true, operation.Open: false, operation.Happened: false, operation.Unclear: false} {
			op, by := operation.Op{Phase: operation.Phase{Standing: standing}}, operation.Op{Phase: operation.Phase{Standing: last}}
			if got := IsReplacedBy(&op, &by); got != (none && !lastNone) {
				t.Errorf("%v by %v: %t", standing, last, got)
			}
		}
	}
	for _, op := range []operation.Op{{Phase: operation.Phase{State: persist.StateHeld, Standing: operation.Open, Skipped: true}}, {Phase: operation.Phase{State: persist.StateSettled, Standing: operation.Absent, Skipped: true}}} {
		if !IsReplacedBy(&op, &operation.Op{Phase: operation.Phase{Standing: operation.Open}}) || !IsReplacedBy(&op, &operation.Op{Phase: operation.Phase{Standing: operation.Succeeded}}) || IsReplacedBy(&op, &operation.Op{Phase: operation.Phase{Standing: operation.Refused}}) || !IsReplacedBy(&op, &operation.Op{Phase: operation.Phase{Standing: operation.Refused, Witnessed: true}}) {
			t.Errorf("%+v: replaced by what may have an effect, and by nothing else", op)
		}
	}
}

// TestWaitsForErased: of an erased operation that an event proves a next generation is held, unless it has ended, is held, or somebody may be sending it.
func TestWaitsForErased(t *testing.T) {
	t.Parallel()
	pending := operation.Op{Phase: operation.Phase{Standing: operation.Open}}
	for name, c := range map[string]struct {
		op     operation.Op
		leased bool
		want   bool
	}{
		"pending":      {pending, false, true},
		"sent by some": {pending, true, false},
		"held":         {acts.HeldFor(pending, persist.HoldExpired), false, false},
		"ended":        {operation.Op{Phase: operation.Phase{State: persist.StateConfirmed, Standing: operation.Succeeded}}, false, false},
		"proven":       {acts.WithEvidence(pending), false, false},
	} {
		if got := WaitsForErased(&c.op, c.leased); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestNextOf: under the key that an act would begin stands what an earlier call of it has begun, another operation, or one of another scope.
func TestNextOf(t *testing.T) {
	t.Parallel()
	of := func(value string) []persist.Scope { return []persist.Scope{{Name: "X", Value: value}} }
	old := persist.Record{ID: persist.ID{Key: "k"}, Fingerprint: []byte("same"), Scopes: of("1")}
	own := persist.Record{ID: persist.ID{Key: "next"}, Fingerprint: []byte("same"), Scopes: of("1"), Replaces: "k"}
	for name, c := range map[string]struct {
		change func(at *persist.Record)
		same   bool
		want   AtNext
	}{
		"its own":                  {func(*persist.Record) {}, true, IsItsOwn},
		"of another account":       {func(*persist.Record) {}, false, IsAnothers},
		"a caller's":               {func(at *persist.Record) { at.Replaces = "" }, true, IsAnothers},
		"in the place of another":  {func(at *persist.Record) { at.Replaces = "other" }, true, IsAnothers},
		"of another request":       {func(at *persist.Record) { at.Fingerprint = []byte("other") }, true, IsAnothers},
		"of another scope":         {func(at *persist.Record) { at.Scopes = of("2") }, true, IsOfScope},
		"of one scope and account": {func(at *persist.Record) { at.Scopes = of("2") }, false, IsOfScope},
	} {
		at := own.Clone()
		c.change(&at)
		if got := NextOf(&old, &at, c.same); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestNamesAnother: a record names another successor than the key that an act would begin.
func TestNamesAnother(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		by, own string
		want    bool
	}{{"", "", false}, {"", "next", false}, {"next", "next", false}, {"next", "", true}, {"other", "next", true}} {
		if got := NamesAnother(&persist.Record{ReplacedBy: c.by}, c.own); got != c.want {
			t.Errorf("%q against %q: %t", c.by, c.own, got)
		}
	}
}

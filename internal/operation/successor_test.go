package operation

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// TestStopsSuccessor: what has not ended, an event that contradicts its end, another successor, and an absence that was taken back stop what stands in the place of an operation, and so
// does one that a person has begun, unless it had no effect; any other success stops only what a person has begun there.
func TestStopsSuccessor(t *testing.T) {
	t.Parallel()
	refused := Op{State: persist.StateConfirmed, Standing: Refused}
	proven := refused
	proven.Witnessed = true
	happened := Op{State: persist.StateSettled, Standing: Happened, Witnessed: true}
	happenedAgain := Op{State: persist.StateSettled, Standing: Happened, TakenBack: true}
	absentAgain := Op{State: persist.StateSettled, Standing: Absent, TakenBack: true}
	person, personDone := Op{Standing: Open, Replaces: true}, Op{State: persist.StateConfirmed, Standing: Succeeded, Replaces: true}
	personRefused := refused
	personRefused.Replaces = true
	for name, c := range map[string]struct {
		op   Op
		s    Successor
		want bool
	}{
		"refused": {refused, Successor{Begun: true}, false}, "refused, and it is a caller's": {refused, Successor{}, false},
		"an event contradicts": {proven, Successor{Begun: true}, true}, "an event contradicts, and it is a caller's": {proven, Successor{}, true},
		"another stands there": {refused, Successor{Another: true}, true}, "another stands there, of two acts": {refused, Successor{Begun: true, Another: true}, true},
		"an absence was taken back": {Op{State: persist.StateHeld, Standing: Open, TakenBack: true}, Successor{}, true}, "it happened then": {happenedAgain, Successor{}, true},
		"it was absent all the same": {absentAgain, Successor{}, false}, "open": {Op{Standing: Open}, Successor{}, true}, "open and held": {Op{State: persist.StateHeld, Standing: Open}, Successor{Begun: true}, true},
		"abandoned": {Op{State: persist.StateAbandoned, Standing: Abandoned}, Successor{}, false}, "abandoned, and a person has begun it": {Op{State: persist.StateAbandoned, Standing: Abandoned, Replaces: true}, Successor{}, true},
		"open, and a person has begun it": {person, Successor{}, true}, "done, and a person has begun it": {personDone, Successor{}, true}, "refused, and a person has begun it": {personRefused, Successor{}, false},
		"happened after the other one was begun": {Op{State: persist.StateConfirmed, Standing: Succeeded}, Successor{Early: true}, true}, "refused after the other one was begun": {refused, Successor{Early: true}, false},
		"happened before the other one was begun": {Op{State: persist.StateConfirmed, Standing: Succeeded}, Successor{}, false}, "happened, and the other one is not begun": {Op{State: persist.StateConfirmed, Standing: Succeeded}, Successor{Unbegun: true}, true},
		"happened, and is a decline to the program": {Op{State: persist.StateConfirmed, Standing: Succeeded}, Successor{Unbegun: true, Declined: true}, false}, "refused, and the other one is not begun": {refused, Successor{Unbegun: true}, false},
		"a decline to the program, begun too early": {Op{State: persist.StateConfirmed, Standing: Succeeded}, Successor{Early: true, Declined: true}, true}, "abandoned after the other one was begun": {Op{State: persist.StateAbandoned, Standing: Abandoned}, Successor{Early: true}, false},
		"abandoned, and an event proves it": {Op{State: persist.StateAbandoned, Standing: Abandoned, Witnessed: true}, Successor{}, true},
		"happened":                          {happened, Successor{Begun: true}, true}, "happened, and it is a caller's": {happened, Successor{}, false}, "happened, and another": {happened, Successor{Another: true}, true},
	} {
		if got := c.op.StopsSuccessor(c.s); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestOldFound: a drive that finds so ends before its next attempt, and the operation is held for a person.
func TestOldFound(t *testing.T) {
	t.Parallel()
	d := NewDrive(Op{Standing: Open, Protected: true, Replaces: true}, Client{}, Given{Pass: true})
	d.OldFound()
	if d.Step() == Send || d.Stop() != OldHappened || d.Proof().Hold != persist.HoldPredecessor {
		t.Errorf("step %v, stop %v, hold %q", d.Step(), d.Stop(), d.Proof().Hold)
	}
}

package operation

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// TestStopsSuccessor: an event that contradicts its end, another successor, and an absence that was taken back stop what stands in the place of an operation, and so
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
		op                Op
		replaces, another bool
		want              bool
	}{
		"refused": {refused, true, false, false}, "refused, and it is a caller's": {refused, false, false, false},
		"an event contradicts": {proven, true, false, true}, "an event contradicts, and it is a caller's": {proven, false, false, true},
		"another stands there": {refused, false, true, true}, "another stands there, of two acts": {refused, true, true, true},
		"an absence was taken back": {Op{State: persist.StateHeld, Standing: Open, TakenBack: true}, false, false, true}, "it happened then": {happenedAgain, false, false, true},
		"it was absent all the same": {absentAgain, false, false, false}, "open, and no person has begun it": {Op{Standing: Open}, false, false, false},
		"open, and a person has begun it": {person, false, false, true}, "done, and a person has begun it": {personDone, false, false, true}, "refused, and a person has begun it": {personRefused, false, false, false},
		"happened": {happened, true, false, true}, "happened, and it is a caller's": {happened, false, false, false}, "happened, and another": {happened, false, true, true},
	} {
		if got := c.op.StopsSuccessor(c.replaces, c.another); got != c.want {
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

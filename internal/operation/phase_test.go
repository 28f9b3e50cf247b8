package operation

import (
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// TestIsContradicted: only evidence beside an end without an effect contradicts something.
func TestIsContradicted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op   Op
		want bool
	}{
		"refused":             {Op{Phase: Phase{State: persist.StateConfirmed, Standing: Refused, Witnessed: true}}, true},
		"mismatched":          {Op{Phase: Phase{State: persist.StateMismatched, Standing: Ended, Witnessed: true}}, true},
		"succeeded":           {Op{Phase: Phase{State: persist.StateConfirmed, Standing: Succeeded, Witnessed: true}}, false},
		"happened":            {Op{Phase: Phase{State: persist.StateSettled, Standing: Happened, Witnessed: true}}, false},
		"not ended":           {Op{Phase: Phase{State: persist.StatePending, Standing: Open, Witnessed: true}}, false},
		"refused, no witness": {Op{Phase: Phase{State: persist.StateConfirmed, Standing: Refused}}, false},
	} {
		if got := c.op.IsContradicted(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestIsActedOn: nobody asks Config.Reconcile of a placeholder, nor of what is held for a caller, or for a person's act.
func TestIsActedOn(t *testing.T) {
	t.Parallel()
	acted := map[persist.HoldReason]bool{
		persist.HoldCaller: true, persist.HoldUndo: true, persist.HoldReopened: true, persist.HoldRekey: true, persist.HoldRekeyHeld: true,
	}
	for _, why := range append(persist.HoldReasons(), "") {
		op := Op{Phase: Phase{State: persist.StateHeld, Hold: why}}
		if got := op.IsActedOn(); got != acted[why] {
			t.Errorf("held as %q: %t", why, got)
		}
		if op.Skipped = true; !op.IsActedOn() {
			t.Errorf("a placeholder held as %q: false", why)
		}
	}
}

// TestEndsByEvidence: evidence settles what has not ended, unless an undo may have taken the effect back.
func TestEndsByEvidence(t *testing.T) {
	t.Parallel()
	for state := persist.StatePending; state <= persist.StateAbandoned; state++ {
		for _, why := range append(persist.HoldReasons(), "") {
			for _, witnessed := range []bool{false, true} {
				op := Op{Phase: Phase{State: state, Hold: why, Witnessed: witnessed}}
				if got := op.EndsByEvidence(); got != (witnessed && !state.Final() && why != persist.HoldUndo) {
					t.Errorf("%v as %q, witnessed %t: %t", state, why, witnessed, got)
				}
			}
		}
	}
}

package acts

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestWaits: the operation of a Rekey waits until that lets it go.
func TestWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op   operation.Op
		want bool
	}{
		{operation.Op{Phase: operation.Phase{Hold: persist.HoldRekey}}, true}, {operation.Op{Phase: operation.Phase{Hold: persist.HoldRekey}, Sending: operation.Sending{Enqueued: true}}, false}, {operation.Op{}, false}, {operation.Op{Sending: operation.Sending{Enqueued: true}}, false},
		{operation.Op{Phase: operation.Phase{Hold: persist.HoldUnclear}}, false},
	} {
		if got := WaitsForRelease(&c.op); got != c.want {
			t.Errorf("%+v waits: %t", c.op, got)
		}
	}
}

// TestMayLookBefore: a Rekey looks if nobody else has the operation, no event proves it, and the API's lookup finds everything.
func TestMayLookBefore(t *testing.T) {
	t.Parallel()
	held := operation.Op{Phase: operation.Phase{State: persist.StateHeld, Standing: operation.Open}}
	proven := held
	proven.Witnessed = true
	for name, c := range map[string]struct {
		op            operation.Op
		leased, finds bool
		want          Refusal
	}{
		"held": {held, false, true, MayAct}, "leased": {held, true, true, IsLeased}, "proven": {proven, false, true, IsWitnessed},
		"no lookup": {held, false, false, NotAbsent}, "proven, and no lookup": {proven, false, false, IsWitnessed}, "leased, and proven": {proven, true, true, IsLeased},
	} {
		if got := MayLookBefore(&c.op, c.leased, c.finds); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// at is the time from which on a lookup counts.
var at = time.Unix(1_000_000, 0)

// heldFor is an operation that is held.
func heldFor(why persist.HoldReason, due time.Time) operation.Op {
	return operation.Op{Phase: operation.Phase{State: persist.StateHeld, Hold: why, Standing: operation.Open}, Sending: operation.Sending{NextAttempt: due}}
}

// TestHeldToRekey: the hold says whether the operation was held before; a Rekey that was cut off goes on with its own, unless a restore has reset it.
func TestHeldToRekey(t *testing.T) {
	t.Parallel()
	pending := operation.Op{Phase: operation.Phase{Standing: operation.Open}}
	for name, c := range map[string]struct {
		op    operation.Op
		want  persist.HoldReason
		write bool
	}{
		"pending":              {pending, persist.HoldRekey, true},
		"held":                 {heldFor(persist.HoldUnclear, time.Time{}), persist.HoldRekeyHeld, true},
		"held, and due":        {heldFor(persist.HoldUnclear, at.Add(-1)), persist.HoldRekeyHeld, true},
		"cut off":              {heldFor(persist.HoldRekey, at.Add(-1)), persist.HoldRekey, false},
		"cut off, while held":  {heldFor(persist.HoldRekeyHeld, at.Add(-1)), persist.HoldRekeyHeld, false},
		"restored":             {heldFor(persist.HoldRekey, time.Time{}), persist.HoldRekey, true},
		"restored, while held": {heldFor(persist.HoldRekeyHeld, time.Time{}), persist.HoldRekeyHeld, true},
	} {
		due := at
		if !c.write {
			due = at.Add(-1)
		}
		if got, write := HeldToRekey(c.op, at); got != heldFor(c.want, due) || write != c.write {
			t.Errorf("%s: %+v, written %t; want it held as %q, written %t", name, got, write, c.want, c.write)
		}
	}
}

// TestRekeyFound: only a lookup that finds nothing settles.
func TestRekeyFound(t *testing.T) {
	t.Parallel()
	for _, f := range []classify.Finding{classify.FindingUnclear, classify.FindingNone, classify.FindingSame, classify.FindingOther} {
		if got := RekeyFound(f); got != (f == classify.FindingNone) {
			t.Errorf("%d: %t", f, got)
		}
	}
}

// TestNotRekeyed: after a finding the operation is as before its Rekey. The hold of an earlier Rekey ends, unless that had begun the operation, and goes on
// with it.
func TestNotRekeyed(t *testing.T) {
	t.Parallel()
	pending := operation.Op{Phase: operation.Phase{Standing: operation.Open}}
	due := pending
	due.NextAttempt = at.Add(-1)
	begun := heldFor(persist.HoldRekey, at.Add(-1))
	begun.Replaces = true
	promised := begun
	promised.Enqueued = true
	for name, c := range map[string]struct {
		before operation.Op
		want   operation.Op
	}{
		"pending":                      {due, due},
		"held":                         {heldFor(persist.HoldUnclear, at.Add(-1)), heldFor(persist.HoldUnclear, at.Add(-1))},
		"cut off":                      {heldFor(persist.HoldRekey, at.Add(-1)), pending},
		"cut off, while held":          {heldFor(persist.HoldRekeyHeld, at.Add(-1)), heldFor(persist.HoldUnclear, time.Time{})},
		"begun by a Rekey":             {begun, operation.Op{Phase: begun.Phase, Replaces: true}},
		"begun by a Rekey, and let go": {promised, operation.Op{Phase: pending.Phase, Sending: operation.Sending{Enqueued: true}, Replaces: true}},
	} {
		held, _ := HeldToRekey(c.before, at)
		if got := NotRekeyed(held, c.before); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

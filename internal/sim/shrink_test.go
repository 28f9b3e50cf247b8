package sim

import (
	"reflect"
	"testing"
)

// TestPlanOfASeed: a seed gives one plan, and another seed another.
func TestPlanOfASeed(t *testing.T) {
	t.Parallel()
	if a, b := NewPlan(7, 50), NewPlan(7, 50); !reflect.DeepEqual(a, b) {
		t.Errorf("one seed, two plans:\n%v\n%v", a, b)
	}
	if a, b := NewPlan(7, 50), NewPlan(8, 50); reflect.DeepEqual(a.Steps, b.Steps) {
		t.Error("two seeds, the same steps")
	}
}

// TestShrink: what a failure does not need is dropped, and the rest still fails. Here
// one order is enough, since every send breaks the rule.
func TestShrink(t *testing.T) {
	t.Parallel()
	opts := Options{Bug: BugKeyPerAttempt}
	plan := NewPlan(1, 40)
	failed, last := Fails(t, plan, opts, 2)
	if failed != 2 {
		t.Fatalf("%d of 2 runs fail, want both", failed)
	}
	small := Shrink(t, plan, opts, last.Failures[0].Rule, 400)
	if len(small.Steps) != 1 || small.Steps[0].Kind != StepOrder {
		t.Errorf("%d steps are left: %v", len(small.Steps), small)
	}
	if failed, _ := Fails(t, small, opts, 2); failed != 2 {
		t.Error("what is left does not fail")
	}
}

// TestFaultsAreMet: the plans do what they are for. A simulator whose faults never
// come would pass everything.
func TestFaultsAreMet(t *testing.T) {
	t.Parallel()
	var sum Result
	for seed := uint64(1); seed <= 9; seed++ {
		res := Run(t, NewPlan(seed, 60), Options{})
		sum.Operations += res.Operations
		sum.Sends += res.Sends
		sum.Effects += res.Effects
		sum.Calls += res.Calls
		sum.Deaths += res.Deaths
	}
	switch {
	case sum.Effects < sum.Operations/2, sum.Effects > sum.Operations:
		t.Errorf("%d effects of %d operations", sum.Effects, sum.Operations)
	case sum.Sends < sum.Effects*5/4, sum.Calls < sum.Operations*5/4:
		t.Errorf("%d sends and %d calls for %d effects of %d operations: hardly anything goes wrong", sum.Sends, sum.Calls, sum.Effects, sum.Operations)
	case sum.Deaths < 9:
		t.Errorf("processes died %d times in 9 seeds", sum.Deaths)
	}
}

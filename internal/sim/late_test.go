package sim

import "testing"

// TestLateIsSeen: seeds in which the journal writes ends late have what such a journal is about: answers that were told before the
// journal had them, by a process that did not live to record them, and that the same key gave again in another life.
func TestLateIsSeen(t *testing.T) {
	t.Parallel()
	var sum tally
	for seed := uint64(1); sum.total.Early == 0 || sum.total.Cut == 0 || sum.total.Again == 0; seed++ {
		if seed > 200 {
			t.Fatalf("not seen: %v", &sum)
		}
		plan := NewPlan(seed, 100)
		if !plan.Setting.Late {
			continue
		}
		res := Run(t, plan, Options{})
		for _, f := range res.Failures {
			t.Errorf("seed %d: %v", seed, f)
		}
		sum.add(res)
	}
	t.Log(&sum)
}

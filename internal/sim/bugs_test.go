package sim

import (
	"testing"
)

// bugOperations is how many operations may pass until a bug is found.
const bugOperations = 50_000

// TestBugs puts the bugs in one at a time, and wants each found.
func TestBugs(t *testing.T) {
	t.Parallel()
	for _, bug := range Bugs() {
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			done := 0
			for seed := uint64(1); done < bugOperations; seed++ {
				res := Run(t, NewPlan(seed, 100), Options{Bug: bug})
				done += res.Operations
				if len(res.Failures) > 0 {
					t.Logf("%s: found by seed %d after %d operations: %v", bug, seed, done, res.Failures[0])
					return
				}
			}
			t.Errorf("not found in %d operations", done)
		})
	}
}

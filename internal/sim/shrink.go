package sim

import (
	"slices"
	"testing"
)

// Fails runs a plan several times (runs), and returns the number of failing runs, and the last one of them; without any, the last run. A failing run breaks an
// invariant.
func Fails(t *testing.T, plan Plan, opts Options, runs int) (failed int, last Result) {
	for range runs {
		res := Run(t, plan, opts)
		if len(res.Failures) > 0 {
			failed++
		}
		if len(res.Failures) > 0 || failed == 0 {
			last = res
		}
	}
	return failed, last
}

// shrinkRuns is the number of runs of a smaller plan. It must still fail in half
// of them or more.
const shrinkRuns = 4

// Shrink drops steps for as long as the rest still breaks the same invariant in at least half of its runs, and returns the plan that is left. It tries halves of the
// steps first, then ever smaller pieces. It tries no further piece once it has made budget runs.
func Shrink(t *testing.T, plan Plan, opts Options, rule Invariant, budget int) Plan {
	for size := (len(plan.Steps) + 1) / 2; size > 0 && budget > 0; {
		dropped := false
		for from := 0; from < len(plan.Steps) && budget > 0; {
			smaller := plan
			to := min(from+size, len(plan.Steps))
			smaller.Steps = slices.Concat(plan.Steps[:from], plan.Steps[to:])
			budget -= shrinkRuns
			if breaks(t, smaller, opts, rule) {
				plan, dropped = smaller, true
			} else {
				from = to
			}
		}
		if !dropped {
			size /= 2
		} else {
			size = min(size, (len(plan.Steps)+1)/2)
		}
	}
	return plan
}

// breaks reports whether at least half of a few runs of this plan break the rule: runs of one plan may differ.
func breaks(t *testing.T, plan Plan, opts Options, rule Invariant) bool {
	failed := 0
	for range shrinkRuns {
		is := func(f Failure) bool { return f.Rule == rule }
		if slices.ContainsFunc(Run(t, plan, opts).Failures, is) {
			failed++
		}
	}
	return 2*failed >= shrinkRuns
}

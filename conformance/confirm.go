package conformance

import (
	"context"
	"fmt"
	"strconv"
	"sync"
)

// confirm tries each case that failed once again by itself, with new keys: a
// failure that comes and goes is a race, and a race is a defect, but its odds
// matter. What fails only beside other cases, without an effect or an answer
// that proves it, is not decided.
func (r *runner) confirm(ctx context.Context, cases []Case) {
	if r.o.Reruns < 1 || r.o.Repeat > 1 {
		return
	}
	for id, tries := range r.playAgain(ctx, cases) {
		r.settleAll(ctx, tries)
		result := r.found[id]
		failed := countFailed(tries)
		result.Odds = fmt.Sprintf("failed %d/%d", failed+1, len(tries)+1)
		r.failedAlways[id] = failed == len(tries)
		if failed == 0 && len(tries) > 0 && !r.book[id].Alone && !result.proved {
			result.Verdict = VerdictInconclusive
			result.Reason = fmt.Sprintf("it failed beside other cases (%s), and not once in %d times by itself; --parallel 1 runs the cases one by one", result.Actual, len(tries))
			result.Findings = append(result.Findings, Finding{Verdict: VerdictInconclusive, Text: result.Reason})
		}
		r.found[id] = result
	}
}

// playAgain tries each case that failed as often as Options.Reruns says, and gives the trials by
// the case's id. What has failed by waiting is tried again beside the others that have: the
// waits do not add up.
func (r *runner) playAgain(ctx context.Context, cases []Case) map[string][]*trial {
	again := map[string][]*trial{}
	var mu sync.Mutex
	play := func(c *Case, n int) {
		x := r.play(ctx, c, "again"+strconv.Itoa(n), nil)
		if ctx.Err() != nil {
			return // it was cut short, and says nothing
		}
		mu.Lock()
		defer mu.Unlock()
		again[c.ID] = append(again[c.ID], x)
	}
	var waiting sync.WaitGroup
	for i := range cases {
		c := &cases[i]
		result := r.found[c.ID]
		if result.Verdict != VerdictFail || result.Odds != "" {
			continue
		}
		for n := range r.o.Reruns {
			if result.waited && !c.disruptive() {
				waiting.Go(func() { play(c, n) })
				continue
			}
			play(c, n)
		}
	}
	waiting.Wait()
	return again
}

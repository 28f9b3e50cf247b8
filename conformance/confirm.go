package conformance

import (
	"context"
	"fmt"
	"strconv"
	"sync"
)

// confirm tries each failed case again by itself, with new keys, and adds the odds ("failed 2/3") to its result. It does nothing if each case is run
// several times anyway (Options.Repeat), or without Options.Reruns. A failure that comes and goes is a race, and stays a failure. One that never
// comes again becomes inconclusive: other cases may have caused it. That is not so for a case that ran alone (Alone), or if an effect or answer
// proves the failure. settleAll waits for late effects of the tries first. Only one goroutine may be at work on results: confirm takes no lock.
func (r *runner) confirm(ctx context.Context, cases []Case) {
	if r.o.Reruns < 1 || r.o.Repeat > 1 {
		return
	}
	for id, tries := range r.playAgain(ctx, cases) {
		r.settleAll(ctx, tries)
		result, _ := r.progress.result(id)
		failed := countFailed(tries)
		result.Odds = fmt.Sprintf("failed %d/%d", failed+1, len(tries)+1)
		if failed == 0 && len(tries) > 0 && !r.book[id].Alone && !result.proved {
			result.Verdict = VerdictInconclusive
			result.Reason = fmt.Sprintf("it failed beside other cases (%s), and not once in %d times by itself; --parallel 1 runs the cases one by one", result.Actual, len(tries))
			result.Findings = append(result.Findings, Finding{Verdict: VerdictInconclusive, Text: result.Reason})
		}
		r.progress.confirm(result, failed == len(tries))
	}
}

// playAgain tries each failed case Options.Reruns times and returns the ended trials (runs of a case), by case id. A case that was tried several
// times already (it has odds) is left out. Cases that failed after a long wait (result.waited) run beside each other, so that the waits do not add
// up, unless they disturb others. Trials that ctx has cut short are left out.
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
		result, _ := r.progress.result(c.ID)
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

package conformance

import (
	"slices"
	"strings"
	"sync"
)

// progress holds the state of the chosen cases of a run, and their results. It is safe for
// concurrent use after choose.
type progress struct {
	chosen map[string]chosenCase // by id; choose fills it, and nothing changes it afterwards; empty in a search
	done   func(Result)          // Options.Done; nil: no call

	mu           sync.Mutex        // guards the maps below; finish calls done under it
	found        map[string]Result // by id of the case
	failedAlways map[string]bool   // by id: the case failed each time
}

// chosenCase is a case with the signal that it has been tried.
type chosenCase struct {
	Case
	ended chan struct{} // tried closes it
}

// newProgress returns the state of a run without cases: which were chosen, tried and judged. done is called with each result; it may be nil.
func newProgress(done func(Result)) *progress {
	return &progress{chosen: map[string]chosenCase{}, done: done, found: map[string]Result{}, failedAlways: map[string]bool{}}
}

// choose adds the cases of the run, before any of them is tried.
func (p *progress) choose(cases []Case) {
	for _, c := range cases {
		p.chosen[c.ID] = chosenCase{Case: c, ended: make(chan struct{})}
	}
}

// ready reports whether a case can begin: all cases that it depends on have been tried, as far as they were chosen.
func (p *progress) ready(c *Case) bool {
	for _, id := range c.After {
		if before, chosen := p.chosen[id]; chosen {
			select {
			case <-before.ended:
			default:
				return false
			}
		}
	}
	return true
}

// await blocks until all cases on which c depends (c.After) have been tried. It does not wait for cases that are not chosen, nor, unless c runs alone
// itself, for those that run alone, after the others: it would wait for ever. Each case is bounded, so that await ends.
func (p *progress) await(c *Case) {
	for _, id := range c.After {
		before, chosen := p.chosen[id]
		if chosen && (c.Alone || !before.Alone) {
			<-before.ended
		}
	}
}

// dependents returns the number of chosen cases that depend on c.
func (p *progress) dependents(c *Case) int {
	n := 0
	for _, other := range p.chosen {
		n += count(slices.Contains(other.After, c.ID))
	}
	return n
}

// tried records that a chosen case has been tried, and releases the cases that wait for it. failedAlways: it failed each time, so that those are
// skipped. Call it once for each case.
func (p *progress) tried(c *Case, failedAlways bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failedAlways[c.ID] = failedAlways
	close(p.chosen[c.ID].ended)
}

// finish stores the first result of a case, and calls Options.Done with it, one call at a time.
func (p *progress) finish(c Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found[c.ID] = c
	if p.done != nil {
		p.done(c)
	}
}

// confirm replaces the result of a case after it was run again to confirm a failure. It does not call Options.Done, which has heard of the case
// already.
func (p *progress) confirm(c Result, failedAlways bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found[c.ID], p.failedAlways[c.ID] = c, failedAlways
}

// result returns the result of a case; false if it has none yet.
func (p *progress) result(id string) (Result, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, found := p.found[id]
	return c, found
}

// inapplicable returns the reason if a case in c.After has failed each time, or was skipped for such a reason; "" if c may be tried. So a failure
// reaches the cases that build on a skipped one.
func (p *progress) inapplicable(c *Case) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range c.After {
		before, ran := p.found[id]
		switch {
		case p.failedAlways[id]:
			return "not applicable: " + id + " failed"
		case ran && before.Verdict == VerdictSkip && strings.HasPrefix(before.Reason, "not applicable"):
			return before.Reason
		}
	}
	return ""
}

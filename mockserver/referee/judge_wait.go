package referee

import (
	"fmt"
	"slices"
	"time"
)

// The rules about waiting. They judge the time from the end of an answer to the
// arrival of the next send, at the server.

const (
	// earlySlack is the allowance for a client with a fast timer.
	earlySlack = 20 * time.Millisecond
	// jitterSlack is the spread below which waits count as equal.
	jitterSlack = 2 * time.Millisecond
	// shortWait is the bound below which waits are too short to be judged.
	shortWait = 5 * time.Millisecond
	// waitsMin is the least number of waits to be judged for growth or jitter.
	waitsMin = 3
	// growthMin is the least factor by which a later wait exceeds the first.
	growthMin = 1.25
)

// judgeRetryAfter finds sends that came more than earlySlack before the time that the answer before them asked to wait for. A send on another
// connection does not count: nothing shows that its sender had read that answer. nth is the index of the answer's send: the next one is number nth+2,
// from 1.
func judgeRetryAfter(e *evidence) finding {
	f, judged := finding{skip: "no Retry-After was given and followed by a send"}, false
	for _, p := range e.pairs {
		after, hinted := p.before.NotBefore()
		if !hinted || !p.before.Whole {
			continue
		}
		early := after.Sub(p.after.Begun)
		switch {
		case early > earlySlack && !p.after.HasRead(p.before.Send):
			f.skip = "a send came too early, " + unread
			continue
		case early > earlySlack:
			f.violations = append(f.violations, violation{p.op, fmt.Sprintf("send %d came %v too early", p.nth+2, early.Round(time.Millisecond))})
		}
		judged = true
	}
	if judged {
		f.skip = ""
	}
	return f
}

// judgeMinimum returns the finding on the rule that the API's least delay is kept: sends that followed an answer sooner than that, by more than
// earlySlack, the allowance for inexact timers. nth is the index of the answer's send: the next one is number nth+2, from 1.
func judgeMinimum(e *evidence) finding {
	least := e.server.Profile.MinDelay
	if least == 0 {
		return finding{skip: "the profile asks for no least delay"}
	}
	f := finding{skip: "no operation was sent again after an answer"}
	for _, p := range e.pairs {
		f.skip = ""
		if wait := p.after.Begun.Sub(p.before.Ended); wait < least-earlySlack {
			f.violations = append(f.violations, violation{p.op, fmt.Sprintf("send %d came after %v, sooner than %v", p.nth+2, wait.Round(time.Millisecond), least)})
		}
	}
	return f
}

// run is the sequence of waits at the start of an operation, each after a refusal
// without a hint.
type run struct {
	op    *operation
	waits []time.Duration // at least one
}

// runs returns the run of each operation that has one: the waits between its first sends, each after a refusal that did not say how long to wait. A
// run ends before the first answer below 400, with a hint, or overtaken by the next send. The waits are the client's own choice, and so show its
// backoff.
func (e *evidence) runs() []run {
	var all []run
	for _, p := range e.pairs {
		if _, hinted := p.before.NotBefore(); hinted || p.before.Status < 400 {
			continue
		}
		if p.nth == 0 {
			all = append(all, run{op: p.op})
		}
		// no pair before it was left out
		if n := len(all); n > 0 && all[n-1].op == p.op && len(all[n-1].waits) == p.nth {
			all[n-1].waits = append(all[n-1].waits, p.after.Begun.Sub(p.before.Ended))
		}
	}
	return all
}

// judgeGrowth returns the finding on the rule that a client's own waits grow. It asks for one run of waits (those of an operation) with a later one
// clearly longer than the first, by a quarter; a client with one such run has kept the rule, since random waits may shrink here and there. Otherwise
// each run of waitsMin waits or more is a violation.
func judgeGrowth(e *evidence) finding {
	f := finding{skip: "no operation began with three refusals without Retry-After, each waited for"}
	for _, r := range e.runs() {
		if len(r.waits) < waitsMin {
			continue
		}
		f.skip = ""
		first := r.waits[0]
		if longest := slices.Max(r.waits[1:]); float64(longest) > growthMin*float64(first)+float64(jitterSlack) {
			return finding{}
		}
		f.violations = append(f.violations, violation{r.op, fmt.Sprintf("%d waits, the first %v, none longer by a quarter", len(r.waits), first.Round(time.Millisecond))})
	}
	return f
}

// judgeJitter returns the finding on the rule that a client's own waits are random. It compares the first waits of several operations with each
// other, then their second waits, and so on: waits that differ by less than jitterSlack, or 2 %, are not random. The majority of these comparisons
// decides, since a busy machine delays single waits of a client without jitter. Waits under shortWait are not judged.
func judgeJitter(e *evidence) finding {
	f := finding{skip: "no three operations waited after as many refusals without Retry-After"}
	runs, random := e.runs(), 0
	for nth := 0; ; nth++ {
		var waits []time.Duration
		var at *operation
		for _, r := range runs {
			if len(r.waits) > nth {
				waits, at = append(waits, r.waits[nth]), r.op
			}
		}
		if len(waits) < waitsMin {
			break
		}
		shortest, longest := spread(waits)
		switch {
		case longest < shortWait:
			f.skip = "the waits were too short to tell"
		case longest-shortest > max(jitterSlack, longest/50):
			random++
		default:
			f.violations = append(f.violations, violation{at, fmt.Sprintf("wait %d of %d operations lies between %v and %v",
				nth+1, len(waits), shortest.Round(time.Microsecond), longest.Round(time.Microsecond))})
		}
	}
	if random+len(f.violations) > 0 {
		f.skip = ""
	}
	if random >= len(f.violations) {
		f.violations = nil
	}
	return f
}

// spread returns the shortest and the longest of the waits, at least one; of more than waitsMin the longest is left
// out as an outlier. It sorts waits in place.
func spread(waits []time.Duration) (shortest, longest time.Duration) {
	slices.Sort(waits)
	if len(waits) > waitsMin {
		waits = waits[:len(waits)-1]
	}
	return waits[0], waits[len(waits)-1]
}

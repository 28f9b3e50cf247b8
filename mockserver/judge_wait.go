package mockserver

import (
	"fmt"
	"slices"
	"time"
)

// The rules about waiting. They judge what lies between the end of an answer
// and the arrival of the next send, as the server saw it.

const (
	// jitterSlack is the spread below which waits count as equal.
	jitterSlack = 2 * time.Millisecond
	// shortWait is a wait too short to say anything about its shape.
	shortWait = 5 * time.Millisecond
	// waitsMin is how many waits a statement about their shape needs.
	waitsMin = 3
	// growthMin is by how much a wait has to exceed the first to have grown.
	growthMin = 1.25
)

func judgeRetryAfter(c *court) finding {
	f := finding{skip: "no Retry-After was given and followed by a send"}
	for _, p := range c.pairs {
		after, hinted := until(p.before.wait, p.before.ended)
		if !hinted || !p.before.whole {
			continue
		}
		f.skip = ""
		if early := after.Sub(p.after.begun); early > earlySlack {
			f.breaches = append(f.breaches, breach{p.at, fmt.Sprintf("send %d came %v too early", p.nth+2, early.Round(time.Millisecond))})
		}
	}
	return f
}

func judgeMinimum(c *court) finding {
	least := c.cfg.Profile.MinDelay
	if least == 0 {
		return finding{skip: "the profile asks for no least delay"}
	}
	f := finding{skip: "no operation was sent twice"}
	for _, p := range c.pairs {
		f.skip = ""
		if wait := p.after.begun.Sub(p.before.ended); wait < least-earlySlack {
			f.breaches = append(f.breaches, breach{p.at, fmt.Sprintf("send %d came after %v, sooner than %v", p.nth+2, wait.Round(time.Millisecond), least)})
		}
	}
	return f
}

// run is the waits of one operation for which the server gave no hint.
type run struct {
	at    *track
	waits []time.Duration
}

// runs lists the waits after refusals, from each operation's first send on.
func (c *court) runs() []run {
	var all []run
	for _, p := range c.pairs {
		if _, hinted := until(p.before.wait, p.before.ended); hinted || p.before.status < 400 {
			continue
		}
		if p.nth == 0 {
			all = append(all, run{at: p.at})
		}
		if n := len(all); n > 0 && all[n-1].at == p.at && len(all[n-1].waits) == p.nth {
			all[n-1].waits = append(all[n-1].waits, p.after.begun.Sub(p.before.ended))
		}
	}
	return all
}

// judgeGrowth wants one operation in which a later wait is clearly longer than
// the first: random waits may shrink here and there.
func judgeGrowth(c *court) finding {
	f := finding{skip: "no operation had three waits without a hint"}
	for _, r := range c.runs() {
		if len(r.waits) < waitsMin {
			continue
		}
		f.skip = ""
		first := r.waits[0]
		if longest := slices.Max(r.waits[1:]); float64(longest) > growthMin*float64(first)+float64(jitterSlack) {
			return finding{}
		}
		f.breaches = append(f.breaches, breach{r.at, fmt.Sprintf("%d waits, the first %v, none longer by a quarter", len(r.waits), first.Round(time.Millisecond))})
	}
	return f
}

// judgeJitter compares the first waits of several operations, the second ones,
// and so on: equal ones are not random.
func judgeJitter(c *court) finding {
	f := finding{skip: "no three operations waited without a hint"}
	runs := c.runs()
	for nth := 0; ; nth++ {
		var waits []time.Duration
		var at *track
		for _, r := range runs {
			if len(r.waits) > nth {
				waits, at = append(waits, r.waits[nth]), r.at
			}
		}
		if len(waits) < waitsMin {
			return f
		}
		least, most := slices.Min(waits), slices.Max(waits)
		if most < shortWait {
			continue
		}
		f.skip = ""
		if most-least > max(jitterSlack, most/50) {
			return finding{}
		}
		f.breaches = append(f.breaches, breach{at, fmt.Sprintf("wait %d of %d operations lies between %v and %v", nth+1, len(waits), least.Round(time.Microsecond), most.Round(time.Microsecond))})
	}
}

package referee

import (
	"fmt"
	"slices"
	"time"
)

// The rules about waiting. They judge what lies between the end of an answer
// and the arrival of the next send, as the server saw it.

const (
	// earlySlack forgives a client whose timer is a little fast.
	earlySlack = 20 * time.Millisecond
	// jitterSlack is the spread below which waits count as equal.
	jitterSlack = 2 * time.Millisecond
	// shortWait is a wait too short to say anything about its shape.
	shortWait = 5 * time.Millisecond
	// waitsMin is how many waits a statement about their shape needs.
	waitsMin = 3
	// growthMin is by how much a wait has to exceed the first to have grown.
	growthMin = 1.25
)

// judgeRetryAfter finds sends that came before the Retry-After of the answer
// before them allowed it.
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

// judgeMinimum finds sends that came sooner after an answer than the profile's
// MinDelay.
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

// run is the waits of one operation for which the server gave no hint.
type run struct {
	op    *operation
	waits []time.Duration
}

// runs lists the waits after refusals, from each operation's first send on.
func (e *evidence) runs() []run {
	var all []run
	for _, p := range e.pairs {
		if _, hinted := p.before.NotBefore(); hinted || p.before.Status < 400 {
			continue
		}
		if p.nth == 0 {
			all = append(all, run{op: p.op})
		}
		if n := len(all); n > 0 && all[n-1].op == p.op && len(all[n-1].waits) == p.nth {
			all[n-1].waits = append(all[n-1].waits, p.after.Begun.Sub(p.before.Ended))
		}
	}
	return all
}

// judgeGrowth wants one operation in which a later wait is clearly longer than
// the first: random waits may shrink here and there.
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

// judgeJitter compares the first waits of several operations, the second ones,
// and so on: equal ones are not random. Most places decide, since a machine that
// is busy delays a few waits of a client that has no jitter.
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
		least, most := spread(waits)
		switch {
		case most < shortWait:
			f.skip = "the waits were too short to tell"
		case most-least > max(jitterSlack, most/50):
			random++
		default:
			f.violations = append(f.violations, violation{at, fmt.Sprintf("wait %d of %d operations lies between %v and %v",
				nth+1, len(waits), least.Round(time.Microsecond), most.Round(time.Microsecond))})
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

// spread is the least and the most of some waits, the longest one left out where
// there are enough.
func spread(waits []time.Duration) (least, most time.Duration) {
	slices.Sort(waits)
	if len(waits) > waitsMin {
		waits = waits[:len(waits)-1]
	}
	return waits[0], waits[len(waits)-1]
}

package conformance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// schedule runs the chosen cases: first those on which others depend, one at a
// time; then most of them beside each other; then those that have to be alone,
// and at last those that stop the target or make it forget.
func (r *runner) schedule(ctx context.Context, chosen []Case) {
	for _, c := range chosen {
		r.ended[c.ID] = make(chan struct{})
	}
	required, others, alone, disruptive := r.phases(chosen)
	early, others := parted(others, func(c Case) bool { return c.early })
	for _, c := range early {
		r.trials.Go(func() { r.performEarly(ctx, &c) })
	}
	r.serial(ctx, required, false)
	r.beside(ctx, others)
	r.trials.Wait()
	r.confirm(ctx, slices.Concat(required, early, others))
	r.serial(ctx, alone, false)
	r.trials.Wait()
	r.serial(ctx, disruptive, true)
	r.trials.Wait()
	r.confirm(ctx, slices.Concat(alone, disruptive))
}

// phases parts the cases by when they are run: required are those on which others
// depend, alone those with nothing beside them, disruptive see there.
func (r *runner) phases(chosen []Case) (required, others, alone, disruptive []Case) {
	needed := map[string]bool{}
	for _, c := range chosen {
		for _, id := range c.After {
			needed[id] = needed[id] || !c.Alone
		}
	}
	for _, c := range chosen {
		switch {
		case c.disruptive():
			disruptive = append(disruptive, c)
		case c.Alone:
			alone = append(alone, c)
		case needed[c.ID]:
			required = append(required, c)
		default:
			others = append(others, c)
		}
	}
	return required, others, alone, disruptive
}

// disruptive reports whether a case stops the target, or makes it forget what other
// cases rely on.
func (c *Case) disruptive() bool {
	return c.Alone && slices.ContainsFunc(c.Needs, func(n Need) bool { return n == NeedRestart || n == NeedOutage || n == NeedExpiry })
}

// slot is what a case holds while it may disturb others. It is given back when
// the case ends, or waits for so long that the others go on without it.
type slot struct {
	give   func() // gives it back; only the first call counts
	sticky bool   // it is never given back before the end
}

// serial runs cases one at a time, in order. One that waits for long lets the
// next begin, and those that depend on it wait for it.
func (r *runner) serial(ctx context.Context, cases []Case, sticky bool) {
	one := make(chan struct{}, 1)
	var all sync.WaitGroup
	for _, c := range cases {
		left := make(chan struct{})
		all.Go(func() { <-left })
		r.launch(ctx, c, one, func() { close(left) }, sticky, !c.Alone)
		if r.ready(&c) { // else it waits for a case that gave its slot back: begin the next
			<-left
		}
	}
	all.Wait()
}

// beside runs cases at the same time, as many as Options.Parallel says.
func (r *runner) beside(ctx context.Context, cases []Case) {
	slots := make(chan struct{}, r.o.Parallel)
	var all sync.WaitGroup
	for _, c := range cases {
		left := make(chan struct{})
		all.Go(func() { <-left })
		r.launch(ctx, c, slots, func() { close(left) }, false, false)
	}
	all.Wait()
}

// launch starts a goroutine that tries a case once it has a slot, and calls left when
// the case gives the slot back. It does not wait.
func (r *runner) launch(ctx context.Context, c Case, slots chan struct{}, left func(), sticky, required bool) {
	r.trials.Go(func() {
		r.await(&c)
		slots <- struct{}{}
		s := &slot{sticky: sticky, give: sync.OnceFunc(func() {
			<-slots
			left()
		})}
		defer s.give()
		r.perform(ctx, &c, s, required)
	})
}

// ready reports whether every case on which this one depends has been tried.
func (r *runner) ready(c *Case) bool {
	for _, id := range c.After {
		if ended, chosen := r.ended[id]; chosen {
			select {
			case <-ended:
			default:
				return false
			}
		}
	}
	return true
}

// await waits for the cases on which this one depends; each of them ends, since
// each is bounded. What runs later than this one is not waited for.
func (r *runner) await(c *Case) {
	for _, id := range c.After {
		if r.book[id].Alone && !c.Alone {
			continue
		}
		if ended, chosen := r.ended[id]; chosen {
			<-ended
		}
	}
}

// perform tries a case as often as it is asked for, decides whether others can
// build on it, and gives the worst result once late effects have had their time.
// required: other cases depend on it. If it fails it is tried again at once, since
// those are skipped only if it fails each time.
func (r *runner) perform(ctx context.Context, c *Case, s *slot, required bool) {
	if why := r.unfit(c); why != "" {
		r.tried(c, false)
		r.finish(r.skipped(c, why))
		return
	}
	x, slow := r.first(ctx, c, s)
	tries := append([]*trial{x}, slow...)
	for i := 1; i < r.o.Repeat; i++ {
		tries = append(tries, r.play(ctx, c, strconv.Itoa(i), s))
	}
	if required && x.failed() && len(tries) == 1 && r.o.Repeat < 2 {
		for n := range r.o.Reruns {
			tries = append(tries, r.play(ctx, c, "again"+strconv.Itoa(n), s))
		}
	}
	first := required && r.manyDependOn(c)
	if first {
		r.settleAll(ctx, tries)
	}
	r.tried(c, countFailed(tries) == len(tries))
	if !s.sticky {
		s.give()
	}
	if !first {
		r.settleAll(ctx, tries)
	}
	result := worstResult(tries)
	if failed := countFailed(tries); failed > 0 && len(tries) > 1 {
		result.Odds = fmt.Sprintf("failed %d/%d", failed, len(tries))
	}
	r.finish(result)
}

// performEarly tries a case before those that it depends on are known to have
// passed: it counts only if they have.
func (r *runner) performEarly(ctx context.Context, c *Case) {
	if why := r.unfit(c); why != "" {
		r.tried(c, false)
		r.finish(r.skipped(c, why))
		return
	}
	x, again := r.newTrial(c, "0", nil), r.newTrial(c, "again0", nil)
	var both sync.WaitGroup
	for _, x := range []*trial{x, again} {
		both.Go(func() { r.act(ctx, x) })
	}
	both.Wait()
	r.await(c)
	if why := r.unfit(c); why != "" {
		r.tried(c, false)
		r.finish(r.skipped(c, why))
		return
	}
	tries := []*trial{x, again}
	failed := countFailed(tries)
	r.tried(c, failed == len(tries))
	r.settleAll(ctx, tries)
	result := worstResult(tries)
	if failed = countFailed(tries); failed > 0 {
		result.Odds = fmt.Sprintf("failed %d/%d", failed, len(tries))
	}
	r.finish(result)
}

// parted splits a list in two, the first of those that hold.
func parted(list []Case, holds func(Case) bool) (yes, no []Case) {
	for _, c := range list {
		if holds(c) {
			yes = append(yes, c)
		} else {
			no = append(no, c)
		}
	}
	return yes, no
}

// dependentsMin is from how many cases that depend on one its late effects are waited
// for before those begin.
const dependentsMin = 8

// manyDependOn reports whether so many cases depend on this one that a report would
// drown in failures which all say the same.
func (r *runner) manyDependOn(c *Case) bool {
	n := 0
	for id := range r.ended {
		n += count(slices.Contains(r.book[id].After, c.ID))
	}
	return n >= dependentsMin || c.ID == "replay/first-executes-once"
}

// first tries a case. Where it waits for so long that it gives its slot back,
// its repeats begin at once and wait beside it; they count only if it fails.
func (r *runner) first(ctx context.Context, c *Case, s *slot) (*trial, []*trial) {
	beside, cancel := context.WithCancel(ctx)
	defer cancel()
	extra := make([]*trial, max(r.o.Reruns, 0))
	var waiting sync.WaitGroup
	x := r.newTrial(c, "0", s)
	x.onAside = func() {
		for n := range extra {
			if r.o.Repeat < 2 {
				waiting.Go(func() { extra[n] = r.play(beside, c, "again"+strconv.Itoa(n), nil) })
			}
		}
	}
	r.act(ctx, x)
	if !x.failed() {
		cancel()
		waiting.Wait()
		return x, nil
	}
	waiting.Wait()
	return x, slices.DeleteFunc(extra, func(x *trial) bool { return x == nil })
}

func (r *runner) newTrial(c *Case, salt string, s *slot) *trial {
	return &trial{r: r, names: names{owner: &r.owners}, c: c, salt: salt, slot: s, witness: WitnessNone, sent: evidence{kept: []Exchange{}}}
}

// play runs a case once, with keys of its own.
func (r *runner) play(ctx context.Context, c *Case, salt string, s *slot) *trial {
	x := r.newTrial(c, salt, s)
	r.act(ctx, x)
	return x
}

// act is the trial itself, within its bound.
func (r *runner) act(ctx context.Context, x *trial) {
	ctx, cancel := context.WithTimeoutCause(ctx, x.c.Limit(r.o), errCaseTime)
	defer cancel()
	x.start(ctx)
	defer x.end()
	if why := r.unfounded(x.c); why != "" {
		x.inconclusive("%s", why)
		return
	}
	x.c.run(x)
}

// tried records that a case has been tried, and whether it failed each time: then
// cases which depend on it are skipped.
func (r *runner) tried(c *Case, failedAlways bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failedAlways[c.ID] = failedAlways
	close(r.ended[c.ID])
}

// finish records the result of a case, and tells Options.Done.
func (r *runner) finish(c Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[c.ID] = c
	if r.o.Done != nil {
		r.o.Done(c)
	}
}

// unfit says why a case cannot be tried here, or "".
func (r *runner) unfit(c *Case) string {
	for _, need := range c.Needs {
		if why := r.missing(need); why != "" {
			return why
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range c.After {
		before, ran := r.found[id]
		switch {
		case r.failedAlways[id]:
			return "not applicable: " + id + " failed"
		case ran && before.Verdict == VerdictSkip && strings.HasPrefix(before.Reason, "not applicable"):
			return before.Reason
		}
	}
	return ""
}

// skipped returns the result of a case that was not tried, with the reason.
func (r *runner) skipped(c *Case, why string) Result {
	return Result{
		ID: c.ID, Level: c.Level, Verdict: VerdictSkip, Witness: WitnessNone, Rule: c.Rule,
		Impact: c.Impact, Fix: c.Fix, Spec: c.Spec, Reason: why, Exchanges: []Exchange{},
	}
}

// countFailed counts the trials that failed.
func countFailed(tries []*trial) int {
	n := 0
	for _, x := range tries {
		if x.failed() {
			n++
		}
	}
	return n
}

// worstResult is the result of the trial that found the worst.
func worstResult(tries []*trial) Result {
	result := tries[0].result()
	for _, x := range tries[1:] {
		if next := x.result(); next.Verdict.severity() > result.Verdict.severity() {
			result = next
		}
	}
	return result
}

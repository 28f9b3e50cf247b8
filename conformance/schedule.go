package conformance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// schedule runs the chosen cases until each has its result in r.progress. Cases that others depend on run first, one at a time; most run beside each
// other; then those that must be alone; at last those that stop the target or make it forget. Cases with long waits that disturb no other (early) run
// beside the first two of these groups. Failures are tried again by themselves between the groups.
func (r *runner) schedule(ctx context.Context, chosen []Case) {
	r.progress.choose(chosen)
	required, others, alone, disruptive := r.phases(chosen)
	early, others := parted(others, func(c Case) bool { return c.early })
	for _, c := range early {
		r.trials.Go(func() { r.performEarly(ctx, &c) })
	}
	r.serial(ctx, required, false) // false: a case that waits for long lets the next one begin
	r.beside(ctx, others)
	r.trials.Wait()
	r.confirm(ctx, slices.Concat(required, early, others))
	r.serial(ctx, alone, false)
	r.trials.Wait()
	r.serial(ctx, disruptive, true) // true: one ends before the next begins
	r.trials.Wait()
	r.confirm(ctx, slices.Concat(alone, disruptive))
}

// phases splits the cases by their phase, in the order of the book: cases that others depend on, cases without a condition, cases that must be alone,
// and disruptive ones. A case on which only those of the third group depend need not come first.
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

// disruptive reports whether the case stops the target, or makes it forget keys that other cases rely on. A case that may run beside others does
// neither, whatever it needs.
func (c *Case) disruptive() bool {
	return c.Alone && slices.ContainsFunc(c.Needs, func(n Need) bool { return n == NeedRestart || n == NeedOutage || n == NeedExpiry })
}

// slot is the permission of a case to disturb others. The case gives it back at its end, or
// earlier if it waits for long.
type slot struct {
	give   func() // gives it back; later calls do nothing
	sticky bool   // stepAside does not give it back
}

// serial runs cases one at a time, in order. A case that waits for long, or for late effects only, gives back its slot (the permission to send beside
// others), and the next one begins; with sticky it keeps the slot to its end. A case that has to wait for one of those does not hold the others up.
// r.trials counts those still at work.
func (r *runner) serial(ctx context.Context, cases []Case, sticky bool) {
	one := make(chan struct{}, 1)
	var all sync.WaitGroup
	for _, c := range cases {
		left := make(chan struct{})
		all.Go(func() { <-left })
		r.launch(ctx, c, one, func() { close(left) }, sticky, !c.Alone)
		if r.progress.ready(&c) { // else it waits for a case that gave its slot back: begin the next
			<-left
		}
	}
	all.Wait()
}

// beside runs cases at the same time, Options.Parallel at most. It returns when each has ended, or only waits for late effects
// and disturbs no other case any more. r.trials counts those still at work.
func (r *runner) beside(ctx context.Context, cases []Case) {
	slots := make(chan struct{}, r.o.Parallel)
	var all sync.WaitGroup
	for _, c := range cases {
		left := make(chan struct{})
		all.Go(func() { <-left })
		r.launch(ctx, c, slots, func() { close(left) }, false, false) // it gives its slot back in waits, and a failure is confirmed later
	}
	all.Wait()
}

// launch starts a goroutine that waits for the cases in c.After, takes a slot (the permission to disturb others), and runs the case. It calls left
// once, when the slot is given back; with sticky that is at the case's end. required: other cases depend on this one (see perform). launch does not
// block; r.trials counts the goroutine.
func (r *runner) launch(ctx context.Context, c Case, slots chan struct{}, left func(), sticky, required bool) {
	r.trials.Go(func() {
		r.progress.await(&c)
		slots <- struct{}{}
		s := &slot{sticky: sticky, give: sync.OnceFunc(func() {
			<-slots
			left()
		})}
		defer s.give()
		r.perform(ctx, &c, s, required)
	})
}

// perform runs a case, and stores its worst result. Before the wait for late effects it gives back s, the permission to disturb other cases.
// required: other cases depend on this one. After a failure it runs again at once, since they are skipped only if it fails each time; if the case
// waited for long, first has made these repeats already (slow). tried lets the dependents begin, and tells whether each try failed.
func (r *runner) perform(ctx context.Context, c *Case, s *slot, required bool) {
	if why := r.unfit(c); why != "" {
		r.progress.tried(c, false)
		r.progress.finish(r.skipped(c, why))
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
	settledFirst := required && r.manyDependOn(c) // before its dependents begin
	if settledFirst {
		r.settleAll(ctx, tries)
	}
	r.progress.tried(c, countFailed(tries) == len(tries))
	if !s.sticky {
		s.give()
	}
	if !settledFirst {
		r.settleAll(ctx, tries)
	}
	result := worstResult(tries)
	if failed := countFailed(tries); failed > 0 && len(tries) > 1 {
		result.Odds = fmt.Sprintf("failed %d/%d", failed, len(tries))
	}
	r.progress.finish(result)
}

// performEarly runs a case with long waits twice, before the cases that it depends on (c.After) have ended: the whole run takes less time. If one of
// those fails then, the case counts as skipped. Otherwise the worse of the two results counts. Its trials hold no slot: they disturb nobody.
func (r *runner) performEarly(ctx context.Context, c *Case) {
	if why := r.unfit(c); why != "" {
		r.progress.tried(c, false)
		r.progress.finish(r.skipped(c, why))
		return
	}
	x, again := r.newTrial(c, "0", nil), r.newTrial(c, "again0", nil)
	var both sync.WaitGroup
	for _, x := range []*trial{x, again} {
		both.Go(func() { r.act(ctx, x) })
	}
	both.Wait()
	r.progress.await(c)
	if why := r.unfit(c); why != "" {
		r.progress.tried(c, false)
		r.progress.finish(r.skipped(c, why))
		return
	}
	tries := []*trial{x, again}
	failed := countFailed(tries)
	r.progress.tried(c, failed == len(tries))
	r.settleAll(ctx, tries)
	result := worstResult(tries)
	if failed = countFailed(tries); failed > 0 {
		result.Odds = fmt.Sprintf("failed %d/%d", failed, len(tries))
	}
	r.progress.finish(result)
}

// parted splits a list of cases by a condition. Both parts keep the order of the list.
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

// dependentsMin is a number of dependents. From it on, late effects of a case are awaited
// before its dependents begin.
const dependentsMin = 8

// manyDependOn reports whether many other cases build on this one (dependentsMin at least): its late effects are then waited for before they begin,
// since its failure would show in all of them. The case on which the first counts rest is always one.
func (r *runner) manyDependOn(c *Case) bool {
	return r.progress.dependents(c) >= dependentsMin || c.ID == "replay/first-executes-once"
}

// first runs a case once and returns that trial. When the case gives its slot (the permission to disturb others) back before a long wait, its repeats
// begin beside it, so that the waits do not add up. The repeats are returned if the case fails, and cancelled otherwise; with Options.Repeat the
// caller makes its own. All have ended when first returns.
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

// newTrial returns a trial (one run of one case) of c that has sent nothing. salt tells its keys from those of other trials of the same case. s is
// its permission to run beside others; nil means that it has none to give back during long waits.
func (r *runner) newTrial(c *Case, salt string, s *slot) *trial {
	return &trial{r: r, names: names{owner: &r.owners}, c: c, salt: salt, slot: s, witness: WitnessNone, sent: evidence{kept: []Exchange{}}}
}

// play runs a case once, to its end, and returns the trial. salt and s are those of newTrial.
func (r *runner) play(ctx context.Context, c *Case, salt string, s *slot) *trial {
	x := r.newTrial(c, salt, s)
	r.act(ctx, x)
	return x
}

// act runs the case of a trial (one run of one case) within its time limit. The trial has ended when act returns. A case whose evidence is missing,
// such as a delay that has no effect (unfounded), is inconclusive.
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

// unfit returns the reason for skipping a case: a need that the target lacks, or a failed case in c.After. "" means that it can be tried. A failed
// case may have finished since the last call.
func (r *runner) unfit(c *Case) string {
	for _, need := range c.Needs {
		if why := r.missing(need); why != "" {
			return why
		}
	}
	return r.progress.inapplicable(c)
}

// skipped returns the result of a case that is not tried; why goes into the report.
func (r *runner) skipped(c *Case, why string) Result {
	return Result{
		ID: c.ID, Level: c.Level, Verdict: VerdictSkip, Witness: WitnessNone, Rule: c.Rule,
		Impact: c.Impact, Fix: c.Fix, Spec: c.Spec, Reason: why, Exchanges: []Exchange{},
	}
}

// countFailed returns the number of trials with verdict fail.
func countFailed(tries []*trial) int {
	n := 0
	for _, x := range tries {
		if x.failed() {
			n++
		}
	}
	return n
}

// worstResult returns the result of the worst trial, the first of equals. tries must not be
// empty, and all must have ended.
func worstResult(tries []*trial) Result {
	result := tries[0].result()
	for _, x := range tries[1:] {
		if next := x.result(); next.Verdict.severity() > result.Verdict.severity() {
			result = next
		}
	}
	return result
}

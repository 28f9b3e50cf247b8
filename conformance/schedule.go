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
	gates, others, alone, rough := r.phases(chosen)
	early, others := parted(others, func(c Case) bool { return c.early })
	for _, c := range early {
		r.trials.Go(func() { r.performEarly(ctx, &c) })
	}
	r.serial(ctx, gates, false)
	r.beside(ctx, others)
	r.trials.Wait()
	r.confirm(ctx, slices.Concat(gates, early, others))
	r.serial(ctx, alone, false)
	r.trials.Wait()
	r.serial(ctx, rough, true)
	r.trials.Wait()
	r.confirm(ctx, slices.Concat(alone, rough))
}

// phases parts the cases by when they are run.
func (r *runner) phases(chosen []Case) (gates, others, alone, rough []Case) {
	needed := map[string]bool{}
	for _, c := range chosen {
		for _, id := range c.After {
			needed[id] = needed[id] || !c.Alone
		}
	}
	for _, c := range chosen {
		switch {
		case c.rough():
			rough = append(rough, c)
		case c.Alone:
			alone = append(alone, c)
		case needed[c.ID]:
			gates = append(gates, c)
		default:
			others = append(others, c)
		}
	}
	return gates, others, alone, rough
}

// rough reports whether a case stops the target, or makes it forget what other
// cases rely on.
func (c *Case) rough() bool {
	return c.Alone && slices.ContainsFunc(c.Needs, func(n Need) bool { return n == NeedRestart || n == NeedOutage || n == NeedExpiry })
}

// seat is what a case holds while it may disturb others. It is given back when
// the case ends, or waits for so long that the others go on without it.
type seat struct {
	give   func()
	sticky bool // it is never given back before the end
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
		if r.ready(&c) {
			<-left
		}
	}
	all.Wait()
}

// beside runs cases at the same time, as many as Options.Parallel says.
func (r *runner) beside(ctx context.Context, cases []Case) {
	seats := make(chan struct{}, r.o.Parallel)
	var all sync.WaitGroup
	for _, c := range cases {
		left := make(chan struct{})
		all.Go(func() { <-left })
		r.launch(ctx, c, seats, func() { close(left) }, false, false)
	}
	all.Wait()
}

// launch plays a case once it has a seat. left is called when it gives it back.
func (r *runner) launch(ctx context.Context, c Case, seats chan struct{}, left func(), sticky, gate bool) {
	r.trials.Go(func() {
		r.await(&c)
		seats <- struct{}{}
		s := &seat{sticky: sticky, give: sync.OnceFunc(func() {
			<-seats
			left()
		})}
		defer s.give()
		r.perform(ctx, &c, s, gate)
	})
}

// ready reports whether every case on which this one depends has been played.
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
		if before, _ := Find(id); before.Alone && !c.Alone {
			continue
		}
		if ended, chosen := r.ended[id]; chosen {
			<-ended
		}
	}
}

// perform plays a case as often as it is asked for, decides whether others can
// build on it, and gives the worst result once late effects have had their time.
// A gate that failed is tried again at once: one that fails only now and then
// keeps nobody out.
func (r *runner) perform(ctx context.Context, c *Case, s *seat, gate bool) {
	if why := r.unfit(c); why != "" {
		r.played(c, false)
		r.finish(r.skipped(c, why))
		return
	}
	x, slow := r.first(ctx, c, s)
	tries := append([]*trial{x}, slow...)
	for i := 1; i < r.o.Repeat; i++ {
		tries = append(tries, r.play(ctx, c, strconv.Itoa(i), s))
	}
	if gate && x.failed() && len(tries) == 1 && r.o.Repeat < 2 {
		for n := range r.o.Reruns {
			tries = append(tries, r.play(ctx, c, "again"+strconv.Itoa(n), s))
		}
	}
	first := gate && r.founds(c)
	if first {
		r.settleAll(ctx, tries)
	}
	r.played(c, countFailed(tries) == len(tries))
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

// performEarly plays a case before those that it depends on are known to have
// passed: it counts only if they have.
func (r *runner) performEarly(ctx context.Context, c *Case) {
	if why := r.unfit(c); why != "" {
		r.played(c, false)
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
		r.played(c, false)
		r.finish(r.skipped(c, why))
		return
	}
	tries := []*trial{x, again}
	failed := countFailed(tries)
	r.played(c, failed == len(tries))
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

// foundations is how many cases have to depend on one for its late effects to be
// waited for before they begin.
const foundations = 8

// founds reports whether so many cases depend on this one that a report would
// drown in failures which all say the same.
func (r *runner) founds(c *Case) bool {
	n := 0
	for id := range r.ended {
		other, _ := Find(id)
		n += count(slices.Contains(other.After, c.ID))
	}
	return n >= foundations || c.ID == "replay/first-executes-once"
}

// first plays a case. Where it waits for so long that it gives its seat back,
// its repeats begin at once and wait beside it; they count only if it fails.
func (r *runner) first(ctx context.Context, c *Case, s *seat) (*trial, []*trial) {
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

func (r *runner) newTrial(c *Case, salt string, s *seat) *trial {
	return &trial{r: r, names: names{owner: &r.owners}, c: c, salt: salt, seat: s, witness: WitnessNone, sent: evidence{kept: []Exchange{}}}
}

// play runs a case once, with keys of its own.
func (r *runner) play(ctx context.Context, c *Case, salt string, s *seat) *trial {
	x := r.newTrial(c, salt, s)
	r.act(ctx, x)
	return x
}

// act is the trial itself, within its bound.
func (r *runner) act(ctx context.Context, x *trial) {
	limit := 3*r.o.Settle + 4*r.o.AnswerTimeout + 2*r.o.Window
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errCaseTime)
	defer cancel()
	x.start(ctx)
	defer x.end()
	if why := r.unfounded(x.c); why != "" {
		x.vague("%s", why)
		return
	}
	x.c.run(x)
}

// played records that a case has been tried. stands: it failed each time, so
// that cases which depend on it are skipped.
func (r *runner) played(c *Case, stands bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stands[c.ID] = stands
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
		case r.stands[id]:
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

// confirm tries each case that failed once again by itself, with new keys: a
// failure that comes and goes is a race, and a race is a defect, but its odds
// matter. What fails only beside other cases, without an effect or an answer
// that proves it, is not decided.
func (r *runner) confirm(ctx context.Context, cases []Case) {
	if r.o.Reruns < 1 || r.o.Repeat > 1 {
		return
	}
	again := map[string][]*trial{}
	for i := range cases {
		c := &cases[i]
		if result := r.found[c.ID]; result.Verdict != VerdictFail || result.Odds != "" {
			continue
		}
		for n := range r.o.Reruns {
			if x := r.play(ctx, c, "again"+strconv.Itoa(n), nil); ctx.Err() == nil {
				again[c.ID] = append(again[c.ID], x)
			}
		}
	}
	for id, tries := range again {
		r.settleAll(ctx, tries)
		result := r.found[id]
		failed := countFailed(tries)
		result.Odds = fmt.Sprintf("failed %d/%d", failed+1, len(tries)+1)
		r.stands[id] = failed == len(tries)
		if c, _ := Find(id); failed == 0 && len(tries) > 0 && !c.Alone && !result.proved {
			result.Verdict = VerdictInconclusive
			result.Reason = fmt.Sprintf("it failed beside other cases (%s), and not once in %d times by itself; --parallel 1 runs the cases one by one", result.Actual, len(tries))
			result.Findings = append(result.Findings, Finding{Verdict: VerdictInconclusive, Text: result.Reason})
		}
		r.found[id] = result
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

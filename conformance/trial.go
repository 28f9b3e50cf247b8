package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// trial is one run of one case: the requests it has sent, and its findings. newTrial makes it,
// start must come before the first request, and end after the last.
//
// Sending methods (do, launch, dial, record) may run in several goroutines. Checks (want,
// judge, seen, skip, inconclusive), newOperation and the fields without a lock belong to the
// goroutine of the case.
type trial struct {
	ctx     context.Context
	r       *runner
	c       *Case
	salt    string        // a part of every key, different for each run of the same case
	begun   time.Time     // set by start
	took    time.Duration // set by end
	cut     string        // the reason if the context ended before the case; "": it ran to its end
	made    int           // operations so far; the number is a part of the next key
	calm    bool          // refused connections are no failure: the target is being restarted
	slot    *slot         // nil: this run holds none
	onAside func()        // called once by stepAside, after the slot was given back; may be nil

	mu      sync.Mutex    // guards the fields down to limited
	sent    evidence      // the exchanges kept for the report
	names   names         // ids and Locations in answers
	latest  time.Time     // end of the last exchange; zero: none has ended
	broke   error         // the first failure of the transport; nothing is sent after it
	spent   error         // the budget of requests or effects is used up, and this part of the case was not sent; nil: it is not
	parked  []*link       // answered connections, still open; end closes them
	limited time.Duration // the longest wait that a rate limit asked for since takeLimit

	findings         []Finding
	expected, actual string // of the worst miss
	worstMiss        miss   // the heaviest failed check; its verdict is "" if every check held
	reason           string // for a verdict without a check: the text of the worst such finding
	notes            []note // counts of effects, for the report
	claims           []claim
	witness          Witness // the one that counted last; mu guards its writes in effects
	proved           bool    // an effect or an answer shows the failure, and not only an absence: it stays one, even if no later run fails
	waited           bool    // the case waited longer than patience for a key to resolve
}

// start sets the trial's context and its start time. Each start needs one call of end.
func (x *trial) start(ctx context.Context) { x.ctx, x.begun = ctx, time.Now() }

// end ends the trial, one run of one case: it closes the connections that were kept open, and notes the duration and, in cut, why its time ended
// early ("": it did not). The trial sends nothing afterwards.
func (x *trial) end() {
	x.took = time.Since(x.begun)
	if deadline, ok := x.ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-x.ctx.Done() // a connection has the same deadline, and may see it a moment before the context does
	}
	if x.ctx.Err() != nil {
		x.cut = x.r.why(x.ctx)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.parked {
		l.close()
	}
	x.parked = nil
}

// stepAside lets other cases run during a long wait of this one: it gives back the slot, the right to run as one of a bounded number of cases, and
// calls onAside, which begins the repeats of this case, if it is set. It does nothing for a case that must run alone, or keeps its slot to the end. A
// second call has no effect.
func (x *trial) stepAside() {
	if x.slot == nil || x.slot.sticky || x.c.Alone {
		return
	}
	x.slot.give()
	if begin := x.onAside; begin != nil {
		x.onAside = nil
		begin()
	}
}

// miss is a failed check: its verdict, and the level, impact and fix that follow from it.
type miss struct {
	verdict Verdict
	consequence
}

// want is a check with the weight of the case's level: a failure, a warning for LevelShould, a
// mere observation for LevelObserve. expected is a noun phrase for the report. format and args
// say the actual state, for both results. It returns ok.
func (x *trial) want(ok bool, expected, format string, args ...any) bool {
	return x.judge(ownHarm, ok, missed(x.c.Level), expected, format, args...)
}

// must checks one expectation of the case. If ok is false, the case fails at any level of the rule. expected is a noun phrase for the report; format
// and args say what was seen. It returns ok.
func (x *trial) must(ok bool, expected, format string, args ...any) bool {
	return x.judge(ownHarm, ok, VerdictFail, expected, format, args...)
}

// should checks one expectation of the case. If ok is false, the report has a warning at any level of the rule. expected is a noun phrase for the
// report; format and args say what was seen. It returns ok.
func (x *trial) should(ok bool, expected, format string, args ...any) bool {
	return x.judge(ownHarm, ok, VerdictWarn, expected, format, args...)
}

// noServerError checks that the status of a is below 500. It holds for a request without an answer, too: its status is 0. expected, format and args
// are the text of the report. It returns the result of the check.
func (x *trial) noServerError(a *answer, expected, format string, args ...any) bool {
	return x.judge(errored, a.status < 500, VerdictFail, expected, format, args...)
}

// wantOrHarm is a check: if ok is false, harm h (the damage to a customer) has happened. A missed check of a safety harm always fails the case and
// counts as proved; others fail by the case's level, with a failure in place of a mere observation. expected is a noun phrase for the report; format
// and args say what was seen. It returns ok.
func (x *trial) wantOrHarm(h harm, ok bool, expected, format string, args ...any) bool {
	verdict := missed(x.c.Level)
	if consequences()[h].level == LevelSafety || verdict == VerdictSeen {
		verdict = VerdictFail
	}
	if !ok && consequences()[h].level == LevelSafety {
		x.proved = true
	}
	return x.judge(h, ok, verdict, expected, format, args...)
}

// judge records the result of one check, and returns ok. If ok is false, verdict is the verdict on it and h the harm that it shows. The text of a
// case's result is that of its heaviest failed check, the first among equals. A missed check after the budget of requests was used up is
// inconclusive.
func (x *trial) judge(h harm, ok bool, verdict Verdict, expected, format string, args ...any) bool {
	actual := fmt.Sprintf(format, args...)
	if ok {
		x.find(VerdictPass, actual)
		return true
	}
	if x.isSpent() { // what was not sent shows nothing
		x.inconclusive("the budget was used up: expected %s, saw %s", expected, actual)
		return false
	}
	c := x.c.consequenceOf(h, verdict)
	if x.worstMiss.verdict == "" || heavier(verdict, c.level, x.worstMiss.verdict, x.worstMiss.level) {
		x.expected, x.actual, x.worstMiss = expected, actual, miss{verdict, c}
		x.mu.Lock()
		x.sent.show() // the report marks the requests that show it
		x.mu.Unlock()
	}
	x.find(verdict, "expected "+expected+", saw "+actual)
	return false
}

// isSpent reports whether the budget of requests or effects has stopped a request of the trial, so that a missed check shows nothing.
func (x *trial) isSpent() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.spent != nil
}

// find adds a finding (a verdict with its text) to the case, without a look at what it expected. Requests that are sent later belong to the next
// finding.
func (x *trial) find(v Verdict, text string) {
	x.findings = append(x.findings, Finding{Verdict: v, Text: text})
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sent.endFinding()
}

// seen records an observation without a judgement. Its text is the result's Actual unless a check has failed (expected is then set).
func (x *trial) seen(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if x.expected == "" {
		x.actual = text
	}
	x.find(VerdictSeen, text)
}

// skip records the reason why the case does not apply to this target. The caller returns from
// the case.
func (x *trial) skip(format string, args ...any) { x.give(VerdictSkip, format, args...) }

// inconclusive records the reason why this part of the case decides nothing: neither a failure nor a pass. It does not end the case.
func (x *trial) inconclusive(format string, args ...any) {
	x.give(VerdictInconclusive, format, args...)
}

// give adds a finding without an expected and an actual value, such as a skip. Its text becomes the reason of the result if it is the first, or if v
// is worse than each verdict so far.
func (x *trial) give(v Verdict, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if x.reason == "" || v.severity() > x.worst().severity() {
		x.reason = text
	}
	x.find(v, text)
}

// worst returns the verdict of the highest severity among the findings so far; VerdictSkip if there are none.
func (x *trial) worst() Verdict {
	verdicts := make([]Verdict, len(x.findings))
	for i, f := range x.findings {
		verdicts[i] = f.Verdict
	}
	return worstOf(verdicts...)
}

// failed reports whether a finding of the trial is a failure.
func (x *trial) failed() bool { return x.worst() == VerdictFail }

// result builds the case's result. Call it after end. A failure stays a failure even if the
// case was cut short afterwards; any other verdict of a run that was cut short, by its time or
// its budget, is inconclusive. A broken transport, or a case without a finding, is VerdictError.
func (x *trial) result() Result {
	c := Result{
		ID: x.c.ID, Level: x.c.Level, Rule: x.c.Rule, Impact: x.c.Impact, Fix: x.c.Fix, Spec: x.c.Spec,
		Verdict: x.worst(), Witness: x.witness, Expected: x.expected, Actual: x.actual, Reason: x.reason,
		Effects: x.noted(), MS: millis(x.took), Findings: slices.Clone(x.findings), Exchanges: slices.Clone(x.sent.kept),
		proved: x.proved, waited: x.waited,
	}
	x.weigh(&c)
	switch {
	case c.Verdict == VerdictFail:
	case x.cut != "", x.spent != nil:
		if x.cut == "" {
			x.cut = errorText(x.spent)
		}
		c.Verdict, c.Reason = VerdictInconclusive, "it was cut short: "+x.cut
		c.Findings = append(c.Findings, Finding{Verdict: c.Verdict, Text: c.Reason})
	case x.broke != nil:
		c.Verdict, c.Reason = VerdictError, "the transport failed: "+errorText(x.broke)
	case len(x.findings) == 0:
		c.Verdict, c.Reason = VerdictError, "the case judged nothing"
	}
	if left := x.sent.left(); left > 0 && len(c.Exchanges) == exchangesMax {
		c.Exchanges[exchangesMax/2].Note += fmt.Sprintf(" (%d exchanges before this one were not kept)", left) // where they were dropped
	}
	if c.Verdict == VerdictPass || c.Verdict == VerdictSeen {
		c.Reason = ""
	}
	return c
}

// weigh replaces level, impact and fix of a failed or warning result c by those of its heaviest failed check: they depend on the harm, and not on the
// case. A safety case that warns and also has an inconclusive finding keeps LevelSafety, so that Report.Undecided lists it.
func (x *trial) weigh(c *Result) {
	if c.Verdict != VerdictFail && c.Verdict != VerdictWarn {
		return
	}
	open := slices.ContainsFunc(x.findings, func(f Finding) bool { return f.Verdict == VerdictInconclusive })
	if m := x.worstMiss; m.verdict != "" {
		c.Level, c.Impact, c.Fix = m.level, m.impact, m.fix
	}
	if c.Verdict == VerdictWarn && open && x.c.Level == LevelSafety {
		c.Level = LevelSafety
	}
}

package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// trial is one run of one case: what it has sent, and what it has found. Its
// sending methods may be used by several goroutines; its checks belong to the
// goroutine of the case.
type trial struct {
	ctx     context.Context
	r       *runner
	c       *Case
	salt    string // tells the runs of one case apart
	begun   time.Time
	took    time.Duration
	cut     string // why it was cut short; "": it was not
	made    int    // operations so far
	calm    bool   // connections may be refused: the target is being restarted
	slot    *slot  // nil: it holds none
	onAside func() // called once when the slot is given back early; may be nil

	mu     sync.Mutex
	sent   evidence
	names  names
	latest time.Time // end of the last exchange
	broke  error     // the transport or the budget failed
	parked []*link   // answered, and still open

	limited time.Duration // see takeLimit

	findings         []Finding
	expected, actual string
	worstMiss        miss // the finding that expected and actual are of
	reason           string
	notes            []note
	claims           []claim
	witness          Witness
	proved           bool // by an effect or an answer, and not by an absence
	waited           bool // for longer than patience, for a key to resolve
}

// start gives the trial its context. end follows it.
func (x *trial) start(ctx context.Context) { x.ctx, x.begun = ctx, time.Now() }

// end closes what is open and remembers whether the trial was cut short.
func (x *trial) end() {
	x.took = time.Since(x.begun)
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

// stepAside lets other cases go on while this one waits for long.
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

// miss is a check that failed: its verdict, and what it means.
type miss struct {
	verdict Verdict
	consequence
}

// want is one check: what is expected, and what was seen.
func (x *trial) want(ok bool, expected, format string, args ...any) bool {
	return x.judge(ownHarm, ok, missed(x.c.Level), expected, format, args...)
}

// must is a check that fails whatever the level of the case.
func (x *trial) must(ok bool, expected, format string, args ...any) bool {
	return x.judge(ownHarm, ok, VerdictFail, expected, format, args...)
}

// should is a check that only warns.
func (x *trial) should(ok bool, expected, format string, args ...any) bool {
	return x.judge(ownHarm, ok, VerdictWarn, expected, format, args...)
}

// noServerError is must for the status of an answer that could be a refusal.
func (x *trial) noServerError(a *answer, expected, format string, args ...any) bool {
	return x.judge(errored, a.status < 500, VerdictFail, expected, format, args...)
}

// spared is a check that shows a harm if it is missed. One that is a matter of
// safety fails whatever the level of the case.
func (x *trial) spared(h harm, ok bool, expected, format string, args ...any) bool {
	verdict := missed(x.c.Level)
	if consequences()[h].level == LevelSafety || verdict == VerdictSeen {
		verdict = VerdictFail
	}
	if !ok && consequences()[h].level == LevelSafety {
		x.proved = true
	}
	return x.judge(h, ok, verdict, expected, format, args...)
}

// judge is one check: fails is the verdict if ok is false, h what that shows. The first
// of the heaviest that fail is what the report shows as expected and actual.
func (x *trial) judge(h harm, ok bool, fails Verdict, expected, format string, args ...any) bool {
	actual := fmt.Sprintf(format, args...)
	if ok {
		x.find(VerdictPass, actual)
		return true
	}
	c := x.c.consequenceOf(h, fails)
	if x.worstMiss.verdict == "" || heavier(fails, c.level, x.worstMiss.verdict, x.worstMiss.level) {
		x.expected, x.actual, x.worstMiss = expected, actual, miss{fails, c}
		x.mu.Lock()
		x.sent.show()
		x.mu.Unlock()
	}
	x.find(fails, "expected "+expected+", saw "+actual)
	return false
}

// find adds a finding. What is sent from now on belongs to the next one.
func (x *trial) find(v Verdict, text string) {
	x.findings = append(x.findings, Finding{Verdict: v, Text: text})
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sent.endFinding()
}

// seen records a value that is not judged.
func (x *trial) seen(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if x.expected == "" {
		x.actual = text
	}
	x.find(VerdictSeen, text)
}

// skip says why a case does not apply after all.
func (x *trial) skip(format string, args ...any) { x.give(VerdictSkip, format, args...) }

// inconclusive says why nothing can be concluded.
func (x *trial) inconclusive(format string, args ...any) {
	x.give(VerdictInconclusive, format, args...)
}

// give adds a finding without a check, and keeps the worst one's text as the
// reason.
func (x *trial) give(v Verdict, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if x.reason == "" || v.severity() > x.worst().severity() {
		x.reason = text
	}
	x.find(v, text)
}

// worst returns the worst verdict so far.
func (x *trial) worst() Verdict {
	verdicts := make([]Verdict, len(x.findings))
	for i, f := range x.findings {
		verdicts[i] = f.Verdict
	}
	return worstOf(verdicts...)
}

func (x *trial) failed() bool { return x.worst() == VerdictFail }

// result is the verdict and the evidence. What was seen to be wrong stays wrong
// though the case was cut short afterwards.
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
	case x.cut != "":
		c.Verdict, c.Reason = VerdictInconclusive, "it was cut short: "+x.cut
		c.Findings = append(c.Findings, Finding{Verdict: c.Verdict, Text: c.Reason})
	case x.broke != nil:
		c.Verdict, c.Reason = VerdictError, "the transport failed: "+errorText(x.broke)
	case len(x.findings) == 0:
		c.Verdict, c.Reason = VerdictError, "the case judged nothing"
	}
	if left := x.sent.left(); left > 0 && len(c.Exchanges) == exchangesMax {
		c.Exchanges[exchangesMax/2].Note += fmt.Sprintf(" (%d exchanges before this one were not kept)", left)
	}
	if c.Verdict == VerdictPass || c.Verdict == VerdictSeen {
		c.Reason = ""
	}
	return c
}

// weigh gives a result that failed or warns the level, impact and fix of its heaviest
// finding. A case of safety that also left something open stays one.
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

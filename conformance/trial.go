package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// trial is one run of one case: what it has sent, and what it has found. Its
// sending methods may be used by several goroutines.
type trial struct {
	ctx   context.Context
	r     *runner
	c     *Case
	salt  string // tells the runs of one case apart
	begun time.Time
	made  int  // operations so far
	calm  bool // connections may be refused: the target is being restarted

	mu      sync.Mutex
	sent    evidence
	seenIDs map[string]map[string]bool // identities in answers, by reference
	broke   error                      // the transport or the budget failed
	parked  []*link                    // answered, and still open

	findings         []Finding
	expected, actual string
	reason           string
	effectsText      string
	witness          Witness
}

// want is one check: what is expected, and what was seen.
func (x *trial) want(ok bool, expected, format string, args ...any) bool {
	return x.judge(ok, miss(x.c.Level), expected, format, args...)
}

// must is a check that fails whatever the level of the case.
func (x *trial) must(ok bool, expected, format string, args ...any) bool {
	return x.judge(ok, VerdictFail, expected, format, args...)
}

// should is a check that only warns.
func (x *trial) should(ok bool, expected, format string, args ...any) bool {
	return x.judge(ok, VerdictWarn, expected, format, args...)
}

func (x *trial) judge(ok bool, missed Verdict, expected, format string, args ...any) bool {
	actual := fmt.Sprintf(format, args...)
	if ok {
		x.find(VerdictPass, actual)
		return true
	}
	if x.expected == "" || missed.severity() > x.worst().severity() {
		x.expected, x.actual = expected, actual
		x.mu.Lock()
		x.sent.show()
		x.mu.Unlock()
	}
	x.find(missed, "expected "+expected+", saw "+actual)
	return false
}

func (x *trial) find(v Verdict, text string) {
	x.findings = append(x.findings, Finding{Verdict: v, Text: text})
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sent.found()
}

// seen records a value that is not judged.
func (x *trial) seen(format string, args ...any) {
	x.actual = fmt.Sprintf(format, args...)
	x.find(VerdictSeen, x.actual)
}

// skip says why a case does not apply after all.
func (x *trial) skip(format string, args ...any) { x.give(VerdictSkip, format, args...) }

// vague says why nothing can be concluded.
func (x *trial) vague(format string, args ...any) { x.give(VerdictInconclusive, format, args...) }

func (x *trial) give(v Verdict, format string, args ...any) {
	if x.reason == "" || v.severity() > x.worst().severity() {
		x.reason = fmt.Sprintf(format, args...)
	}
	x.find(v, fmt.Sprintf(format, args...))
}

func (x *trial) worst() Verdict {
	verdicts := make([]Verdict, len(x.findings))
	for i, f := range x.findings {
		verdicts[i] = f.Verdict
	}
	return worstOf(verdicts...)
}

// do sends one request on a fresh connection and reads the answer.
func (x *trial) do(op *operation, note string) *answer {
	return x.doFramed(op, withLength, note)
}

func (x *trial) doFramed(op *operation, f framing, note string) *answer {
	l := x.dial("")
	defer x.park(l)
	l.load(op, f)
	l.note = note
	l.write(0)
	return l.receive()
}

// parkedMax bounds the connections that a case keeps open.
const parkedMax = 32

// park keeps a connection open after its answer, as clients do: one that closes
// at once may look to the server as if it had left before the answer. The oldest
// is closed when there are too many, and all when the case ends.
func (x *trial) park(l *link) {
	if l.err != nil {
		l.close()
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.parked = append(x.parked, l)
	if len(x.parked) > parkedMax {
		x.parked[0].close()
		x.parked = x.parked[1:]
	}
}

func (x *trial) closeAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.parked {
		l.close()
	}
	x.parked = nil
}

// first sends an operation that has to succeed: a set-up.
func (x *trial) first(op *operation) (*answer, bool) {
	a := x.do(op, "the first")
	return a, x.setup(a)
}

// setup makes the case inconclusive where the answer is no success.
func (x *trial) setup(a *answer) bool {
	if a.kind != done || a.err != nil {
		x.vague("the set-up did not come about: the first request was answered %s", a)
		return false
	}
	return true
}

// again repeats a request until it is not told to wait, for a short while: a
// server may take a moment to store what it has answered.
func (x *trial) again(op *operation, note string) *answer {
	return x.until(op, note, min(x.r.o.Settle, time.Second), false)
}

// resolve repeats a request until it is given the outcome or refused, for as long
// as the settle time allows.
func (x *trial) resolve(op *operation, note string) *answer {
	return x.until(op, note, x.r.o.Settle, true)
}

// until repeats a request that is told to wait, or meets no answer, or where
// failures is set a server error.
func (x *trial) until(op *operation, note string, limit time.Duration, failures bool) *answer {
	wait, deadline := 5*time.Millisecond, time.Now().Add(limit)
	for {
		a := x.do(op, note)
		waiting := a.kind == busy && !a.replayed || a.kind == noAnswer || failures && a.kind == broken
		if !waiting || time.Now().Add(wait).After(deadline) || !x.pause(wait) {
			return a
		}
		wait = min(2*wait, 500*time.Millisecond)
	}
}

// pause waits, and reports whether the case goes on.
func (x *trial) pause(d time.Duration) bool {
	if d <= 0 {
		return x.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.ctx.Done():
		return false
	}
}

// result is the verdict and the evidence. What was seen to be wrong stays wrong
// though the case was cut short afterwards.
func (x *trial) result() Result {
	c := Result{
		ID: x.c.ID, Level: x.c.Level, Rule: x.c.Rule, Impact: x.c.Impact, Fix: x.c.Fix, Spec: x.c.Spec,
		Verdict: x.worst(), Witness: x.witness, Expected: x.expected, Actual: x.actual, Reason: x.reason,
		Effects: x.effectsText, MS: millis(time.Since(x.begun)),
		Findings: x.findings, Exchanges: x.sent.kept,
	}
	switch {
	case c.Verdict == VerdictFail:
	case x.ctx.Err() != nil:
		c.Verdict, c.Reason = VerdictInconclusive, "it was cut short: "+x.r.why(x.ctx)
	case x.broke != nil:
		c.Verdict, c.Reason = VerdictError, "the transport failed: "+errorText(x.broke)
	case len(x.findings) == 0:
		c.Verdict, c.Reason = VerdictError, "the case judged nothing"
	}
	if left := x.sent.left(); left > 0 {
		c.Exchanges[exchangesMax/2].Note += fmt.Sprintf(" (%d exchanges before this one were not kept)", left)
	}
	if c.Verdict == VerdictPass || c.Verdict == VerdictSeen {
		c.Reason = ""
	}
	return c
}

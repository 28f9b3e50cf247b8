package referee

import (
	"fmt"
	"strconv"
	"time"
)

// Level is the weight of a rule.
type Level string

// The levels, heaviest first.
const (
	Safety   Level = "safety"   // an effect may happen twice, or be lost
	Liveness Level = "liveness" // the client may never learn the outcome
	Must     Level = "must"     // the draft or the profile says MUST
	Should   Level = "should"   // the draft, the profile or the field says SHOULD
)

// Verdict is the result for one rule.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass" // there was an occasion, and the rule was kept
	Fail Verdict = "fail" // the rule was broken
	Warn Verdict = "warn" // a Should was broken
	Skip Verdict = "skip" // there was no occasion to judge the rule
)

// Report is the result of a referee. It is a copy: the caller owns it. As JSON it
// has the form of all of oncehttp's reports, schema 1.
type Report struct {
	// Schema is the version of the JSON form: 1.
	Schema int `json:"schema"`
	// Kind is "referee".
	Kind string `json:"kind"`
	// Suite is "oncehttp mock".
	Suite string `json:"suite"`
	// Target is "client".
	Target string `json:"target"`
	// Profile is the name of the server's profile.
	Profile string `json:"profile"`
	// Seed is that of the server.
	Seed uint64 `json:"seed"`
	// Started is the start of the run.
	Started time.Time `json:"started,omitzero"`
	// MS is the time from Started to the last answer, in milliseconds.
	MS float64 `json:"ms"`
	// Requests counts the sends that were judged.
	Requests int `json:"requests"`
	// Config holds the settings of the run: script, operations (seen), expected,
	// operation pointer.
	Config map[string]string `json:"config"`
	// Cases are the verdicts, one for each of Rules, in that order.
	Cases []Case `json:"cases"`
	// Summary counts Cases by verdict.
	Summary Summary `json:"summary"`
}

// Summary counts verdicts. Seen, Inconclusive and Error belong to the common
// form of reports; a referee gives no such verdict, and they are 0.
type Summary struct {
	Pass         int `json:"pass"`         // rules that were kept
	Fail         int `json:"fail"`         // rules that were broken
	Warn         int `json:"warn"`         // shoulds that were broken
	Seen         int `json:"seen"`         // 0
	Skip         int `json:"skip"`         // rules that could not be judged
	Inconclusive int `json:"inconclusive"` // 0
	Error        int `json:"error"`        // 0
}

// Case is the verdict on one rule, with its evidence.
type Case struct {
	// ID is the rule's.
	ID string `json:"id"`
	// Level is the rule's.
	Level Level `json:"level"`
	// Verdict is the result.
	Verdict Verdict `json:"verdict"`
	// Witness is "counted": the server counts its own effects.
	Witness string `json:"witness"`
	// Rule is the rule's Text.
	Rule string `json:"rule"`
	// Impact is the rule's.
	Impact string `json:"impact"`
	// Spec is the source of the rule.
	Spec []Source `json:"spec"`
	// Expected is the rule's Text again.
	Expected string `json:"expected"`
	// Actual is the number of operations that broke the rule, and how the first
	// did; empty: none did.
	Actual string `json:"actual,omitempty"`
	// Reason says why the rule could not be judged; for Skip only.
	Reason string `json:"reason,omitempty"`
	// Findings are the operations that broke the rule, at most ten.
	Findings []Finding `json:"findings,omitempty"`
	// Exchanges are the sends of the first operation that broke the rule, at
	// most thirty.
	Exchanges []Exchange `json:"exchanges"`
}

// Source is the source of a rule.
type Source struct {
	Name string `json:"name"`          // short, such as "draft-07 §2.2"
	URL  string `json:"url,omitempty"` // empty for field practice
}

// Finding is one operation that broke a rule.
type Finding struct {
	Verdict Verdict `json:"verdict"` // Fail or Warn
	Text    string  `json:"text"`    // names the operation, and the breach
}

// Exchange is one send and its answer. It holds no body and no credential.
type Exchange struct {
	AtMS   float64 `json:"at_ms"`            // its start, in milliseconds after the operation's first send
	TookMS float64 `json:"took_ms"`          // from arrival to the end of the answer, in milliseconds
	Send   string  `json:"lane"`             // "send 1" is the first of the operation
	Method string  `json:"method"`           // of the request
	Path   string  `json:"url"`              // of the request, without its query
	Key    string  `json:"key,omitempty"`    // the idempotency key
	Status int     `json:"status,omitempty"` // of the answer; 0: none
	Note   string  `json:"note,omitempty"`   // a Retry-After, or that it was a replay
	Error  string  `json:"error,omitempty"`  // why the client has no answer; empty: it has one
}

// findingsMax and exchangesMax bound the evidence of one rule.
const (
	findingsMax  = 10
	exchangesMax = 30
)

// evidence returns a copy of all sends and answers so far, for the rules to judge, and the start of the run. Pairs of sends and counted effects are
// added later.
func (r *Referee) evidence() (*evidence, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &evidence{server: r.server, script: r.script, operations: r.history.snapshot()}, r.history.begun
}

// Report judges the client by everything seen so far. It may be called at any time and repeatedly; a send that is
// still being handled counts as not answered.
func (r *Referee) Report() *Report {
	e, begun := r.evidence()
	e.pairs = pairs(e.operations)
	if e.server.Profile == nil {
		return e.head(begun) // without a server there is nothing to judge
	}
	e.effects = e.server.Ledger.EffectsByReference()
	report, judge := e.head(begun), judges()
	for _, rule := range Rules() {
		c := e.verdict(rule, judge[rule.ID](e))
		report.Cases = append(report.Cases, c)
		report.Summary.count(c.Verdict)
	}
	return report
}

// head returns the report of a run without its cases: the client's number of requests, the duration and the configuration.
func (e *evidence) head(begun time.Time) *Report {
	report := &Report{
		Schema: 1, Kind: "referee", Suite: "oncehttp mock", Target: "client", Seed: e.server.Seed, Started: begun,
		Config: map[string]string{
			"script":            e.script.Name,
			"operations":        strconv.Itoa(len(e.operations)),
			"expected":          strconv.Itoa(e.script.Expect),
			"operation pointer": e.server.OperationPointer,
		},
		Cases: []Case{},
	}
	if e.server.Profile != nil {
		report.Profile = e.server.Profile.Name
	}
	for i := range e.operations {
		report.Requests += len(e.operations[i].sends)
		for _, s := range e.operations[i].sends {
			report.MS = max(report.MS, millis(s.Ended.Sub(begun)))
		}
	}
	return report
}

// count adds one verdict to the numbers of the summary.
func (s *Summary) count(v Verdict) {
	switch v {
	case Pass:
		s.Pass++
	case Fail:
		s.Fail++
	case Warn:
		s.Warn++
	case Skip:
		s.Skip++
	}
}

// verdict returns the finding on one rule as a case of the report. A broken rule of level Should is a warning; the first operation that broke it is
// the evidence.
func (e *evidence) verdict(rule Rule, f finding) Case {
	c := Case{
		ID: rule.ID, Level: rule.Level, Rule: rule.Text, Impact: rule.Impact,
		Spec: []Source{{Name: rule.Source, URL: rule.URL}}, Expected: rule.Text,
		Verdict: Pass, Witness: "counted", Exchanges: []Exchange{},
	}
	switch {
	case len(f.violations) > 0:
		c.Verdict = Fail
		if c.Level == Should {
			c.Verdict = Warn
		}
		first := f.violations[0]
		c.Actual = fmt.Sprintf("%d of %d operations broke it; operation %q: %s", f.operations(), len(e.operations), first.op.name, first.detail)
		c.Exchanges = exchanges(first.op)
	case f.skip != "":
		c.Verdict = Skip
		c.Reason = f.skip
	}
	for _, v := range f.violations[:min(len(f.violations), findingsMax)] {
		text := fmt.Sprintf("operation %q: %s", v.op.name, v.detail)
		if v.op.scenario != "" {
			text += " (" + v.op.scenario + ")"
		}
		c.Findings = append(c.Findings, Finding{Verdict: c.Verdict, Text: text})
	}
	return c
}

// exchanges returns the first sends of an operation with their answers, as the report shows them.
func exchanges(op *operation) []Exchange {
	list := []Exchange{}
	for i, s := range op.sends[:min(len(op.sends), exchangesMax)] {
		one := Exchange{
			AtMS: millis(s.Begun.Sub(op.sends[0].Begun)), TookMS: millis(s.Ended.Sub(s.Begun)),
			Send: "send " + strconv.Itoa(i+1), Method: s.Method, Path: s.Path, Key: s.Key, Status: s.Status,
		}
		switch {
		case s.Status == 0:
			one.Error = "no answer was given"
		case !s.Whole:
			one.Error = "the answer did not get through"
		case s.Replay:
			one.Note = "a replay"
		}
		if s.RetryAfter != "" {
			one.Note = "Retry-After: " + s.RetryAfter
		}
		list = append(list, one)
	}
	return list
}

// millis returns d in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

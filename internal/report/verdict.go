package report

import "slices"

// Level is the weight of a requirement. "" is not a level.
type Level string

// The levels, heaviest first.
const (
	// Safety: an effect happened twice, was lost, or reached a stranger.
	Safety Level = "safety"
	// Liveness: after a fault the key resolves within a bound.
	Liveness Level = "liveness"
	// Must: the draft, or the profile, says MUST.
	Must Level = "must"
	// Should: the draft, or the profile, says SHOULD. Missed, it is a warning.
	Should Level = "should"
	// Policy: a choice, compared with the profile's declaration.
	Policy Level = "policy"
	// Observe: recorded, never judged.
	Observe Level = "observe"
)

// Levels returns all levels of a case (how much depends on it), heaviest first.
func Levels() []Level { return []Level{Safety, Liveness, Must, Should, Policy, Observe} }

// Valid reports whether l is one of Levels.
func (l Level) Valid() bool { return slices.Contains(Levels(), l) }

// Verdict is the result of a case. The zero value stands for no verdict, and counts
// as an Error everywhere: a case without judgement must not look good.
type Verdict string

// The verdicts.
const (
	Pass         Verdict = "pass"         // no violation was seen
	Fail         Verdict = "fail"         // the rule is broken
	Warn         Verdict = "warn"         // a Should was missed
	Seen         Verdict = "seen"         // observed, not judged
	Skip         Verdict = "skip"         // the needs of the case were not declared
	Inconclusive Verdict = "inconclusive" // the setup failed, or the witness is too weak
	Error        Verdict = "error"        // the suite or the transport failed
)

// Verdicts returns all verdicts in the order of the summary.
func Verdicts() []Verdict { return []Verdict{Pass, Fail, Warn, Seen, Skip, Inconclusive, Error} }

// Valid reports whether v is one of Verdicts.
func (v Verdict) Valid() bool { return slices.Contains(Verdicts(), v) }

// Severity orders verdicts for "the worst child wins", from 0 for Skip to 6.
// A failure outranks an error, and a warning outranks an inconclusive verdict: an
// observed fault stays a fault though another part came to no end. An invalid verdict ranks as Error.
func (v Verdict) Severity() int {
	order := []Verdict{Skip, Pass, Seen, Inconclusive, Warn, Error, Fail}
	if i := slices.Index(order, v); i >= 0 {
		return i
	}
	return slices.Index(order, Error)
}

// Worst returns the verdict with the highest Severity; of none, Skip: nothing
// was judged.
func Worst(verdicts ...Verdict) Verdict {
	worst := Skip
	for _, v := range verdicts {
		if v.Severity() > worst.Severity() {
			worst = v
		}
	}
	return worst
}

// Witness is the way of counting effects.
type Witness string

// The witnesses, strongest first.
const (
	Counted  Witness = "counted"  // a counter of the server
	Listed   Witness = "listed"   // a list of the server, filtered by reference
	Inferred Witness = "inferred" // distinct ids among answers; hidden executions are missed
	None     Witness = "none"     // effects were not looked at
)

// Witnesses returns all witnesses (ways in which effects are counted), strongest first.
func Witnesses() []Witness { return []Witness{Counted, Listed, Inferred, None} }

// Valid reports whether w is a known kind of witness, the way in which effects were counted: one of Witnesses.
func (w Witness) Valid() bool { return slices.Contains(Witnesses(), w) }

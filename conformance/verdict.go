package conformance

import "slices"

// Level says how much a case weighs. "" is no level.
type Level string

// The levels, heaviest first.
const (
	LevelSafety   Level = "safety"   // an effect happened twice, was lost, or reached a stranger
	LevelLiveness Level = "liveness" // after a fault the key resolves within a bound
	LevelMust     Level = "must"     // the draft, or the profile, says MUST
	LevelShould   Level = "should"   // the draft, or the profile, says SHOULD; missed, it is a warning
	LevelPolicy   Level = "policy"   // a choice, compared with what the profile declares
	LevelObserve  Level = "observe"  // recorded, never judged
)

// Verdict is what was found. The zero value is no verdict.
type Verdict string

// The verdicts.
const (
	VerdictPass         Verdict = "pass"         // no violation was seen
	VerdictFail         Verdict = "fail"         // the rule is broken
	VerdictWarn         Verdict = "warn"         // a Should was missed
	VerdictSeen         Verdict = "seen"         // observed, not judged
	VerdictSkip         Verdict = "skip"         // what the case needs was not declared
	VerdictInconclusive Verdict = "inconclusive" // the set-up failed, or the witness is too weak
	VerdictError        Verdict = "error"        // the suite or the transport failed
)

// Witness says how effects were counted. The zero value: not said.
type Witness string

// The witnesses, strongest first.
const (
	WitnessCounted  Witness = "counted"  // a counter of the server
	WitnessListed   Witness = "listed"   // a list of the server, filtered by reference
	WitnessInferred Witness = "inferred" // distinct ids among answers; an execution whose answer nobody saw is missed
	WitnessNone     Witness = "none"     // effects were not looked at, or could not be seen
)

// severity orders verdicts for "the worst finding wins". A failure and a warning
// outrank what was not decided: what was seen to be wrong stays wrong though
// another part of the case came to no end.
func (v Verdict) severity() int {
	order := []Verdict{VerdictSkip, VerdictPass, VerdictSeen, VerdictInconclusive, VerdictWarn, VerdictError, VerdictFail}
	if i := slices.Index(order, v); i >= 0 {
		return i
	}
	return slices.Index(order, VerdictError)
}

// worstOf gives the verdict with the highest severity; of none, VerdictSkip.
func worstOf(verdicts ...Verdict) Verdict {
	worst := VerdictSkip
	for _, v := range verdicts {
		if v.severity() > worst.severity() {
			worst = v
		}
	}
	return worst
}

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
	WitnessInferred Witness = "inferred" // distinct ids among answers; an effect with a lost answer is missed
	WitnessNone     Witness = "none"     // effects were not looked at, or could not be seen
)

// severity orders verdicts: of several, the one with the highest severity counts. A failure
// and a warning outrank inconclusive: a fault that was seen stays one. An unknown verdict has
// the severity of VerdictError.
func (v Verdict) severity() int {
	order := []Verdict{VerdictSkip, VerdictPass, VerdictSeen, VerdictInconclusive, VerdictWarn, VerdictError, VerdictFail}
	if i := slices.Index(order, v); i >= 0 {
		return i
	}
	return slices.Index(order, VerdictError)
}

// worstOf returns the verdict of the highest severity; VerdictSkip if there is none.
func worstOf(verdicts ...Verdict) Verdict {
	worst := VerdictSkip
	for _, v := range verdicts {
		if v.severity() > worst.severity() {
			worst = v
		}
	}
	return worst
}

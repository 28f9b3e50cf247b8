package conformance

import (
	"net/http"
)

// otherRouteCases returns the cases about operations elsewhere than at Options.URL, which keys must protect as well: another path, caller or method.
// A case is skipped if the target lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by
// invariant and outline are the suite's own.
func otherRouteCases() []Case {
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "replay/second-path", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedPath, NeedEffects}, After: after,
			Spec:   []Ref{invariant("S1"), practice("A middleware that is mounted on one route protects that route.")},
			Rule:   "A repeat on the second path is not executed again either.",
			Impact: "Payments are protected, and every lost answer to a refund is a second refund.",
			Fix: "Put the key layer in front of every operation that changes something. Usual cause: the middleware is mounted on one route, " +
				"or a list of protected paths was not kept up to date.",
			run: func(x *trial) {
				x.onceElsewhere("--second-path", func(dup *operation) { dup.setPath(x.r.o.SecondPath) })
			},
		}, {
			ID: "replay/second-caller", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedPrincipal, NeedEffects}, After: after,
			Spec:   []Ref{invariant("S1")},
			Rule:   "A repeat by the second caller is not executed again either.",
			Impact: "One customer is protected, and another one pays for every retry.",
			Fix: "Make keys work for every caller in the same way. Usual causes: keys are enabled per account, or are looked up under the " +
				"account of a service instead of that of the caller.",
			run: func(x *trial) {
				x.onceElsewhere("--as", func(dup *operation) { dup.stranger = true })
			},
		}, {
			ID: "replay/other-method", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedEffects}, After: after,
			Spec:   []Ref{invariant("S1"), draft07("1", "The header makes non-idempotent methods such as POST and PATCH fault-tolerant.")},
			Rule:   "A repeat with another method that the profile has keys for is not executed again either.",
			Impact: "Creations are protected, and every lost answer to a change is a second change.",
			Fix:    "Put the key layer in front of every method that changes something. Usual cause: a condition on POST alone.",
			run:    onceByOtherMethod,
		},
	}
}

// onceElsewhere sends an operation with a change (another path, caller or method) twice under one key, and checks for one outcome and one effect. If
// the first is refused the case is inconclusive, and its reason names flag, the option that may be wrong.
func (x *trial) onceElsewhere(flag string, change func(*operation)) {
	op := x.changedOperation(change)
	first := x.do(op, "the first")
	if first.kind != done {
		x.inconclusive("the first request was answered %s; look at %s", first, flag)
		return
	}
	again := x.again(op, "the repeat")
	x.wantFirst(op, first, again, "")
	x.wantEffects(op, 1, "its reference")
}

// onceByOtherMethod sends an operation with another method twice: Options.OtherMethod, or PATCH or PUT if the profile has keys for it and the target
// serves it. The usual method is left out: other cases try it.
func onceByOtherMethod(x *trial) {
	methods := []string{http.MethodPatch, http.MethodPut}
	if x.r.o.OtherMethod != "" {
		methods = []string{x.r.o.OtherMethod}
	}
	for _, method := range methods {
		if method == x.r.o.Method || !x.r.o.keyed(method) && x.r.o.OtherMethod == "" {
			continue
		}
		change := func(dup *operation) { dup.method = method }
		if x.do(x.newOperation().with(change), "is "+method+" served?").kind == done {
			x.onceElsewhere("--other-method", change)
			return
		}
	}
	x.skip("no other method that the profile has keys for is served here (--other-method)")
}

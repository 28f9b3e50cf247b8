package conformance

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// scopeCases returns the cases about the parts of a request, beside its body, that belong to its key: path, method, query and caller. A case is
// skipped if the target lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and
// outline are the suite's own.
func scopeCases() []Case {
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "scope/other-path-not-answered", Level: LevelSafety, Needs: []Need{NeedPath}, After: after,
			Spec:   []Ref{invariant("S2"), drafted22(), outline("T12"), practice("Modern Treasury answers with the first route's object.")},
			Rule:   "A key used on one operation never answers another operation.",
			Impact: "A refund is answered with the payment and never happens.",
			run: func(x *trial) {
				x.elsewhere("--second-path", func(dup *operation) { dup.setPath(x.r.o.SecondPath) })
			},
		}, {
			ID: "scope/other-resource-empty-body", Level: LevelSafety, Needs: []Need{NeedAction}, After: append([]string{"scope/other-path-not-answered"}, after...),
			Spec:   []Ref{invariant("S2"), drafted22(), outline("T12")},
			Rule:   "A key used to act on one resource never answers for another, though both bodies are empty.",
			Impact: "The cancellation of a second order is confirmed and never happens.",
			run:    otherResource,
		}, {
			ID: "scope/other-method", Level: LevelSafety, After: after,
			Spec:   []Ref{invariant("S2"), drafted22(), outline("T12")},
			Rule:   "A key used with one method never answers another method.",
			Impact: "A change is answered with the creation and never happens.",
			run:    otherMethod,
		}, {
			ID: "scope/other-query", Level: LevelObserve, After: after,
			Spec:   []Ref{draft07("2.4", "What belongs to the fingerprint is the server's choice."), outline("T12")},
			Rule:   "Whether the query belongs to what a key names.",
			Impact: "Two requests that differ in the query only may be taken for one.",
			run:    otherQuery,
		}, {
			ID: "scope/other-principal-not-answered", Level: LevelSafety, Needs: []Need{NeedPrincipal}, After: after,
			Spec:   []Ref{invariant("S3"), draftedSecurity(), outline("T11")},
			Rule:   "A key used by one caller never answers another caller.",
			Impact: "A customer is shown another customer's payment, and the own one never happens.",
			run: func(x *trial) {
				x.elsewhere("--as", func(dup *operation) { dup.stranger = true })
			},
		}, {
			ID: "scope/fresh-key-executes", Level: LevelMust, After: after,
			Spec:   []Ref{draft07("2.6", "A key that was not seen before: the request is processed normally."), outline("T1")},
			Rule:   "The same body under a fresh key is a new operation.",
			Impact: "A customer cannot buy the same thing twice.",
			run:    freshKey,
		},
	}
}

// elsewhere sends the same key and body with a change that makes it another operation: it may be refused or executed, but must not get the first
// outcome. A refusal counts only if the same request succeeds with a key of its own. control is the answer to that, nil if it was not sent. decided
// is false, and the case inconclusive, if nothing can be said; the report then points at flag. refusedOnly checks the effects where the other request
// was refused, ownAnswer the answer where it succeeded.
func (x *trial) elsewhere(flag string, change func(*operation)) (decided bool, control *answer) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return false, control
	}
	a := x.do(op.with(change), "the same key elsewhere")
	if a.kind == noAnswer {
		x.inconclusive("the other request met no answer: %s", a)
		return false, control
	}
	if a.kind == done {
		x.ownAnswer(op, first, a)
		return true, control
	}
	control = x.do(x.changedOperation(change), "a key of its own, to compare")
	if control.kind != done {
		x.refusedOnly(op, a)
		x.inconclusive("nothing can be said: with a key of its own the other request is answered %s; look at %s", control, flag)
		return false, control
	}
	x.refusedOnly(op, a)
	x.find(VerdictPass, fmt.Sprintf("%s, and %s with a key of its own", a, control))
	return true, control
}

// refusedOnly checks the effects when a key was used for two requests and the second one was refused: there is at most the effect of the first. a is
// the refusal, for the report. Without a counter it checks nothing.
func (x *trial) refusedOnly(op *operation, a *answer) {
	if !x.counts() {
		return
	}
	if n, ok := x.settledEffects(op.ref, 1); ok {
		x.noteEffects("the reference of both", n)
		x.atMost(op, 1, n, "the first, the other being answered "+a.String())
	}
}

// ownAnswer checks that the success a, under a key used elsewhere, is not the outcome of the first request. Two effects prove two executions, and one
// that both successes are the first one's. Without a count of effects it compares the names in the two answers.
func (x *trial) ownAnswer(op *operation, first, a *answer) {
	const expected = "an answer of its own, or a refusal"
	same, known := sameOutcome(first, a)
	n, counted := 0, false
	if x.counts() {
		n, counted = x.settledEffects(op.ref, 2)
		x.noteEffects("the reference of both", n)
	}
	switch {
	case counted && n > 1:
		x.want(true, "", "%s, and %s of both requests", a, plural(n, "effect")) // ids may be numbered by path
	case counted:
		x.wantOrHarm(lost, false, expected, "%s with %s of both requests", a, plural(n, "effect"))
	case known && same && bytes.Equal(a.body, first.body) && a.place == first.place:
		x.wantOrHarm(lost, false, expected, "the first request's %s", a)
	case known && same:
		x.inconclusive("%s names what the first request's answer names, and differs otherwise; nobody counts effects (--witness)", a)
	case known:
		x.want(true, "", "%s, then %s", first, a)
	case a.replayed:
		x.wantOrHarm(lost, false, expected, "a replay: %s", a)
	default:
		x.inconclusive("the answer %s names nothing, and nobody counts effects (--witness)", a)
	}
}

// otherMethod sends a used key with another method, that of Options.OtherMethod, or PATCH and then PUT. It must not get the first outcome. Of several
// methods the first that allows a verdict counts, and the findings of the others are taken back. Without the option it is skipped if the target
// serves neither: with a key of its own (control) each is answered 404, 405 or 501.
func otherMethod(x *trial) {
	methods := []string{http.MethodPatch, http.MethodPut}
	if x.r.o.OtherMethod != "" {
		methods = []string{x.r.o.OtherMethod}
	}
	methods = slices.DeleteFunc(methods, func(method string) bool { return method == x.r.o.Method })
	if len(methods) == 0 {
		x.inconclusive("--other-method names the method of every operation")
	}
	var unserved []string
	before := len(x.findings)
	for i, method := range methods {
		decided, control := x.elsewhere("--other-method, which names a method that the server takes here", func(dup *operation) { dup.method = method })
		if decided || x.failed() {
			return
		}
		if control != nil && slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, control.status) {
			unserved = append(unserved, fmt.Sprintf("%s: %d", method, control.status))
		}
		if i < len(methods)-1 { // the next method is tried as if this one had not been
			x.findings, x.reason = x.findings[:before], ""
		}
	}
	if x.r.o.OtherMethod == "" && len(unserved) == len(methods) && len(methods) > 0 {
		x.findings, x.reason = x.findings[:before], ""
		x.skip("no other method is served here (%s); --other-method names one", strings.Join(unserved, ", "))
	}
}

// otherResource makes two resources, and acts on both with the same key and no body: the second must not get the answer for the first. A refusal of
// the second is right if the action succeeds under a key of its own.
func otherResource(x *trial) {
	var made []*answer
	for range 2 {
		a, ok := x.first(x.newOperation())
		if !ok {
			return
		}
		if a.rawID == "" {
			x.inconclusive("the answer holds no id at %s (--id-pointer)", x.r.o.IDPointer)
			return
		}
		made = append(made, a)
	}
	act := x.newOperation().with(func(dup *operation) { dup.body = nil })
	on := func(a *answer) *operation {
		return act.with(func(dup *operation) { dup.setPath(strings.ReplaceAll(x.r.o.ActionPath, "{id}", a.rawID)) })
	}
	one := x.do(on(made[0]), "acts on one")
	if !x.setup(one) {
		return
	}
	two := x.do(on(made[1]), "the same key on another")
	switch {
	case two.kind == noAnswer:
		x.inconclusive("the other request met no answer: %s", two)
	case two.kind != done:
		control := x.do(on(made[1]).with(func(dup *operation) {
			dup.key = x.newOperation().key
			dup.fillKey(x.r) // not fill, which would give it a body
		}), "a key of its own, to compare")
		if control.kind != done {
			x.inconclusive("nothing can be said: with a key of its own the other request is answered %s; look at --action-path", control)
			return
		}
		x.want(true, "", "%s, and %s with a key of its own", two, control)
	case len(two.body) == 0 && !two.replayed:
		x.inconclusive("the answers to both are empty, which does not tell what was done")
	default:
		same := bytes.Equal(one.body, two.body) || two.rawID != "" && two.rawID == one.rawID || two.replayed && !one.replayed
		x.want(!same, "an answer for the other resource, or a refusal", "%s", two)
	}
}

// otherQuery sends a used key with another query, and records whether that is another request, without a judgement: the server may choose. The
// parameter's name means nothing to it.
func otherQuery(x *trial) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return
	}
	other := op.with(func(dup *operation) { dup.addQuery("oncehttp=1") })
	a := x.do(other, "with another query")
	same, known := sameOutcome(first, a)
	switch {
	case a.kind == done && known && same:
		x.seen("the query does not belong to it: the first answer was given")
	case a.kind == done:
		x.seen("the request was executed on its own: %s", a)
	default:
		x.seen("the query belongs to it: %s", a)
	}
}

// freshKey sends the body of an earlier operation under a fresh key. That must be executed, with an effect of its own: both have one reference, so
// that two effects of it are counted. An API may refuse the second by its reference, if the profile declares that.
func freshKey(x *trial) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return
	}
	fresh := x.newOperation()
	again := op.with(func(dup *operation) {
		dup.key = fresh.key
		dup.fill(x.r)
	})
	a := x.do(again, "the same body under a fresh key")
	if a.kind == business || a.kind == alreadyDone {
		x.skip("the profile declares that the business reference is a key of its own: %s", a)
		return
	}
	if !x.wantOrHarm(unresolved(a), a.kind == done, "success", "%s", a) {
		return
	}
	if same, known := sameOutcome(first, a); known {
		x.want(!same, "an effect of its own", "the first request's %s", a)
		return
	}
	if !x.counts() {
		x.inconclusive("the answer %s names nothing, and nobody counts effects (--witness)", a)
		return
	}
	if n, ok := x.settledEffects(op.ref, 2); ok {
		x.noteEffects("its reference", n)
		x.want(n == 2, "2 effects", "%s", plural(n, "effect"))
	}
}

// methodCases returns the cases about methods without an effect, such as GET, that carry a key. A case is skipped if the target lacks one of its
// Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own.
func methodCases() []Case {
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "scope/safe-method-not-answered", Level: LevelMust, After: after, Needs: []Need{NeedHeader},
			Spec:   []Ref{outline("T22"), rfc("9110", "9.2.1", "Safe methods are read-only."), practice("Keys are ignored on GET (Stripe, Mollie, Modern Treasury).")},
			Rule:   "A GET that carries a key is not answered from the key's store.",
			Impact: "A status page shows what was, and not what is.",
			run:    safeMethod,
		}, {
			ID: "scope/head-options", Level: LevelMust, Needs: []Need{NeedHeader}, After: after,
			Spec:   []Ref{outline("T22"), rfc("9110", "9.2.1", "Safe methods are read-only.")},
			Rule:   "HEAD and OPTIONS with a key have no effect and do not take the key.",
			Impact: "A browser's preflight uses the key up, and the payment behind it is refused.",
			run:    headOptions,
		},
	}
}

// safeMethod sends a GET with a used key. It must get the same as a GET without a key, and not the stored answer. A replay is the stored answer by
// its mark, or by the first body where a GET without a key gives another. Another status alone is a warning.
func safeMethod(x *trial) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return
	}
	get := op.with(func(dup *operation) { dup.method, dup.body = "GET", nil })
	with := x.do(get, "with the key")
	without := x.do(get.with(func(dup *operation) { dup.keyless = true }), "without")
	if with.kind == noAnswer || without.kind == noAnswer {
		x.inconclusive("GET met no answer: %s, %s", with, without)
		return
	}
	stored := with.replayed && !without.replayed || len(first.body) > 0 && bytes.Equal(with.body, first.body) && !bytes.Equal(without.body, first.body)
	x.want(!stored, "what GET gives without a key, "+without.String(), "%s", yesNo(stored, "the stored answer of "+op.method, with.String()))
	x.should(stored || with.status == without.status, "what GET gives without a key, "+without.String(), "%s", with)
}

// headOptions sends HEAD and OPTIONS with a fresh key, and then the operation itself. The operation must succeed: the key is not used up. Each method
// may be refused, also by 501 (Not Implemented).
func headOptions(x *trial) {
	for _, method := range []string{"HEAD", "OPTIONS"} {
		op := x.newOperation()
		a := x.do(op.with(func(dup *operation) { dup.method, dup.body = method, nil }), "with a fresh key")
		if a.kind == noAnswer {
			x.inconclusive("%s met no answer: %s", method, a)
			continue
		}
		fine := a.status < 500 || a.status == http.StatusNotImplemented
		x.want(fine && !a.replayed, "no server error and no replay", "%s answered %s", method, a)
		after := x.again(op, "then the operation itself")
		x.want(after.kind == done, "success of the operation after "+method, "%s", after)
		if x.counts() {
			x.onceIf(after.kind == done, op, "the reference after "+method)
		}
	}
}

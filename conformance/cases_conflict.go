package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// conflictCases returns the cases about another request under a key that is used. A case is skipped if the target lacks one of its Needs, or if a
// case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own.
func conflictCases() []Case {
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "conflict/not-executed", Level: LevelSafety, Needs: []Need{NeedEffects}, After: after,
			Spec:   []Ref{invariant("S4"), drafted22(), outline("T5")},
			Rule:   "Another request under a known key is not executed.",
			Impact: "A key no longer stands for one operation: both amounts are charged.",
			run: onConflict(func(x *trial, op, other *operation, _, answered *answer) {
				x.notExecuted(other, answered, "the other request")
				x.wantEffects(op, 1, "the first")
			}),
		}, {
			ID: "conflict/not-silent", Level: LevelSafety, After: after,
			Spec:   []Ref{invariant("S2"), drafted22(), outline("T5")},
			Rule:   "Another request under a known key is not answered with the first one's success.",
			Impact: "A changed amount is confirmed and never charged.",
			run:    onConflict(conflictNotSilent),
		}, {
			ID: "conflict/rejected-status", Level: LevelShould, After: after,
			Spec:   []Ref{drafted27("A key that is reused with another payload: 422."), outline("T5"), practice("400 (Stripe, Mollie), 409 (Increase, Circle), as profiles declare.")},
			Rule:   "Another request under a known key is refused with the declared status.",
			Impact: "A client retries what can never succeed, or takes it for an outage.",
			run:    onConflict(conflictStatus),
		}, {
			ID: "conflict/original-survives", Level: LevelSafety, After: append([]string{"conflict/not-executed"}, after...),
			Spec:   []Ref{invariant("S1"), drafted26()},
			Rule:   "After a refused mismatch the first request is still replayed.",
			Impact: "One bad request makes the server forget a payment, and the next retry pays again.",
			run: onConflict(func(x *trial, op, _ *operation, first, _ *answer) {
				x.wantFirst(op, first, x.again(op, "the first once more"), "")
				x.wantEffects(op, 1, "the first")
			}),
		}, {
			ID: "conflict/error-shape", Level: LevelShould, After: after,
			Spec: []Ref{drafted27("The body is problem details, or a Link with rel=describedby leads to a page."), outline("T18")},
			Rule: "The refusal says what is wrong in a form that programs read.", Impact: "A client cannot tell a mismatch from any other refusal.",
			run: onConflict(conflictShape),
		}, {
			ID: "conflict/no-leak", Level: LevelMust, After: after,
			Spec: []Ref{draftedSecurity()}, Rule: "The refusal does not show what the first request held or was answered.",
			Impact: "Whoever guesses a key reads somebody else's order.",
			run:    onConflict(conflictNoLeak),
		}, {
			ID: "conflict/late-difference", Level: LevelShould, Needs: []Need{NeedJSON}, After: append([]string{"conflict/not-executed", "conflict/not-silent"}, after...),
			Spec:   []Ref{draft07("2.4", "The fingerprint is the server's choice: all of the payload, or chosen elements."), practice("Fingerprints of the first bytes only were seen.")},
			Rule:   "A large body that differs near its end only is another request.",
			Impact: "The last line of a long order is changed, and the change is confirmed and lost.",
			run:    lateDifference,
		},
	}
}

// onConflict returns a case that sends a first request and another under its key, and calls
// check with both and their answers. Without an answer to the second the case is inconclusive.
func onConflict(check func(x *trial, op, other *operation, first, answered *answer)) func(*trial) {
	return func(x *trial) {
		op := x.newOperation()
		first, ok := x.first(op)
		if !ok {
			return
		}
		other := x.changed(op)
		answered := x.do(other, "another body under its key")
		if answered.kind == noAnswer {
			x.inconclusive("the other request met no answer: %s", answered)
			return
		}
		check(x, op, other, first, answered)
	}
}

// notExecuted checks that a refused request had no effect; a is its answer, what its name in
// the report. Without a counter a server error or a missing answer is inconclusive.
func (x *trial) notExecuted(op *operation, a *answer, what string) {
	if !x.counts() && (a.kind == broken || a.kind == noAnswer) {
		x.inconclusive("%s was answered %s, which says nothing of its effect, and nobody counts effects (--witness)", what, a)
		return
	}
	x.wantEffects(op, 0, what)
}

// conflictNotSilent checks that another body under the same key does not get the first outcome. A success without an effect of its own counts as
// that. So does, if nobody counts effects, a success that names nothing although the first answer did.
func conflictNotSilent(x *trial, _, other *operation, first, answered *answer) {
	if answered.kind != done {
		x.want(true, "", "%s", answered)
		return
	}
	same, known := sameOutcome(first, answered)
	if known {
		x.wantOrHarm(lost, !same, "a refusal", "the first request's %s", answered)
		return
	}
	n, ok := x.settledEffects(other.ref, 1) // it waits a moment for a first effect
	if !ok {
		return
	}
	if !x.counts() && first.names() {
		// Whether it was executed or not: neither is right, and the first answer shows that a success names what it made.
		x.wantOrHarm(lost, false, "a refusal", "%s for another request, which does not say what was made as the first does: %s", answered, first)
		return
	}
	if !x.counts() {
		x.inconclusive("the answer %s names nothing, and nobody counts effects (--witness)", answered)
		return
	}
	x.wantOrHarm(lost, n > 0, "a refusal", "%s for a request that had no effect", answered)
}

// conflictStatus checks that another request under a used key is refused with a status that the profile declares for it.
func conflictStatus(x *trial, _, _ *operation, _, answered *answer) {
	p := x.r.o.Profile
	if answered.kind == done {
		x.skip("it was not refused at all; conflict/not-silent and conflict/not-executed judge that")
		return
	}
	expected := expectedStatuses(p)
	x.noServerError(answered, "a refusal with "+expected, "%s", answered)
	x.want(slices.Contains(strings.Split(expected, " or "), fmt.Sprint(answered.status)), "a refusal with "+expected, "%s", answered)
}

// expectedStatuses returns the statuses by which the profile's API refuses another request under a used key, joined by " or ": those of Mismatch,
// else those of AlreadyDone. If the profile states none, it is 400 for OASIS Repeatable Requests, else the 422 of the draft.
func expectedStatuses(p *profile.Profile) string {
	var all []string
	for _, list := range [][]profile.Matcher{p.Mismatch, p.AlreadyDone} {
		for _, m := range list {
			for _, status := range m.Status {
				if text := fmt.Sprint(status); !slices.Contains(all, text) {
					all = append(all, text)
				}
			}
		}
		if len(all) > 0 {
			return strings.Join(all, " or ")
		}
	}
	if strings.EqualFold(p.Carrier.Name, oasisHeader) { // OASIS Repeatable Requests 1.0, and no profile says more
		return "400"
	}
	return "422"
}

// conflictShape checks that a program can read the refusal of a key that was used for another request: problem details, or a link to a description
// (wantShape). A success, or an error of the server, is no refusal, and skips the case.
func conflictShape(x *trial, _, _ *operation, _, answered *answer) {
	if answered.kind == done || answered.kind == broken {
		x.skip("it was not refused: %s", answered)
		return
	}
	x.wantShape(answered)
}

// wantShape checks that a program can read a refusal: problem details, a link, or an answer that the profile describes, so that its clients know it.
// A miss is a warning.
func (x *trial) wantShape(a *answer) {
	for _, link := range a.header.Values("Link") {
		if strings.Contains(link, "describedby") {
			x.should(true, "", "a link to a description")
			return
		}
	}
	if a.kind == mismatch || a.kind == alreadyDone {
		x.want(true, "", "%s, as the profile spells it", a)
		return
	}
	kind := a.header.Get("Content-Type")
	var details map[string]any
	fine := strings.HasPrefix(kind, "application/problem+json") && json.Unmarshal(a.body, &details) == nil
	x.should(fine, "problem details, or a Link with rel=describedby", "%s of type %q", extent(a.body), kind)
}

// conflictNoLeak checks that the refusal of another request under a used key shows neither the reference nor the id of the first request. Texts under
// four bytes are left out: they may stand in any body by chance. An answer "already done" names the first resource on purpose.
func conflictNoLeak(x *trial, op, _ *operation, first, answered *answer) {
	if answered.kind == done || answered.kind == alreadyDone {
		x.skip("it was not refused: %s", answered)
		return
	}
	for _, secret := range []struct{ what, text string }{{"reference", op.ref}, {"id", first.id}} {
		if len(secret.text) < 4 {
			continue
		}
		shown := bytes.Contains(answered.body, []byte(secret.text))
		x.want(!shown, "nothing of the first request", "%s the %s of the first request", yesNo(shown, "it shows", "it does not show"), secret.what)
	}
}

// lateDifference sends a large body twice under one key, the second time with one byte near its end changed: it must be refused. So it finds servers
// that compare only the beginning of a body. firstLarge has filled the body up with the letter x: the last one of them becomes y.
func lateDifference(x *trial) {
	op, first, ok := x.firstLarge()
	if !ok {
		return
	}
	tail := op.with(func(dup *operation) {
		dup.body = bytes.Replace(op.body, []byte(`xx"`), []byte(`xy"`), 1)
	})
	other := x.do(tail, "the same but for one byte near the end")
	if other.kind == noAnswer {
		x.inconclusive("the other request met no answer: %s", other)
		return
	}
	same, known := sameOutcome(first, other)
	if other.kind == done && !known && !other.replayed && !x.counts() && !first.names() {
		x.inconclusive("the answer %s names nothing, and nobody counts effects (--witness)", other)
		return
	}
	// a success with a name of its own was executed: the count of effects judges that
	x.want(other.kind != done || known && !same, "a refusal", "%s", other)
	x.wantEffects(op, 1, "both, which differ in one byte")
}

// equalityCases returns the cases about bodies that a server may take for the same request or for another one, such as one with its members in
// another order. A case is skipped if the target lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those
// named by invariant and outline are the suite's own.
func equalityCases() []Case {
	make := func(id, rule string, vary func(body []byte) (first, second []byte, ok bool)) Case {
		return Case{
			ID: id, Level: LevelPolicy, Needs: []Need{NeedJSON}, After: []string{"conflict/not-executed", "replay/answered", "replay/effects-once"},
			Spec:   []Ref{draft07("2.4", "The fingerprint is the server's choice: all of the payload, or chosen elements."), outline("T6")},
			Rule:   rule + " is the same request or another one, and never executed again.",
			Impact: "A client that encodes its JSON anew is refused, which it has to know.",
			run:    func(x *trial) { equality(x, vary) },
		}
	}
	return []Case{
		make("conflict/json-respelled", "A body with its members in another order and other white space", respell),
		make("conflict/null-vs-absent", "A body with a member that is null", func(body []byte) ([]byte, []byte, bool) {
			return body, withMember(body, "note", "null"), true
		}),
		make("conflict/1.0-vs-1", "A body in which 1 is spelled 1.0", func(body []byte) ([]byte, []byte, bool) {
			return withMember(body, "quantity", "1"), withMember(body, "quantity", "1.0"), true
		}),
		make("conflict/array-order", "A body with a list in another order", func(body []byte) ([]byte, []byte, bool) {
			return withMember(body, "tags", `["a","b"]`), withMember(body, "tags", `["b","a"]`), true
		}),
	}
}

// equality sends the two bodies of vary under one key. The server's choice is an observation; more than one effect fails. If vary returns false the
// case is skipped. vary returns the first and the second body from the usual one.
func equality(x *trial, vary func([]byte) ([]byte, []byte, bool)) {
	op := x.newOperation()
	one, two, ok := vary(op.body)
	if !ok {
		x.skip("the body cannot be spelled otherwise")
		return
	}
	first, ok := x.first(op.with(func(dup *operation) { dup.body = one }))
	if !ok {
		return
	}
	second := x.again(op.with(func(dup *operation) { dup.body = two }), "the same, spelled otherwise")
	n, ok := x.effects(op.ref)
	if !ok {
		return
	}
	x.noteEffects("its reference", n)
	if !x.atMost(op, 1, n, "both spellings") {
		return
	}
	// without names it is true: there was one effect at most, so a success is the first one's
	same, _ := sameOutcome(first, second)
	switch {
	case second.outcome() && same:
		x.seen("the same request: %s", second)
	case second.kind == mismatch || second.kind == refused || second.kind == business:
		x.seen("another request: %s", second)
	default:
		x.seen("answered %s", second)
	}
}

// respell returns the body, and the same object with its members in the opposite order (by the place of each name in the text) and other white space.
// False: it is no object with two members at least.
func respell(body []byte) (first, second []byte, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || len(members) < 2 {
		return nil, nil, false
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return bytes.Index(body, []byte(`"`+b+`"`)) - bytes.Index(body, []byte(`"`+a+`"`))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("  %q : %s", name, members[name]))
	}
	return body, []byte("{\n" + strings.Join(parts, ",\n") + "\n}"), true
}

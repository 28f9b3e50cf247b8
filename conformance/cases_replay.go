package conformance

import (
	"bytes"
	"slices"
	"strings"
)

// replayCases returns the cases about a repeat of a request after the answer to the first one.
func replayCases() []Case { return slices.Concat(repeatCases(), sameAnswerCases()) }

// repeatCases returns the basic cases: a repeat is answered with the first outcome, and has no second effect. Most other cases depend on them. A case
// is skipped if the target lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and
// outline are the suite's own.
func repeatCases() []Case {
	return []Case{
		{
			ID: "replay/answered", Level: LevelMust,
			Spec:   []Ref{drafted26(), outline("T1"), outline("T2")},
			Rule:   "A repeat of a completed request is answered with the outcome of the first.",
			Impact: "A client whose answer was lost never learns what happened, or pays again under a new key.",
			run:    replayAnswered,
		}, {
			ID: "replay/first-executes-once", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedWitness},
			Spec:   []Ref{invariant("S1"), outline("T1")},
			Rule:   "One request has one effect.",
			Impact: "Every customer is charged twice, and no retry is needed for it.",
			Fix: "Run the operation once for each request that is taken. Usual causes: the handler and a queue both act, a retry inside the server " +
				"around work that is not idempotent, or a witness that counts attempts and not effects.",
			run: func(x *trial) {
				op := x.newOperation()
				if _, ok := x.first(op); ok {
					x.wantEffects(op, 1, "one request")
				}
			},
		}, {
			ID: "replay/effects-once", Level: LevelSafety, Needs: []Need{NeedEffects}, After: []string{"replay/first-executes-once"},
			Spec:   []Ref{invariant("S1"), drafted22(), outline("T2")},
			Rule:   "A repeat of a completed request is not executed again.",
			Impact: "The customer is charged once for every retry.",
			run:    replayOnce,
		}, {
			ID: "replay/status", Level: LevelShould, After: []string{"replay/answered", "replay/effects-once"},
			Spec:   []Ref{drafted26(), outline("T2")},
			Rule:   "A repeat has the status of the first answer.",
			Impact: "A client that tells 201 from 200 takes the retry for something else.",
			run: onReplay(func(x *trial, first, again *answer) {
				x.want(again.status == first.status, "the first status", "%d, then %d", first.status, again.status)
			}),
		},
	}
}

// sameAnswerCases returns the cases that compare the answer to a repeat with the first answer: body, headers, cookies, and the mark of a replay. A
// case is skipped if the target lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant
// and outline are the suite's own.
func sameAnswerCases() []Case {
	return []Case{
		{
			ID: "replay/body-bytes", Level: LevelShould, After: []string{"replay/answered", "replay/effects-once"},
			Spec:   []Ref{drafted26(), outline("T2"), practice("Some APIs answer with the current state of the resource instead.")},
			Rule:   "A repeat has the body of the first answer, byte for byte.",
			Impact: "The id of the payment is missing from, or differs in, the answer to the retry.",
			run: onReplay(func(x *trial, first, again *answer) {
				x.want(bytes.Equal(again.body, first.body), "the first body", "%s, then %s", extent(first.body), extent(again.body))
			}),
		}, {
			ID: "replay/headers", Level: LevelShould, After: []string{"replay/answered", "replay/effects-once"},
			Spec:   []Ref{drafted26(), outline("T2")},
			Rule:   "A repeat has the Content-Type, Location and Content-Encoding of the first answer.",
			Impact: "The retry cannot be parsed, or does not lead to the resource.",
			run:    onReplay(replayHeaders),
		}, {
			ID: "replay/no-set-cookie", Level: LevelShould, After: []string{"replay/answered", "replay/effects-once"},
			Spec:   []Ref{rfc("9111", "7.3", "A stored Set-Cookie can be given to whom it was not meant for."), draftedSecurity()},
			Rule:   "A repeat is not given the cookies of the first answer.",
			Impact: "A session of the first caller is handed to whoever presents the key.",
			run: onReplay(func(x *trial, first, again *answer) {
				cookies := first.header.Values("Set-Cookie")
				if len(cookies) == 0 {
					x.skip("the first answer sets no cookie")
					return
				}
				shared := strings.Join(again.header.Values("Set-Cookie"), "\n") == strings.Join(cookies, "\n")
				x.want(!shared, "no cookie of the first answer", "%s of the first answer", yesNo(shared, "the Set-Cookie", "none"))
			}),
		}, {
			ID: "replay/marker", Level: LevelObserve, After: []string{"replay/answered", "replay/effects-once"},
			Spec: []Ref{practice("Idempotent-Replayed: true (Stripe, Mollie, Increase, Whop, Alpaca); many have none."), outline("T21")},
			Rule: "Whether a replay says that it is one.", Impact: "Without a mark a client cannot tell a replay from a second execution.",
			run: onReplay(func(x *trial, first, again *answer) { x.seen("%s", markers(x, first, again)) }),
		}, {
			ID: "replay/not-marked-when-first", Level: LevelMust, After: []string{"replay/answered", "replay/effects-once"},
			Spec:   []Ref{practice("The replay mark stands on replays only (T21)."), outline("T21")},
			Rule:   "The answer to the first request does not carry the mark of a replay.",
			Impact: "A client takes what has just happened for what happened before.",
			run: onReplay(func(x *trial, first, _ *answer) {
				x.want(!first.replayed, "no mark on the first answer", "the first answer was %s", first)
			}),
		},
	}
}

// replayAnswered repeats an operation: it gets the first outcome. After a failure the report names another key header, if the server honours one
// (otherCarrier).
func replayAnswered(x *trial) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return
	}
	again := x.again(op, "the repeat")
	where := ""
	if same, known := sameOutcome(first, again); again.outcome() && known && !same {
		if name := x.otherCarrier(); name != "" {
			where = "; it honours " + name + " (--key-header)"
		}
	}
	x.wantFirst(op, first, again, where)
}

// otherCarrier returns the name of another header under which the server honours keys; "" if it finds none. Clients without that name are unprotected
// and do not notice. It sends operations with the key under each usual name alone, and a repeat with the same outcome is the sign.
func (x *trial) otherCarrier() string {
	if !x.r.o.inHeader() {
		return ""
	}
	for _, name := range keyHeaders() {
		if strings.EqualFold(name, x.r.o.Profile.Carrier.Name) {
			continue
		}
		op := x.newOperation()
		op.keyless, op.extra = true, append(op.extra, [2]string{name, op.key})
		first, again := x.do(op, "under "+name), x.again(op, "under "+name)
		if same, known := sameOutcome(first, again); first.kind == done && again.outcome() && known && same {
			return name
		}
	}
	return ""
}

// replayOnce sends an operation and repeats it twice. There must be one effect. Without a counter, effects are inferred from names in answers: a
// repeat that names nothing and has no mark of a replay leaves it open.
func replayOnce(x *trial) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return
	}
	for range 2 {
		again := x.again(op, "the repeat")
		if _, known := sameOutcome(first, again); again.kind == done && !known && !x.counts() && !again.replayed {
			x.inconclusive("the repeat was answered %s, which does not name what it is about, and nobody counts effects (--witness)", again)
			return
		}
	}
	x.wantEffects(op, 1, "its reference")
}

// onReplay returns a case that sends an operation, repeats it, and calls check with both
// answers. A repeat that is "already done", as the profile declares, skips the case.
func onReplay(check func(x *trial, first, again *answer)) func(*trial) {
	return func(x *trial) {
		op := x.newOperation()
		first, ok := x.first(op)
		if !ok {
			return
		}
		x.replayOf(op, first, check)
	}
}

// replayOf repeats op and calls check with its first answer and the replay. An "already done"
// repeat, as the profile declares, skips the case; any other answer makes it inconclusive.
func (x *trial) replayOf(op *operation, first *answer, check func(x *trial, first, again *answer)) {
	again := x.again(op, "the repeat")
	switch again.kind {
	case alreadyDone:
		x.skip("the profile declares that a repeat is answered %d, already done", again.status)
	case done:
		check(x, first, again)
	default:
		x.inconclusive("the repeat was answered %s", again)
	}
}

// replayHeaders checks that the replay has Content-Type, Content-Encoding and Location of the
// first answer.
func replayHeaders(x *trial, first, again *answer) {
	for _, name := range []string{"Content-Type", "Location", "Content-Encoding"} {
		before, after := first.header.Get(name), again.header.Get(name)
		x.want(before == after, name+" as before", "%s %q, then %q", name, before, after)
	}
}

// markers returns the header fields that the replay has and the first answer has not, or has with another value, in words for the report. Date and
// length of the body change in any answer, and mark nothing.
func markers(x *trial, first, again *answer) string {
	var names []string
	for _, name := range sortedNames(again.header) {
		if name == "Date" || name == "Content-Length" || first.header.Get(name) == again.header.Get(name) {
			continue
		}
		names = append(names, name+": "+again.header.Get(name))
	}
	declared := "which is not a mark of the profile"
	if again.replayed {
		declared = "as the profile declares"
	}
	if len(names) == 0 {
		return "a replay carries no mark"
	}
	return strings.Join(names, ", ") + ", " + declared
}

// extent returns the length of a body in words.
func extent(body []byte) string { return plural(len(body), "byte") }

// yesNo returns yes if b is true, else no.
func yesNo(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

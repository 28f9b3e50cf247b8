package conformance

import (
	"strings"
)

// boundCases returns the cases about keys at the limits of their length, and about values that are no valid keys. A case is skipped if the target
// lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's
// own.
func boundCases() []Case {
	needs := []Need{NeedHeader, NeedAlphabet}
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "key/255-accepted", Level: LevelShould, Needs: needs, After: after,
			Spec:   []Ref{practice("255 bytes are the most common limit (Stripe, Zuora, Whop, Solidgate)."), outline("T10")},
			Rule:   "The longest key that the profile allows is accepted, and all of it counts.",
			Impact: "Keys are cut, and two orders with a common beginning become one.",
			run:    longestAccepted,
		}, {
			ID: "key/5000-rejected-4xx", Level: LevelShould, Needs: needs, After: after,
			Spec: []Ref{draftedSecurity(), outline("T10")}, Rule: "A key of 5,000 bytes is refused with a 4xx and executes nothing.",
			Impact: "Keys fill the store, or are cut until two of them are one.",
			run:    tooLong,
		}, {
			ID: "key/invalid-is-4xx", Level: LevelMust, Needs: []Need{NeedHeader},
			Spec: []Ref{draft07("5", "Validate the key against its published format before any work."), outline("T10")},
			Rule: "A key that cannot be accepted is answered with a 4xx and not with a server error.", Impact: "A client retries for ever what can never succeed.",
			run: invalidIs4xx,
		}, {
			ID: "key/invalid-not-executed", Level: LevelSafety, Needs: []Need{NeedHeader, NeedEffects}, After: after,
			Spec:   []Ref{invariant("S4"), draftedSecurity(), outline("T10")},
			Rule:   "A request whose key is refused is not executed, and one whose key is accepted is protected by it.",
			Impact: "A key with a space in it is dropped in silence, and the retry pays again.",
			run:    invalidNotExecuted,
		}, {
			ID: "key/non-ascii", Level: LevelShould, Needs: needs, After: after,
			Spec: []Ref{drafted21(), rfc("9651", "3.3.3", "Strings are printable ASCII."), outline("T10")},
			Rule: "Keys with other characters than ASCII are refused, or at least kept apart.", Impact: "Two keys become one when both are written with question marks.",
			run: func(x *trial) {
				x.apart([][2]string{{"é", "è"}, {"\xe9", "\xe8"}, {"日", "月"}})
			},
		},
	}
}

// longestAccepted sends two keys of the profile's greatest length that differ in their last
// byte. Both must be accepted, as two operations, and the first is replayed.
func longestAccepted(x *trial) {
	limit := x.r.keyBytesMax()
	op := x.newOperation()
	// then every other case has tried this length already
	if limit <= len(op.key) {
		x.skip("the profile's longest key, %d bytes, is no longer than those that every case sends", limit)
		return
	}
	long := op.key + strings.Repeat("k", limit-len(op.key)-1) // one byte short of the limit
	last := func(end string) *operation {
		return x.newOperation().with(func(dup *operation) {
			dup.key = long + end
			dup.fill(x.r) // puts the key into the body and the query, too, where the target wants it there
		})
	}
	one, two := last("1"), last("2")
	first := x.do(one, "the longest key")
	if first.kind == noAnswer {
		x.inconclusive("it met no answer: %s", first)
		return
	}
	x.noServerError(first, "success", "%s for a key of %d bytes", first, limit)
	if !x.want(first.kind == done, "success", "%s for a key of %d bytes", first, limit) {
		return
	}
	second := x.do(two, "another one, which differs in its last byte")
	same, known := sameOutcome(first, second)
	x.judge(errorOrOwn(second), second.kind == done && !(known && same), VerdictFail, "another operation", "%s, then %s for keys that differ in their last byte", first, second)
	if second.kind == done && x.counts() {
		x.wantEffects(two, 1, "the second of two long keys")
	}
	x.wantFirst(one, first, x.again(one, "the repeat of the first"), "")
}

// tooLong sends a key of 5,000 bytes: it must be refused without an effect, or protect like any other key. A closed connection is a refusal, too.
// spelled sets the value of the key's header only.
func tooLong(x *trial) {
	op := x.newOperation()
	op = spelled(op, encode(x.r.o.Profile, op.key+strings.Repeat("k", 5000-len(op.key))))
	a := x.do(op, "a key of 5,000 bytes")
	if a.kind == noAnswer {
		x.want(true, "", "the connection was closed: %s", errorText(a.err))
		x.notExecuted(op, a, "the refused")
		return
	}
	x.noServerError(a, "a 4xx", "%s", a)
	if x.want(a.kind != done, "a 4xx", "%s", a) {
		x.notExecuted(op, a, "the refused")
		return
	}
	x.keptOnce(op, a)
}

// oddKeys returns values that are no keys in any published format, each beginning with base, or with a quote and base. what describes the value for
// the report; line is the value of the header as sent. Some servers accept some of them.
func oddKeys(base string) []struct{ what, line string } {
	return []struct{ what, line string }{
		{"a space", base + " b"},
		{"a control character", base + "\x01"},
		{"DEL", base + "\x7f"},
		{"a tab", base + "\tb"},
		{"a quote that does not end", `"` + base},
		{"a comma", base + ",b"},
		{"bytes that are no UTF-8", base + "\xff\xfe"},
	}
}

// invalidIs4xx sends an operation with each of several invalid keys. The target may refuse or take them, but not answer with a server error. A closed
// connection counts as a refusal.
func invalidIs4xx(x *trial) {
	for _, odd := range oddKeys(x.newOperation().key) {
		a := x.do(spelled(x.newOperation(), odd.line), odd.what)
		if a.kind == noAnswer {
			x.find(VerdictPass, "the connection was closed after a key with "+odd.what)
			continue
		}
		x.want(a.status < 500, "a 4xx, or success", "%s for a key with %s", a, odd.what)
	}
}

// invalidNotExecuted sends each of oddKeys, and repeats the accepted ones: a key that the server drops protects nothing, and the repeat shows it.
// Refused ones must have no effect. An accepted one that is refused the second time had its one effect, and is fine.
func invalidNotExecuted(x *trial) {
	// only the number of values counts here: each is built anew around the key of its operation
	for i := range oddKeys("") {
		op := x.newOperation()
		odd := oddKeys(op.key)[i]
		bad := spelled(op, odd.line)
		a := x.do(bad, odd.what)
		if a.kind == done {
			again := x.again(bad, "the repeat")
			if same, known := sameOutcome(a, again); again.kind == done && !known && !x.counts() {
				x.inconclusive("the answers %s and %s name nothing, and nobody counts effects (--witness)", a, again)
			} else if again.kind == done && known {
				x.wantOrHarm(x.sameOrTwice(op, same), same, "the outcome of the first request", "%s, then %s for a key with %s", a, again, odd.what)
			}
			x.wantEffects(op, 1, "the accepted with "+odd.what)
			continue
		}
		x.notExecuted(op, a, "the refused with "+odd.what)
	}
}

// errorOrOwn returns the harm (the damage that a finding shows) of an answer that should be a success: errored for a server error, else ownHarm, the
// subject of the case itself.
func errorOrOwn(a *answer) harm {
	if a.status >= 500 {
		return errored
	}
	return ownHarm
}

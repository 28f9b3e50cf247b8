package conformance

import (
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// drafted reports whether the profile follows the IETF draft of the Idempotency-Key header, with keys as structured-field Strings (in quotes). For
// other profiles the draft's rules on spelling are observations, and no failures.
func (x *trial) drafted() bool {
	p := x.r.o.Profile
	return p.Encoding == profile.SFString || strings.HasPrefix(p.Name, "draft")
}

// spellingCases returns the cases about spellings of a key in its header: quoted, with parameters, in two lines. A case is skipped if the target
// lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's
// own.
func spellingCases() []Case {
	needs := []Need{NeedHeader, NeedAlphabet}
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "key/sf-string-accepted", Level: LevelMust, Needs: needs, After: after,
			Spec:   []Ref{drafted21(), outline("T8")},
			Rule:   "A key in double quotes, as the draft spells it, is accepted, and repeats of it are replayed.",
			Impact: "A client that follows the draft gets a 500 for its first payment.",
			run:    sfAccepted,
		}, {
			ID: "key/quoted-equals-bare", Level: LevelObserve, Needs: needs, After: after,
			Spec: []Ref{outline("T9"), practice("http4s reads both as the same key.")},
			Rule: "Whether a key in quotes and the same key bare are one key.", Impact: "A client that begins to quote pays again for what is under way.",
			run: quotedEqualsBare,
		}, {
			ID: "key/malformed-sf-rejected", Level: LevelShould, Needs: needs, After: after,
			Spec: []Ref{drafted21(), rfc("9651", "4.2", "When parsing fails, the field is ignored or the message is malformed."), outline("T8")},
			Rule: "A quoted key that does not end, or has garbage behind it, is refused.", Impact: "A cut header becomes a key that its owner never sees again.",
			run: malformedRejected,
		}, {
			ID: "key/sf-parameters-ignored", Level: LevelShould, Needs: needs, After: append([]string{"key/sf-string-accepted"}, after...),
			Spec: []Ref{drafted21(), rfc("9651", "3.3", "An Item may have parameters; those that are not known are ignored."), outline("T8")},
			Rule: "Parameters behind a quoted key are no part of it.", Impact: "A proxy that adds a parameter makes a retry a new payment.",
			run: parametersIgnored,
		}, {
			ID: "key/two-lines", Level: LevelShould, Needs: []Need{NeedHeader}, After: after,
			Spec: []Ref{rfc("9110", "5.3", "A sender must not send several lines of a field that is no list."), outline("T8")},
			Rule: "A request with two different keys is refused.", Impact: "Client, proxy and server each take another one of them for the key.",
			run: twoLines,
		},
	}
}

// spelled returns a copy of op with these values in its key headers, one for each line.
func spelled(op *operation, lines ...string) *operation {
	return op.with(func(dup *operation) { dup.lines = lines })
}

// sfAccepted sends a key as a quoted structured-field String, and repeats it, then one with escapes. If the profile does not ask for quotes, a
// refusal is allowed. Of the key with escapes (\" and \\) only a server error, or no answer, fails: they are rare.
func sfAccepted(x *trial) {
	op := x.newOperation()
	quoted := spelled(op, quote(op.key))
	first := x.do(quoted, "quoted")
	if first.kind == noAnswer {
		x.inconclusive("it met no answer: %s", first)
		return
	}
	x.noServerError(first, "success", "%s", first)
	if first.kind != done {
		if first.status < 500 && !x.drafted() {
			x.seen("refused: %s", first)
			return
		}
		x.want(false, "success", "%s", first)
		return
	}
	x.wantFirst(quoted, first, x.again(quoted, "the repeat"), "")
	if x.counts() {
		x.wantEffects(op, 1, "its reference")
	}
	odd := x.newOperation()
	escaped := x.do(spelled(odd, `"a\"b\\c-`+odd.key[:min(len(odd.key), 24)]+`"`), `with \" and \\`)
	x.judge(errored, escaped.status < 500 && escaped.kind != noAnswer, VerdictFail, "success, or 400", "%s for a key with escapes", escaped)
}

// quotedEqualsBare sends a key bare and then in quotes, and records whether they are one key, without a judgement. A success that names nothing
// counts as a second execution.
func quotedEqualsBare(x *trial) {
	op := x.newOperation()
	first := x.do(spelled(op, op.key), "bare")
	if first.kind != done {
		x.seen("a bare key is answered %s", first)
		return
	}
	second := x.again(spelled(op, quote(op.key)), "quoted")
	same, known := sameOutcome(first, second)
	switch {
	case second.outcome() && same && known:
		x.seen("one key")
	case second.kind == done:
		x.seen("two keys: the request was executed again")
	default:
		x.seen("a quoted key is answered %s", second)
	}
}

// opaque reports whether the server keeps the quotes as a part of the key: a quoted and a bare key are both accepted, and are two keys. It sends two
// operations; false also means that it could not tell. The second has a reference of its own: one effect of that shows two keys, where the answers
// name nothing.
func (x *trial) opaque() bool {
	op, other := x.newOperation(), x.newOperation()
	other.key = op.key
	bare, quoted := x.do(spelled(op, op.key), "bare"), x.do(spelled(other, quote(op.key)), "the same key, quoted")
	if bare.kind != done || quoted.kind != done {
		return false
	}
	if same, known := sameOutcome(bare, quoted); known {
		return !same
	}
	n, ok := 0, false
	if x.counts() {
		n, ok = x.settledEffects(other.ref, 1)
	}
	return ok && n == 1
}

// malformedRejected sends quoted keys with a wrong end: they must be refused without an effect. A server that keeps quotes as a part of the key
// (opaque) may accept them, and so may any under a profile without quoted keys. What is accepted must still be protected (keptOnce).
func malformedRejected(x *trial) {
	lax := !x.drafted() || x.opaque()
	for _, tail := range []string{"", `"x`, `";=1`} {
		op := x.newOperation()
		bad := spelled(op, `"`+op.key+tail)
		a := x.do(bad, "malformed")
		switch {
		case a.kind == noAnswer:
			x.inconclusive("it met no answer: %s", a)
		case a.kind == done && lax:
			x.seen("keys are taken as they stand: %s", a)
			x.keptOnce(bad, a)
		case a.kind == done:
			x.want(false, "a refusal", "%s for a key that begins with a quote and ends with %q", a, tail)
			x.keptOnce(bad, a)
		default:
			x.wantOrHarm(errored, a.status < 500, "a refusal", "%s for a key that begins with a quote and ends with %q", a, tail)
			x.notExecuted(op, a, "the malformed")
		}
	}
}

// keptOnce repeats a request whose odd key was accepted. The repeat must not be executed again, but may be refused or told to wait.
func (x *trial) keptOnce(op *operation, first *answer) {
	again := x.again(op, "the repeat")
	same, known := sameOutcome(first, again)
	if again.kind == done && known {
		x.wantOrHarm(x.sameOrTwice(op, same), same, "the outcome of the first request", "%s, then %s for one key", first, again)
	}
	if x.counts() {
		x.wantEffects(op, 1, "what was accepted under an odd key")
	}
}

// parametersIgnored sends one quoted key with two different parameters behind it. Under a profile with structured fields they are one key; else the
// result is only recorded. So it is if the server takes the quotes, and all behind them, as a part of the key (opaque).
func parametersIgnored(x *trial) {
	if x.drafted() && x.opaque() {
		x.seen("keys are taken as they stand, parameters and all")
		return
	}
	op := x.newOperation()
	first := x.do(spelled(op, quote(op.key)+";v=1"), "with v=1")
	if first.kind != done {
		if !x.drafted() {
			x.seen("a key with parameters is answered %s", first)
			return
		}
		x.want(false, "success", "%s for a key with parameters", first)
		return
	}
	again := x.again(spelled(op, quote(op.key)+";v=2"), "with v=2")
	if !x.drafted() {
		x.seen("%s, then %s", first, again)
		return
	}
	x.wantFirst(op, first, again, " with another parameter")
}

// twoLines sends a request with two different keys, in two lines of the header. It must be refused, without an effect: else nobody knows which one is
// the key. If it is accepted, a repeat must at least not be executed again (keptOnce).
func twoLines(x *trial) {
	op, other := x.newOperation(), x.newOperation()
	both := spelled(op, encode(x.r.o.Profile, op.key), encode(x.r.o.Profile, other.key))
	a := x.do(both, "two key headers")
	if a.kind == noAnswer {
		x.inconclusive("it met no answer: %s", a)
		return
	}
	x.noServerError(a, "a refusal", "%s", a)
	if x.want(a.kind != done, "a refusal", "%s", a) {
		x.notExecuted(op, a, "the ambiguous")
		return
	}
	x.keptOnce(both, a)
}

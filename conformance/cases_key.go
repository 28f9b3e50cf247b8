package conformance

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// keyCases returns the cases about requests without a key, and about keys that are nearly the same.
func keyCases() []Case { return slices.Concat(missingKeyCases(), alikeKeyCases()) }

// missingKeyCases returns the cases about requests without a key, or with an empty one, and about keys that differ in case. A case is skipped if the
// target lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the
// suite's own.
func missingKeyCases() []Case {
	header := []Need{NeedHeader}
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "key/missing", Level: LevelPolicy, Needs: header,
			Spec: []Ref{drafted27("A key that is missing where one is documented as required: 400."), outline("T7"), outline("T18")},
			Rule: "A request without a key is refused with 400 where keys are required, and executed where they are not.", Impact: "A client that forgets the key is not told.",
			run: keyMissing,
		}, {
			ID: "key/missing-not-merged", Level: LevelSafety, Needs: []Need{NeedHeader, NeedEffects}, After: []string{"replay/first-executes-once"},
			Spec:   []Ref{invariant("S5")},
			Rule:   "Requests without a key are never taken for one another.",
			Impact: "Two customers who buy the same thing are charged once, and one of them gets the other's receipt.",
			run:    missingNotMerged,
		}, {
			ID: "key/empty-not-shared", Level: LevelSafety, Needs: []Need{NeedHeader, NeedEffects},
			Spec:   []Ref{invariant("S5"), draftedSecurity(), outline("T10")},
			Rule:   "An empty or blank key header is refused or ignored, and is not one key for everybody.",
			Impact: "A client with an empty variable gets a stranger's payment.",
			run:    emptyNotShared,
		}, {
			ID: "key/case-sensitive", Level: LevelMust, Needs: []Need{NeedHeader, NeedAlphabet}, After: after,
			Spec:   []Ref{drafted22(), practice("Keys are case-sensitive (Pagar.me, EC2).")},
			Rule:   "Keys that differ in case are two keys.",
			Impact: "With base64 keys, one customer's order now and then answers another's.",
			run: func(x *trial) {
				// apart returns the number of pairs that the target took
				if x.apart([][2]string{{"Abc", "aBC"}, {"KEY", "key"}}) == 0 {
					x.inconclusive("every key of this kind was refused, which does not tell whether two of them are kept apart")
				}
			},
		},
	}
}

// alikeKeyCases returns the cases about keys that are nearly the same, and about unusual ones. A case is skipped if the target lacks one of its
// Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own.
func alikeKeyCases() []Case {
	header := []Need{NeedHeader}
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "key/hostile-names", Level: LevelSafety, Needs: []Need{NeedHeader, NeedAlphabet}, After: after,
			Spec:   []Ref{drafted22(), draftedSecurity()},
			Rule:   "Keys with punctuation, or with names that mean something to a language, are keys like any other.",
			Impact: "Two keys become one after trimming or normalising, or one request breaks the store.",
			run:    hostileNames,
		}, {
			ID: "key/digits", Level: LevelMust, Since: "1.1", Needs: []Need{NeedHeader, NeedAlphabet}, After: after,
			Spec:   []Ref{drafted22(), drafted21()},
			Rule:   "Keys of digits are text: leading zeros and the last of twenty digits count.",
			Impact: "Two order numbers are one key, and the second order is never charged.",
			Fix:    "Treat the key as text everywhere, also in the store. Usual causes: a numeric column, or a JSON library that reads numbers out of strings.",
			run: func(x *trial) {
				digits := x.digits()
				taken := count(x.distinct([2]string{digits, "0" + digits})) + count(x.distinct([2]string{digits + "1", digits + "2"}))
				if taken == 0 {
					x.inconclusive("keys of digits are refused, which does not tell whether two of them are kept apart")
				}
			},
		}, {
			ID: "key/short-protected", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedHeader, NeedAlphabet, NeedEffects}, After: after,
			Spec:   []Ref{invariant("S4"), drafted22()},
			Rule:   "A key of seven characters is refused, or protects like any other.",
			Impact: "Order numbers are passed over as keys that are too short, and every retry pays again.",
			Fix:    "Refuse with a 4xx what is too short to be a key. Usual cause: a check of the length that falls through to the handler.",
			run: func(x *trial) {
				op := x.newOperation().with(func(dup *operation) {
					dup.key = digestHex("short\x00" + dup.key)[:7]
					dup.fill(x.r)
				})
				x.hostile(op)
			},
		}, {
			ID: "key/header-name-case", Level: LevelMust, Since: "1.1", Needs: header, After: after,
			Spec:   []Ref{rfc("9110", "5.1", "Field names are case-insensitive."), practice("HTTP/2 and many clients send field names in lower case.")},
			Rule:   "A key whose header is spelled in lower case is the same key.",
			Impact: "Clients behind a proxy that speaks HTTP/2 are not protected at all.",
			Fix:    "Look the header up without regard to case. Usual cause: the raw header map is read with one spelling.",
			run:    headerNameCase,
		}, {
			ID: "key/first-character", Level: LevelMust, Needs: header,
			Spec:   []Ref{drafted21(), outline("T8b"), practice("A bare UUID that begins with a to f parses as a token, one that begins with a digit as a number and garbage.")},
			Rule:   "UUIDs that begin with a letter and with a digit get the same verdict.",
			Impact: "Ten requests in sixteen go unprotected, and which ones looks random.",
			run:    firstCharacter,
		},
	}
}

// keyMissing sends an operation without a key. It may be executed or refused; a refusal should be 400, readable by programs (wantShape), and without
// an effect.
func keyMissing(x *trial) {
	op := x.newOperation().with(func(dup *operation) { dup.keyless = true })
	a := x.do(op, "without a key")
	switch {
	case a.kind == noAnswer:
		x.inconclusive("it met no answer: %s", a)
	case a.status >= 500:
		x.noServerError(a, "400, or success", "%s", a)
	case a.kind == done:
		x.seen("executed: %s", a)
	default:
		x.seen("refused: %s", a)
		x.should(a.status == 400, "400", "%s", a)
		x.wantShape(a)
		x.notExecuted(op, a, "the request without a key")
	}
}

// missingNotMerged sends the same body twice without a key: both must be executed, or both refused. The second comes from the second caller if there
// is one. Both have the same reference, so that a right server counts two effects of it.
func missingNotMerged(x *trial) {
	stranger := x.strangerServed()
	op := x.newOperation().with(func(dup *operation) { dup.keyless = true })
	other := op.with(func(dup *operation) { dup.stranger = stranger })
	one, two := x.do(op, "without a key"), x.do(other, "the same, without a key")
	if one.kind == noAnswer || two.kind == noAnswer {
		x.inconclusive("a request without a key met no answer: %s, %s", one, two)
		return
	}
	if one.kind == done && (two.kind == business || two.kind == alreadyDone) {
		x.seen("the profile declares that the business reference is a key of its own: %s", two)
		return
	}
	x.want((two.kind == done) == (one.kind == done), "both refused, or both executed", "%s, then %s", one, two)
	if one.kind != done {
		x.notExecuted(op, one, "the refused")
		return
	}
	if same, known := sameOutcome(one, two); known {
		x.want(!same, "an effect of its own", "%s, then %s", one, two)
	} else if !x.counts() {
		x.inconclusive("the answers %s and %s name nothing, and nobody counts effects (--witness)", one, two)
		return
	}
	x.wantEffects(op, 2, "both requests without a key")
}

// strangerServed reports whether there is a second caller (Options.As), and an operation of that caller succeeds. If not, a refusal of the second
// caller shows nothing about keys.
func (x *trial) strangerServed() bool {
	if x.r.o.As == nil {
		return false
	}
	op := x.changedOperation(func(dup *operation) { dup.stranger = true })
	return x.do(op, "the second caller, with a key of its own").kind == done
}

// emptyNotShared sends empty and blank keys, each with two different bodies. Such a key must not be one key for all callers: the second body comes
// from the second caller if there is one (stranger). known tells a refusal for a key of another request.
func emptyNotShared(x *trial) {
	known := x.mismatchAnswer()
	stranger := x.strangerServed()
	for _, line := range []string{"", "   "} {
		x.notShared(line, stranger, known)
	}
	if x.opaque() {
		x.seen("keys are taken as they stand, so that the value \"\" is a key of two characters")
		return
	}
	x.notShared(`""`, stranger, known)
}

// notShared sends one key value with two bodies, the second as the second caller if stranger is true. known reports whether a refusal is one for a
// key of another request: then this value is one key for all.
func (x *trial) notShared(line string, stranger bool, known func(*answer) bool) {
	empty := func(dup *operation) { dup.key, dup.lines = "", []string{line} }
	op, other := x.newOperation().with(empty), x.newOperation().with(empty)
	other.stranger = stranger
	one, two := x.do(op, "the value "+strconv.Quote(line)), x.do(other, "the same value, another body")
	if one.kind == noAnswer || two.kind == noAnswer {
		x.inconclusive("the value %q met no answer: %s, %s", line, one, two)
		return
	}
	x.judge(errored, one.status < 500 && two.status < 500, VerdictWarn, "400, or success", "%s, then %s for the value %q", one, two, line)
	same, named := sameOutcome(one, two)
	fair := (one.kind == done) == (two.kind == done) && !(one.kind == done && named && same)
	x.want(fair, "both refused, or both executed", "%s, then %s for the value %q", one, two, line)
	if one.kind == done && two.kind == done {
		if !named && !x.counts() {
			x.inconclusive("the answers %s and %s name nothing, and nobody counts effects (--witness)", one, two)
			return
		}
		x.wantEffects(other, 1, "the second request with the value "+strconv.Quote(line))
	}
	if one.kind != done {
		taken := known(one) || known(two)
		x.want(!taken, "a refusal of the value itself", "%s, %s the value %q", one, yesNo(taken, "as for a key that another request holds, for", "for"), line)
	}
}

// mismatchAnswer returns a function that recognizes this server's refusal of a key of another request. An empty key with such a refusal was used
// before, perhaps in an earlier run. An answer is such a refusal by the profile, or if it equals, in status and body, one that is provoked here.
func (x *trial) mismatchAnswer() func(*answer) bool {
	op := x.newOperation()
	x.do(op, "to learn how a mismatch is refused")
	sample := x.do(x.changed(op), "to learn how a mismatch is refused")
	return func(a *answer) bool {
		return a.kind == mismatch || sample.status >= 400 && a.status == sample.status && len(a.body) > 0 && bytes.Equal(a.body, sample.body)
	}
}

// apart sends two operations under each pair of keys that differ a little: both must be executed, or both refused. A text of a pair stands behind a
// new key, or around it where it holds ^. It returns the number of pairs whose first key was accepted: 0 means that nothing was tested.
func (x *trial) apart(pairs [][2]string) (taken int) {
	for _, pair := range pairs {
		base := x.newOperation().key
		// the base is cut so that no key gets longer than the profile allows
		limit := x.r.keyBytesMax() - max(len(pair[0]), len(pair[1]))
		base = base[:max(min(len(base), limit), 0)]
		keys := [2]string{glue(base, pair[0]), glue(base, pair[1])}
		taken += count(x.distinct(keys))
	}
	return taken
}

// glue returns a key made of base: the text with base in the place of ^, or else base and the text.
func glue(base, text string) string {
	if strings.Contains(text, "^") {
		return strings.Replace(text, "^", base, 1)
	}
	return base + text
}

// distinct sends two operations under two keys that differ a little. If the first succeeds, the second must not be taken for its repeat or for a
// mismatch; a refusal of the second key itself is right, and "in progress" is not: nobody else uses it. It returns true if the first succeeded, so
// that this could be checked. Server errors warn only: the keys are unusual.
func (x *trial) distinct(keys [2]string) bool {
	var ops [2]*operation
	var got [2]*answer
	for i, key := range keys {
		ops[i] = x.newOperation().with(func(dup *operation) {
			dup.key = key
			dup.fill(x.r)
		})
		got[i] = x.do(ops[i], "")
		if got[i].kind == noAnswer {
			x.inconclusive("the key %q met no answer: %s", key, got[i])
			return false
		}
		if !x.judge(errored, got[i].status < 500, VerdictWarn, "success, or 400", "%s for the key %q", got[i], key) {
			return false
		}
	}
	if got[0].kind != done {
		x.find(VerdictPass, "the key "+keys[0]+" was refused: "+got[0].String())
		return false
	}
	same, known := sameOutcome(got[0], got[1])
	// Each of these answers means that the server found a record for the second key.
	merged := got[1].kind == mismatch || got[1].kind == alreadyDone || got[1].kind == done && known && same || got[1].kind == busy
	x.want(!merged, "two operations", "%s, then %s for the keys %q and %q", got[0], got[1], keys[0], keys[1])
	if got[1].kind == done && !known && x.counts() {
		x.wantEffects(ops[1], 1, "the second of two keys that differ a little")
	}
	return true
}

// hostileNames sends keys that differ in characters which servers drop or decode, and keys
// with a meaning for languages, shells and file systems.
func hostileNames(x *trial) {
	x.apart([][2]string{ // ^ is the place of the unique part, in front by default
		{"a:b", "a-b"}, {"", "."}, {"", "-^"}, {"/../x", "/x"}, {"%41", "A"}, {"a_b", "ab"}, {"?a", "?b"}, {"", "'"}, {"a+b", "a%2Bb"}, {",a", ",b"}, {"a:^", "b:^"},
	})
	// The unique key goes behind each name: an earlier run may have used the name alone.
	for _, name := range []string{"__proto__.", "constructor.", "../../etc/passwd/", "a'--", "${x}", "a;b=", "*", "\\x00"} {
		op := x.newOperation().with(func(dup *operation) {
			dup.key = name + dup.key
			dup.fill(x.r)
		})
		x.hostile(op)
	}
}

// digits returns a new key of 20 digits without zeros, so that a zero can be put in front.
func (x *trial) digits() string {
	text := []byte(digestHex("digits\x00" + x.newOperation().key)[:20])
	for i, b := range text {
		text[i] = '1' + b%9
	}
	return string(text)
}

// headerNameCase sends an operation, and repeats it with the name of the key's header in lower case. That is the same key.
func headerNameCase(x *trial) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return
	}
	lower := op.with(func(dup *operation) { dup.lowerName = true })
	x.wantFirst(op, first, x.again(lower, "the header's name in lower case"), "")
	x.wantEffects(op, 1, "its reference")
}

// hostile sends an operation with an unusual key. The target must refuse the key, or protect the operation as with any other. A server error only
// warns: the key is unusual.
func (x *trial) hostile(op *operation) {
	a := x.do(op, "a name that means something")
	switch a.kind {
	case noAnswer:
		x.inconclusive("the key %q met no answer: %s", op.key, a)
	case broken:
		x.judge(errored, false, VerdictWarn, "success, or 400", "%s for the key %q", a, op.key)
	case done:
		x.wantFirst(op, a, x.again(op, "the repeat"), " for the key "+op.key)
		if x.counts() {
			x.wantEffects(op, 1, "the reference under "+op.key)
		}
	default:
		x.find(VerdictPass, "the key "+op.key+" was refused: "+a.String())
	}
}

// firstCharacter sends keys that begin with a digit and with a letter, each twice: both kinds get the same answers, in kind. A profile that quotes
// keys makes the first character a quote, so that there is nothing to try. Some servers read the first character as the type of a structured field.
func firstCharacter(x *trial) {
	if x.r.o.Profile.Encoding == profile.SFString || x.r.o.handsOutKeys() {
		x.skip("the profile quotes keys, or the server hands them out")
		return
	}
	if alphabet := x.r.o.Profile.Key.Alphabet; alphabet != "" && !(strings.Contains(alphabet, "3") && strings.Contains(alphabet, "b")) {
		x.skip("the profile's keys do not begin both with digits and with letters")
		return
	}
	var kinds [2][]kind
	for class, first := range []string{"3", "b"} {
		for range 2 {
			op := x.newOperation().with(func(dup *operation) {
				dup.key = first + dup.key[1:]
				dup.fill(x.r)
			})
			a := x.do(op, "begins with "+first)
			b := x.again(op, "the repeat")
			same, known := sameOutcome(a, b)
			if a.kind == done && b.kind == done && known && !same {
				b.kind = "executed again"
			}
			kinds[class] = append(kinds[class], a.kind, b.kind)
		}
	}
	digit, letter := describe(kinds[0]), describe(kinds[1])
	x.want(digit == letter, "the same verdict", "with a digit: %s; with a letter: %s", digit, letter)
}

// describe returns kinds of answers, such as "refused", in words for the report.
func describe(kinds []kind) string {
	var words []string
	for _, k := range kinds {
		words = append(words, string(k))
	}
	return strings.Join(words, ", ")
}

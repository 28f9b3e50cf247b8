package conformance

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"time"
)

// similarCases: requests that are nearly the same, and repeats in another form than the first
// request.
func similarCases() []Case { return slices.Concat(similarRequestCases(), otherRepeatCases()) }

// similarRequestCases returns the cases about another request under a used key that differs from the first one in a detail. wantOther checks that the
// second request is refused without an effect. A case is skipped if the target lacks one of its Needs, or if a case in After has failed. Spec lists
// the sources of a rule; those named by invariant and outline are the suite's own.
func similarRequestCases() []Case {
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "conflict/one-number-differs", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedJSON}, After: append([]string{"conflict/not-executed", "conflict/not-silent"}, after...),
			Spec:   []Ref{invariant("S2"), drafted22(), outline("T5")},
			Rule:   "A request that differs in one number only, and not in its reference, is another request.",
			Impact: "An amount is corrected, and the correction is confirmed and never charged.",
			Fix: "Compare a hash of the whole body, and not of a chosen part. Usual cause: the key is compared with the order number alone, " +
				"which the caller keeps when the amount changes.",
			run: oneNumber,
		}, {
			ID: "conflict/large-numbers", Level: LevelShould, Since: "1.1", Needs: []Need{NeedJSON}, After: append([]string{"conflict/not-executed", "conflict/not-silent"}, after...),
			Spec:   []Ref{draft07("2.4", "The fingerprint is the server's choice: all of the payload, or chosen elements."), rfc("8259", "6", "Numbers beyond 2^53 are not read alike everywhere.")},
			Rule:   "Numbers that differ only beyond the precision of a float are different.",
			Impact: "Two amounts in the smallest unit of a currency are taken for one.",
			Fix:    "Hash the bytes of the body, or keep numbers as text when it is read. Usual cause: the body is parsed and encoded again before it is hashed.",
			run:    largeNumbers,
		}, {
			ID: "conflict/string-case", Level: LevelShould, Since: "1.1", Needs: []Need{NeedJSON}, After: append([]string{"conflict/not-executed", "conflict/not-silent"}, after...),
			Spec:   []Ref{draft07("2.4", "The fingerprint is the server's choice: all of the payload, or chosen elements.")},
			Rule:   "Strings that differ in case or in a blank at their end are different.",
			Impact: "Two passwords, or two codes of a voucher, are taken for one.",
			Fix:    "Hash the bytes of the body. Usual cause: strings are trimmed and folded before they are compared, as a database's collation does.",
			run: func(x *trial) {
				op := x.newOperation()
				first, ok := x.first(op.with(func(dup *operation) { dup.body = withMember(op.body, "note", `"Blue one"`) }))
				if ok {
					x.wantOther(op, first, x.do(op.with(func(dup *operation) { dup.body = withMember(op.body, "note", `"blue one "`) }), "a string in another case"))
				}
			},
		}, {
			ID: "conflict/nested-differs", Level: LevelShould, Since: "1.1", Needs: []Need{NeedJSON}, After: append([]string{"conflict/not-executed", "conflict/not-silent"}, after...),
			Spec:   []Ref{draft07("2.4", "The fingerprint is the server's choice: all of the payload, or chosen elements."), outline("T5")},
			Rule:   "A body that differs inside an object, inside a list, or in a member that is not the amount is another request.",
			Impact: "An address, an item of an order or a currency is corrected, and the old one is confirmed.",
			Fix: "Hash the bytes of the body. Usual cause: chosen members are compared, or those at the top only, " +
				"so that a list or an object inside counts by its presence.",
			run: nestedDiffers,
		}, {
			ID: "replay/other-content-type", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedEffects}, After: after,
			Spec:   []Ref{invariant("S1")},
			Rule:   "A repeat of a request whose body is of another type, where that is taken, is not executed again either.",
			Impact: "Requests from a form are charged once for every retry, and those of the API are not.",
			Fix:    "Look at the key before the body is read. Usual cause: the key layer lives in a parser of one content type.",
			run: func(x *trial) {
				op := x.newOperation().with(func(dup *operation) { dup.contentType = "text/plain" })
				first := x.do(op, "of another type")
				if first.kind != done {
					x.skip("a body of type text/plain is not taken: %s", first)
					return
				}
				x.wantFirst(op, first, x.again(op, "the repeat"), "")
				if n, ok := x.effects(op.ref); ok && (n > 0 || !x.counts()) { // the reference may not be found in such a body
					x.wantEffects(op, 1, "its reference")
				}
			},
		},
	}
}

// otherRepeatCases returns the cases about repeats in another form: later, plain after compressed, two in one piece. A case is skipped if the target
// lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's
// own.
func otherRepeatCases() []Case {
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "replay/after-a-pause", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedEffects}, After: after,
			Spec:   []Ref{invariant("S1"), draft07("2.3", "A key is kept until it expires as published.")},
			Rule:   "A key is still known two seconds after it was used.",
			Impact: "A retry that backs off as it should is a second payment.",
			Fix: "Keep the record for longer than any client retries: a day is usual. Usual cause: the record has the lifetime of a lock, " +
				"or of a cache of answers.",
			run: func(x *trial) {
				op := x.newOperation()
				first, ok := x.first(op)
				if !ok {
					return
				}
				x.stepAside() // lets other cases run during the pause
				wait := min(pauseWait, 2*x.r.o.Settle)
				x.pause(wait)
				x.wantFirst(op, first, x.again(op, "the repeat"), " after "+wait.String())
				x.wantEffects(op, 1, "its reference")
			},
		}, {
			ID: "replay/plain-after-gzip", Level: LevelShould, Since: "1.1", After: after,
			Spec:   []Ref{rfc("9110", "12.5.3", "Accept-Encoding says which codings the client takes.")},
			Rule:   "A repeat that does not ask for compression is not given compressed bytes as if they were plain.",
			Impact: "A retry through another client cannot be read.",
			Fix: "Store the answer before it is compressed, and compress when it is given out. Usual cause: the key layer lies outside the one that compresses, " +
				"and replays the bytes without Content-Encoding.",
			run: plainAfterGzip,
		}, {
			ID: "net/pipelined-twice", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedEffects}, After: append([]string{"net/keep-alive"}, after...),
			Spec:   []Ref{invariant("S1"), rfc("9112", "9.3.2", "A client may send several requests before it has an answer.")},
			Rule:   "A request that arrives twice in one piece has one effect.",
			Impact: "A proxy that delivers twice charges twice.",
			Fix:    "Claim the key in one atomic step before the work. Usual cause: the key is looked up, and written only later.",
			run:    pipelined,
		},
	}
}

// nestedDiffers sends bodies under one key that differ in one place: inside an object, inside
// a list, or in a member of its own.
func nestedDiffers(x *trial) {
	for _, c := range []struct{ what, name, one, two string }{
		{"a member inside an object", "delivery", `{"to":{"city":"Aachen"}}`, `{"to":{"city":"Bremen"}}`},
		{"an element of a list", "items", `["apple","bread"]`, `["apple","candle"]`},
		{"one member", "unit", `"EUR"`, `"USD"`},
	} {
		op := x.newOperation()
		first, ok := x.first(op.with(func(dup *operation) { dup.body = withMember(op.body, c.name, c.one) }))
		if !ok {
			return
		}
		x.wantOther(op, first, x.do(op.with(func(dup *operation) { dup.body = withMember(op.body, c.name, c.two) }), "another in "+c.what))
	}
}

// pauseWait is the time between an answer and the repeat after a pause.
const pauseWait = 2 * time.Second

// oneNumber changes one number of the body, for up to four numbers, each with a key of its own: each changed body is another request. A server that
// compares chosen members may miss one. The places of the numbers, found in one body, hold for all: references and keys have the same length. at[4]
// and at[5] are start and end of the digits.
func oneNumber(x *trial) {
	op := x.newOperation()
	number := regexp.MustCompile(`(:\s*)(\d{1,9})(\s*[,}\]])`)
	places := number.FindAllSubmatchIndex(op.body, -1)
	if len(places) == 0 {
		x.skip("the body holds no number that could be changed (--body)")
		return
	}
	for _, at := range places[:min(len(places), 4)] {
		op := x.newOperation()
		first, ok := x.first(op)
		if !ok {
			return
		}
		digits := op.body[at[4]:at[5]]
		other := op.with(func(dup *operation) {
			dup.body = bytes.Join([][]byte{op.body[:at[4]], bumped(digits), op.body[at[5]:]}, nil)
		})
		x.wantOther(op, first, x.do(other, "one number is higher by one"))
	}
}

// bumped returns a number that is one higher. digits must have nine digits at most. They are put into an object and taken out again, since
// bumpNumbers changes the members of a JSON object.
func bumped(digits []byte) []byte {
	changed := bumpNumbers([]byte(`{"n":` + string(digits) + `}`))
	return changed[len(`{"n":`) : len(changed)-1]
}

// wantOther checks the answer a to a request that differs from the first in its body, under the same key and reference: it is refused, and has no
// effect. A success that names another resource was executed: with a counter the count of effects judges it, else it is a second effect.
func (x *trial) wantOther(op *operation, first, a *answer) {
	if a.kind == noAnswer {
		x.inconclusive("the other request met no answer: %s", a)
		return
	}
	same, known := sameOutcome(first, a)
	if a.kind == done && !known && !a.replayed && !x.counts() && !first.names() {
		x.inconclusive("the answer %s names nothing, and nobody counts effects (--witness)", a)
		return
	}
	x.want(a.kind != done || known && !same, "a refusal", "the first request's outcome: %s", a)
	switch {
	case x.counts():
		x.wantEffects(op, 1, "both requests")
	case a.kind == done && known && !same:
		x.wantOrHarm(twice, false, "a refusal", "%s, and then %s for another request under the same key", first, a)
	case a.kind == done && !known:
		x.want(false, "a refusal", "%s", a)
	}
}

// largeNumbers runs a test case: two requests under one key, with numbers that differ by one and are equal as 64-bit floats. The server must not take
// the second for a repeat of the first.
func largeNumbers(x *trial) {
	op := x.newOperation()
	number := func(n string) func(*operation) {
		return func(dup *operation) { dup.body = withMember(op.body, "units", n) }
	}
	first, ok := x.first(op.with(number("9007199254740992")))
	if !ok {
		return
	}
	x.wantOther(op, first, x.do(op.with(number("9007199254740993")), "a number that is higher by one"))
}

// plainAfterGzip repeats an operation whose answer was compressed, without Accept-Encoding. The replay must be plain, or say that it is not. Where
// the handler is the suite's own, it is told to compress. A refusal of the repeat is only recorded.
func plainAfterGzip(x *trial) {
	op := x.newOperation()
	zipped := op.with(func(dup *operation) { dup.extra = append(dup.extra, [2]string{"Accept-Encoding", "gzip"}) })
	if own, ok := x.r.steering.(*ownHandler); ok {
		own.answer(op, gzipReply())
	}
	first, ok := x.first(zipped)
	if !ok {
		return
	}
	if first.header.Get("Content-Encoding") != "gzip" {
		x.skip("the server does not compress this answer")
		return
	}
	again := x.again(op, "the repeat, without Accept-Encoding")
	if again.kind != done {
		x.seen("a repeat with another Accept-Encoding is answered %s", again)
		return
	}
	_, packed := gunzip(again.body)
	says := strings.EqualFold(again.header.Get("Content-Encoding"), "gzip")
	x.want(packed == says, "plain bytes, or gzip that says so", "Content-Encoding %q, and the body %s gzip", again.header.Get("Content-Encoding"), yesNo(packed, "is", "is not"))
}

// pipelined writes the same request twice in one piece to one connection. There must be one effect and one outcome. A server may close the connection
// after the first answer.
func pipelined(x *trial) {
	op := x.newOperation()
	l := x.dial("both")
	defer l.close()
	l.load(op, withLength)
	l.note = "twice in one piece"
	if l.err == nil && x.r.spend(op) == nil { // the second request, too, counts for the budget
		l.rest = append(l.rest, l.rest...) // what write sends: the request twice
	}
	l.write(0)
	first := l.receive()
	l.started = first.started // both were sent then
	second := l.receive()
	if first.kind == noAnswer {
		x.inconclusive("the server takes no requests in one piece: %s", first)
		return
	}
	if second.kind == noAnswer {
		x.find(VerdictPass, "the second of them met no answer: "+second.String())
	}
	again := x.resolve(op, "after both")
	resolved := x.wantOutcome(again, "the outcome", "%s", again)
	x.wantHistory(op, []*answer{first, second, again})
	x.onceIf(resolved, op, "its reference")
}

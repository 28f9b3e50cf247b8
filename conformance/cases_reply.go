package conformance

import (
	"bytes"
	"strings"
	"sync"
)

// The sizes of a large body: padBytes, then quarters down to padBytesMin.
const (
	padBytes    = 128 << 10
	padBytesMin = 8 << 10
)

// replyCases returns the cases about answers that are hard to store and replay, and about repeats that look different on the wire. A case is skipped
// if the target lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are
// the suite's own. Alone: nothing else runs beside it.
func replyCases() []Case {
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "replay/after-100-requests", Level: LevelSafety, Alone: true, After: after,
			Spec:   []Ref{invariant("S1"), draft07("2.3", "A key is kept until it expires as published."), practice("A store that is bounded too small forgets live keys.")},
			Rule:   "A key is still known after a hundred other requests.",
			Impact: "A retry after a busy minute is executed a second time.",
			run:    replayAfterMany,
		}, {
			ID: "replay/large-body", Level: LevelMust, Needs: []Need{NeedJSON}, After: after,
			Spec:   []Ref{drafted26(), practice("Stores cut, or do not keep, what is large.")},
			Rule:   "A large request and its answer are replayed whole.",
			Impact: "The retry of a large order gets half an answer, or is executed again.",
			run:    replayLarge,
		}, {
			ID: "replay/other-headers", Level: LevelMust, After: after,
			Spec:   []Ref{outline("T23"), rfc("9421", "7.2.2", "Signatures are made anew for each attempt; key and body stay.")},
			Rule:   "A repeat whose signature, date, trace and agent are new is still the same request.",
			Impact: "Every retry by a client that signs its requests is refused, or executed again.",
			run:    replayOtherHeaders,
		}, {
			ID: "replay/empty-body-204", Level: LevelShould, After: after, Needs: []Need{NeedOwned},
			Spec: []Ref{drafted26()}, Rule: "An answer without a body is replayed as it was.",
			Impact: "A retry of a deletion is executed again, or answered with something else.",
			run:    replayReply(reply{status: 204}),
		}, {
			ID: "replay/binary", Level: LevelShould, After: after, Needs: []Need{NeedOwned},
			Spec: []Ref{drafted26()}, Rule: "A body that is no text is replayed byte for byte.",
			Impact: "A receipt is garbled in the answer to a retry.",
			run: replayReply(reply{status: 201, body: []byte{0, 0xff, 0xfe, '\r', '\n', 0x80, 0xc3, 0x28, 0}, header: [][2]string{
				{"Content-Type", "application/octet-stream"},
			}}),
		}, {
			ID: "replay/large-answer", Level: LevelMust, Since: "1.1", After: after, Needs: []Need{NeedOwned},
			Spec:   []Ref{drafted26(), invariant("S1"), practice("Stores have a limit on one value, beyond which nothing is kept.")},
			Rule:   "A large answer is replayed whole, and the request is not executed again.",
			Impact: "The retry of a long order gets half an answer, or places it a second time.",
			Fix: "Store answers of any size that the handler gives, or refuse the request before it is executed. Usual cause: an answer beyond the store's limit " +
				"is not kept, and nobody says so.",
			run: replayReply(reply{status: 201, body: []byte(`{"id":"large","lines":"` + strings.Repeat("x", padBytes) + `"}`), header: [][2]string{
				{"Content-Type", "application/json"},
			}}),
		}, {
			ID: "replay/without-body", Level: LevelSafety, Since: "1.1", After: after, Needs: []Need{NeedOwned},
			Spec:   []Ref{invariant("S1"), drafted26()},
			Rule:   "A repeat of an action that has no body, on what was made before, is not executed again.",
			Impact: "A retried capture takes the money twice.",
			Fix: "Look at the key whatever the body and the path are. Usual causes: an empty body is passed over, " +
				"or the key layer is mounted on the path of creation only.",
			run: replayWithoutBody,
		}, {
			ID: "replay/gzip", Level: LevelShould, After: after,
			Spec: []Ref{drafted26(), rfc("9110", "8.4", "Content-Encoding says which codings were applied to the body.")},
			Rule: "A compressed answer is replayed so that it can still be read.", Impact: "The retry gets bytes that nobody can decode.",
			run: replayGzip,
		},
	}
}

// replayAfterMany sends a hundred other operations before the repeat: the key must still be known: a store with too little room for keys would have
// dropped it. If fewer than 90 of them succeed the case is inconclusive.
func replayAfterMany(x *trial) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return
	}
	taken := 0
	for range 10 {
		for _, a := range x.several(10, "another") {
			taken += count(a.kind == done)
		}
	}
	if taken < 90 {
		x.inconclusive("of a hundred other requests %d were taken", taken)
		return
	}
	x.wantFirst(op, first, x.again(op, "the repeat"), ", after a hundred others")
	x.wantEffects(op, 1, "its reference")
}

// several sends n new operations at the same time, and returns their answers.
func (x *trial) several(n int, note string) []*answer {
	answers := make([]*answer, n)
	var all sync.WaitGroup
	for i := range n {
		op := x.newOperation()
		all.Go(func() { answers[i] = x.do(op, note) })
	}
	all.Wait()
	return answers
}

// count returns 1 for true and 0 for false.
func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// replayLarge repeats an operation with a large body. The replayed answer must not be cut: a beginning of the first answer, and no more. Other
// differences of the body are the subject of another case.
func replayLarge(x *trial) {
	op, first, ok := x.firstLarge()
	if !ok {
		return
	}
	x.replayOf(op, first, func(x *trial, first, again *answer) {
		cut := len(again.body) > 0 && len(again.body) < len(first.body) && bytes.HasPrefix(first.body, again.body)
		x.want(!cut, "the first answer, "+extent(first.body), "%s, of which %s are left", again, extent(again.body))
		if !cut && !bytes.Equal(again.body, first.body) {
			x.find(VerdictPass, "the repeat is not cut; replay/body-bytes judges how it differs")
		}
		x.wantFirst(op, first, again, "")
	})
	x.wantEffects(op, 1, "its reference")
}

// firstLarge sends a large body as a first request, a quarter of it (to padBytesMin) if the server refuses it, or gives no answer. It returns the
// operation and its answer. False: none succeeded, and the case is skipped or inconclusive.
func (x *trial) firstLarge() (*operation, *answer, bool) {
	for size := padBytes; size >= padBytesMin; size /= 4 {
		op := x.newOperation()
		op.body = withMember(op.body, "padding", `"`+strings.Repeat("x", size)+`"`)
		first := x.do(op, "the first, of "+extent(op.body))
		tooLarge := first.kind == refused || first.kind == noAnswer
		if tooLarge && size/4 >= padBytesMin {
			continue
		}
		if tooLarge {
			x.skip("the server takes no body of %s: %s", extent(op.body), first)
			return nil, nil, false
		}
		if size < padBytes {
			x.find(VerdictPass, "the server's limit is respected: a body of "+extent(op.body)+" was taken")
		}
		return op, first, x.setup(first)
	}
	return nil, nil, false
}

// replayOtherHeaders repeats an operation with a new date, trace, signature and request id, as clients do. That is the same request.
func replayOtherHeaders(x *trial) {
	op := x.newOperation()
	stamp := func(n string) func(*operation) {
		return func(dup *operation) {
			dup.extra = append(dup.extra,
				[2]string{"Date", "Sat, 21 Nov 2026 08:00:0" + n + " GMT"},
				[2]string{"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e473" + n + "-00f067aa0ba902b7-01"},
				[2]string{"Signature-Input", `oncehttp=("idempotency-key");created=170000000` + n + `;nonce="` + n + `"`})
			if !strings.EqualFold(x.r.o.Profile.Carrier.Name, "X-Request-Id") { // else it is the key
				dup.extra = append(dup.extra, [2]string{"X-Request-Id", "request-" + n})
			}
		}
	}
	first, ok := x.first(op.with(stamp("1")))
	if !ok {
		return
	}
	x.wantFirst(op, first, x.again(op.with(stamp("2")), "the repeat, signed anew"), "")
	x.wantEffects(op, 1, "its reference")
}

// replayReply returns a case that makes the suite's own handler answer with the given reply, and checks that a repeat gets the same. The case must
// have NeedOwned: the suite supplies the handler behind the target, so that steering is its ownHandler.
func replayReply(with reply) func(*trial) {
	return func(x *trial) {
		op := x.newOperation()
		x.r.steering.(*ownHandler).answer(op, with)
		first, ok := x.first(op)
		if !ok {
			return
		}
		x.replayOf(op, first, func(x *trial, first, again *answer) {
			x.want(again.status == first.status, "the first status", "%d, then %d", first.status, again.status)
			x.want(bytes.Equal(again.body, first.body), "the first body", "%s, then %s", extent(first.body), extent(again.body))
		})
		x.wantEffects(op, 1, "its reference")
	}
}

// replayWithoutBody repeats an action that has no body: its reference is in the path.
func replayWithoutBody(x *trial) {
	op := x.newOperation()
	op.body = nil
	op.setPath(strings.TrimSuffix(x.r.target.Path, "/") + "/" + op.ref + "/capture")
	first := x.do(op, "an action without a body")
	if first.kind != done {
		x.skip("an action without a body is not taken: %s", first)
		return
	}
	x.wantFirst(op, first, x.again(op, "the repeat"), "")
	x.wantEffects(op, 1, "its reference")
}

// replayGzip repeats an operation whose answer is compressed. The replay must be compressed and say so, or be plain: else the client cannot read it.
// A server that does not compress skips the case. Where the handler is the suite's own, it is told to compress.
func replayGzip(x *trial) {
	op := x.newOperation()
	op.extra = append(op.extra, [2]string{"Accept-Encoding", "gzip"})
	if own, ok := x.r.steering.(*ownHandler); ok {
		own.answer(op, gzipReply())
	}
	first, ok := x.first(op)
	if !ok {
		return
	}
	if first.header.Get("Content-Encoding") != "gzip" {
		x.skip("the server does not compress this answer")
		return
	}
	x.replayOf(op, first, func(x *trial, first, again *answer) {
		coded := again.header.Get("Content-Encoding")
		_, packed := gunzip(again.body)
		x.want(coded == "gzip" && packed || coded == "" && !packed, "gzip that says so, or plain", "Content-Encoding %q, %s gzip", coded, yesNo(packed, "is", "is not"))
	})
}

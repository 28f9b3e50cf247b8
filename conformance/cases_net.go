package conformance

import (
	"slices"
	"time"
)

// netCases returns the cases about clients that hang up, and about uploads that break off. A case is skipped if the target lacks one of its Needs, or
// if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own.
func netCases() []Case {
	delay := []Need{NeedDelay}
	return slices.Concat([]Case{
		{
			ID: "net/abort-then-retry-resolves", Level: LevelLiveness, Needs: delay, After: []string{"inflight/once", "inflight/converges", "inflight/leaves-no-trap"},
			Spec:   []Ref{invariant("L1"), outline("T15")},
			Rule:   "After a client has hung up while its request was handled, the key resolves.",
			Impact: "The very retry that the key exists for is refused for the whole window.",
			run: func(x *trial) {
				x.aborted(func(op *operation, _ time.Duration, again *answer) {
					x.wantOutcome(again, "the outcome within "+x.r.o.Settle.String(), "%s", again)
					if again.outcome() && x.counts() {
						x.wantEffects(op, 1, "its reference")
					}
				})
			},
		}, {
			ID: "net/once", Level: LevelSafety, Needs: []Need{NeedDelay, NeedEffects}, After: []string{"inflight/once"},
			Spec:   []Ref{invariant("S1"), outline("T15")},
			Rule:   "A client that hangs up and tries again has one effect.",
			Impact: "Every customer on a bad line pays twice.",
			run: func(x *trial) {
				x.aborted(func(op *operation, _ time.Duration, again *answer) {
					if !again.outcome() {
						x.skip("the key does not resolve; net/abort-then-retry-resolves judges that: %s", again)
						return
					}
					x.wantEffects(op, 1, "its reference")
				})
			},
		}, {
			ID: "net/response-lost-then-retry", Level: LevelSafety, Needs: []Need{NeedDelay, NeedEffects}, After: []string{"inflight/once"},
			Spec:   []Ref{invariant("S1"), drafted26(), outline("T15")},
			Rule:   "An answer that could not be handed out is replayed to the retry.",
			Impact: "The effect whose answer was lost happens again.",
			run:    responseLost,
		},
	}, uploadCases(), []Case{
		{
			ID: "net/reset-vs-fin", Level: LevelSafety, Needs: []Need{NeedEffects}, After: []string{"net/abort-then-retry-resolves", "net/once", "net/response-lost-then-retry", "replay/effects-once"},
			Spec:   []Ref{invariant("S1"), invariant("L1"), outline("T15")},
			Rule:   "It makes no difference whether a client leaves by FIN or by RST.",
			Impact: "Phones that lose their network pay twice, and desktops do not.",
			run:    resetOrFin,
		},
	})
}

// uploadCases returns the cases about requests that break off, or arrive slowly. A case is skipped if the target lacks one of its Needs, or if a case
// in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own.
func uploadCases() []Case {
	return []Case{
		{
			ID: "net/truncated-does-not-claim", Level: LevelMust, After: []string{"replay/answered", "replay/effects-once"},
			Spec:   []Ref{invariant("L1"), rfc("9110", "6.1", "A message that is incomplete was not received."), outline("T15")},
			Rule:   "An upload that breaks off does not take the key.",
			Impact: "The whole request is refused as a mismatch with the half that arrived.",
			run:    truncated,
		}, {
			ID: "net/truncated-repeat", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedEffects}, After: []string{"net/truncated-does-not-claim", "replay/answered", "replay/effects-once"},
			Spec:   []Ref{invariant("S1"), rfc("9110", "6.1", "A message that is incomplete was not received."), outline("T15")},
			Rule:   "A repeat that breaks off while it is sent does not make the server forget the first request.",
			Impact: "On a bad line every second retry charges the customer again.",
			Fix: "Read the whole request before its key is looked at, and let only the one that took the key give it back. Usual cause: a handler of errors " +
				"deletes the key's record, whoever's request it was that failed.",
			run: truncatedRepeat,
		}, {
			ID: "net/slow-upload-duplicate", Level: LevelSafety, Needs: []Need{NeedEffects}, After: []string{"replay/answered", "replay/effects-once"},
			Spec:   []Ref{invariant("S1"), drafted26Conflict(), outline("T3")},
			Rule:   "A duplicate that overtakes a slow upload of the same request does not make it two.",
			Impact: "A retry over the better line pays, and the slow one pays too.",
			run:    slowUpload,
		},
	}
}

// aborted sends an operation that takes long (hold), closes the connection during the work, and sends it again until the key has a final answer. It
// calls check with that. If the repeat may not have met the first request at work, it tries again with a longer work; at last the case is
// inconclusive, without a call of check. gate holds the operation at work in the suite's own handler; for another server gate.entered is nil, and
// only the time tells when it is at work.
func (x *trial) aborted(check func(op *operation, hold time.Duration, again *answer)) {
	x.holding(func(hold time.Duration) bool {
		op := x.newOperation()
		gate := x.r.steering.hold(op, hold)
		defer gate.release()
		l := x.dial("first")
		l.load(op, withLength)
		l.note = "leaves while it is handled"
		began := time.Now()
		l.write(0)
		x.enteredOr(gate, hold/4)
		l.leave(false) // by FIN, not RST
		// so that the server has seen it
		x.pause(hold / 8)
		soon := x.launch(op, "retry", "at once")
		if gate.entered != nil {
			x.awaitFollowers([]*sending{soon})
			gate.release()
		}
		a := soon.wait()
		if gate.entered == nil && a.kind == done && a.ended.Sub(a.started) >= hold*9/10 {
			return false // it was not waiting for the first, but executed itself
		}
		if gate.entered == nil && a.written.Sub(began) >= hold {
			return false // the first may have been over when the retry was sent
		}
		check(op, hold, x.until(op, "the retry", hold+x.r.o.Settle, true)) // true: also past server errors; the first may work for all of hold
		return true
	})
}

// enteredOr waits until a held operation has reached the suite's own handler. Without such a handler (the gate does not tell) it waits for d.
func (x *trial) enteredOr(g *gate, d time.Duration) {
	if g.entered == nil {
		x.pause(d)
		return
	}
	select {
	case <-g.entered:
	case <-time.After(x.r.o.AnswerTimeout):
	case <-x.ctx.Done():
	}
}

// responseLost leaves after the effect and before the answer, then sends the operation again: the retry gets the outcome, and there is one effect. If
// the first request had no effect it tries again with a longer work (hold): the function returns false for that, true at the end of the case. gate
// holds the operation at work in the suite's own handler; for another server gate.entered is nil, and only the time tells when it is at work.
func responseLost(x *trial) {
	x.holding(func(hold time.Duration) bool {
		op := x.newOperation()
		gate := x.r.steering.hold(op, hold)
		defer gate.release()
		l := x.dial("first")
		l.load(op, withLength)
		l.note = "leaves before its answer"
		l.write(0)
		x.enteredOr(gate, hold/2)
		l.leave(true) // by RST
		x.pause(10 * time.Millisecond)
		gate.release()
		if gate.entered == nil {
			x.pause(hold)
		}
		n, ok := x.settledEffects(op.ref, 1)
		if !ok {
			return true
		}
		if n == 0 && x.counts() {
			return false // the request was lost, and not its answer
		}
		again := x.resolve(op, "the retry")
		if !again.outcome() {
			x.skip("the key does not resolve; net/abort-then-retry-resolves judges that: %s", again)
			return true
		}
		x.want(true, "", "%s after %s", again, plural(n, "effect"))
		x.wantEffects(op, 1, "its reference")
		return true
	})
}

// truncated sends half of a body and leaves, then sends the whole operation. That must succeed, with one effect. It does so with a body that has its
// length in the header, and with a chunked one.
func truncated(x *trial) {
	for _, f := range []framing{withLength, chunked} {
		op := x.newOperation()
		l := x.dial("upload")
		l.load(op, f)
		l.note = "half of the body, then it leaves"
		l.write(max(l.headOnly()/2, 1)) // all but half of the body
		x.pause(10 * time.Millisecond)  // so that the server has begun to read
		l.leave(false)                  // by FIN, not RST
		x.pause(20 * time.Millisecond)  // and has seen the end
		again := x.resolve(op, "the whole request")
		if !x.wantOrHarm(unresolved(again), again.kind == done, "success", "%s", again) {
			return // a second key would be waited for as long
		}
		if x.counts() {
			x.wantEffects(op, 1, "its reference")
		}
	}
}

// truncatedRepeat sends an operation, then half of its body under its key, then all of it: the last must get the first outcome. It does so with a
// body that has its length in the header, and with a chunked one.
func truncatedRepeat(x *trial) {
	for _, f := range []framing{withLength, chunked} {
		op := x.newOperation()
		first, ok := x.first(op)
		if !ok {
			return
		}
		l := x.dial("upload")
		l.load(op, f)
		l.note = "half of the repeat, then it leaves"
		l.write(max(l.headOnly()/2, 1)) // all but half of the body
		x.pause(10 * time.Millisecond)  // so that the server has begun to read
		l.leave(false)                  // by FIN, not RST
		x.pause(20 * time.Millisecond)  // and has seen the end
		resolved := x.wantFirst(op, first, x.resolve(op, "the whole repeat"), " after half of it")
		x.wantEffects(op, 1, "its reference")
		if !resolved {
			return
		}
	}
}

// slowUpload begins an upload, sends the same operation on another connection, then ends the upload: both get one outcome, and there is one effect. A
// server may let the quick one wait for the slow one: after half a second at most the upload ends in any case.
func slowUpload(x *trial) {
	op := x.newOperation()
	l := x.dial("slow")
	defer l.close()
	l.load(op, withLength)
	l.note = "a slow upload"
	l.write(l.headOnly() / 2) // all but half of the body; headOnly is the length of the unwritten body
	x.pause(30 * time.Millisecond)
	quick := x.launch(op, "quick", "overtakes")
	select {
	case <-quick.over:
	case <-time.After(min(x.r.o.Settle, 500*time.Millisecond)): // it waits for the slow one
	case <-x.ctx.Done():
	}
	l.write(0)
	slow := l.receive()
	answers := []*answer{slow, quick.wait()}
	again := x.resolve(op, "after both")
	resolved := x.wantOutcome(again, "the outcome", "%s", again)
	x.wantHistory(op, append(answers, again))
	x.onceIf(resolved, op, "its reference")
}

// resetOrFin leaves right after the request, once by FIN and once by RST, and sends it again: the retry gets the outcome, and there is one effect.
// The pauses let the server see the end, and a second effect come.
func resetOrFin(x *trial) {
	for _, reset := range []bool{false, true} {
		op := x.newOperation()
		l := x.dial("first")
		l.load(op, withLength)
		l.note = yesNo(reset, "leaves by RST", "leaves by FIN")
		l.write(0)
		l.leave(reset)
		x.pause(20 * time.Millisecond)
		again := x.resolve(op, "the retry")
		resolved := x.wantOutcome(again, "the outcome", "%s after it %s", again, l.note)
		x.pause(20 * time.Millisecond)
		x.onceIf(resolved, op, "the reference that "+l.note)
		if !resolved {
			return
		}
	}
}

// onceIf checks for one effect of op if its key has resolved (a repeat got the outcome), else for one at most: without an outcome there may be none.
// what names the operation in the report.
func (x *trial) onceIf(resolved bool, op *operation, what string) {
	if resolved {
		x.wantEffects(op, 1, what)
		return
	}
	if n, ok := x.effects(op.ref); ok {
		x.noteEffects(what, n)
		x.atMost(op, 1, n, what)
	}
}

// framingCases returns the cases about the same bytes in another HTTP framing: chunked, announced, or on a used connection. A case is skipped if the
// target lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the
// suite's own.
func framingCases() []Case {
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "net/expect-continue", Level: LevelShould, After: after,
			Spec: []Ref{rfc("9110", "10.1.1", "A server that gets 100-continue sends 100 or a final status.")},
			Rule: "Expect: 100-continue makes no other request of it.", Impact: "curl's larger uploads are a second payment.",
			run: expectContinue,
		}, {
			ID: "net/chunked-equals-length", Level: LevelMust, After: after,
			Spec: []Ref{rfc("9112", "7.1", "Chunking is framing, and no part of the content."), draft07("2.4", "The fingerprint is of the payload.")},
			Rule: "The same body, chunked or with a length, is the same request.", Impact: "A retry through a proxy is refused as another request.",
			run: chunkedEquals,
		}, {
			ID: "net/keep-alive", Level: LevelSafety, After: after, Needs: []Need{NeedEffects},
			Spec: []Ref{invariant("S1"), rfc("9112", "9.3", "Connections persist, and requests do not depend on one another.")},
			Rule: "A repeat on the same connection, and one on a fresh one, are both replayed.", Impact: "Whether a retry pays again depends on the client's pool.",
			run: keepAlive,
		},
	}
}

// expectContinue sends an operation with Expect: 100-continue, and repeats it without. That is the same request. A server may refuse expectations
// with 417. pastLimit sends again after a rate limit. setup ends the case unless the first request succeeds.
func expectContinue(x *trial) {
	op := x.newOperation()
	told := false
	first := x.pastLimit(op, func() *answer {
		l := x.dial("")
		defer x.park(l) // else it may look as if the client had left before the answer
		l.load(op, expecting)
		l.note = "with Expect: 100-continue"
		l.write(l.headOnly()) // all but the body
		told = l.awaitContinue(time.Second)
		l.write(0)
		return l.receive()
	})
	if first.status == 417 {
		x.seen("expectations are refused: %s", first)
		return
	}
	if !x.setup(first) {
		return
	}
	x.wantFirst(op, first, x.again(op, "without"), "")
	x.should(told, "100 (Continue)", "%s", yesNo(told, "100 (Continue)", "no 100 (Continue) within a second"))
	x.wantEffects(op, 1, "its reference")
}

// chunkedEquals sends an operation with a Content-Length, and repeats it chunked. That is the same request. A server that takes no chunked body at
// all is skipped: it says so by 411 (Length Required), or fails with one under a fresh key, too.
func chunkedEquals(x *trial) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return
	}
	again := x.untilBy(func() *answer { return x.doFramed(op, chunked, "chunked") }, time.Second, false) // false: a server error is a final answer
	if again.status == 411 || (again.kind == noAnswer || again.kind == broken || again.kind == refused) && !x.takesChunked() {
		x.skip("the server takes no chunked bodies: %s", again)
		return
	}
	x.wantFirst(op, first, again, ", chunked")
	x.wantEffects(op, 1, "its reference")
}

// takesChunked reports whether a chunked operation under a key of its own succeeds.
func (x *trial) takesChunked() bool {
	return x.doFramed(x.newOperation(), chunked, "chunked, under a key of its own").outcome()
}

// keepAlive sends an operation three times on one connection, and once on another. Each repeat gets the first outcome. untilBy repeats an answer "in
// progress", pastLimit one of a rate limit. If the server closes the connection, the report says so, and only the repeat on the other one is judged.
func keepAlive(x *trial) {
	op := x.newOperation()
	l := x.dial("kept")
	defer l.close()
	var first *answer
	for i := range 3 {
		a := x.untilBy(func() *answer {
			return x.pastLimit(op, func() *answer {
				l.load(op, withLength)
				l.note = yesNo(i == 0, "the first", "on the same connection")
				l.write(0)
				return l.receive()
			})
		}, min(x.r.o.Settle, time.Second), false) // false: a server error is a final answer
		if i == 0 {
			if first = a; !x.setup(a) {
				return
			}
			continue
		}
		if a.kind == noAnswer {
			x.skip("the server closes its connections")
			break
		}
		x.wantFirst(op, first, a, " on the same connection")
	}
	x.wantFirst(op, first, x.again(op, "on a fresh one"), " on a fresh connection")
	x.wantEffects(op, 1, "its reference")
}

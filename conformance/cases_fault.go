package conformance

// faultCases returns the cases about faults in front of the key layer, the part of the server that handles keys: a wrong credential, a refused body,
// a store that is down. A case is skipped if the target lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule;
// those named by invariant and outline are the suite's own. Alone: nothing else runs beside it.
func faultCases() []Case {
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "outcome/corrected-body", Level: LevelObserve, Needs: []Need{NeedJSON}, After: after,
			Spec:   []Ref{outline("T13"), practice("Fixing the body under the same key is right with some APIs, and a mismatch with others.")},
			Rule:   "What a corrected body gets under the key of one that was refused.",
			Impact: "A client that fixes its request has to know whether it needs a new key.",
			run:    correctedBody,
		}, {
			ID: "outcome/unauthorised-not-consumed", Level: LevelShould, Needs: []Need{NeedSecret}, After: after,
			Spec:   []Ref{outline("T19"), practice("401 and 403 are not stored (Stripe, Fintoc).")},
			Rule:   "A request that was refused for its credential does not take the key.",
			Impact: "A token that has just expired costs the customer the key.",
			run:    unauthorised,
		}, {
			ID: "outcome/store-outage", Level: LevelPolicy, Alone: true, Needs: []Need{NeedOutage, NeedEffects}, After: after,
			Spec:   []Ref{outline("T20"), practice("Fail closed with 503 (Adyen, Method), or open (Worldpay).")},
			Rule:   "While the store behind the keys is out, requests are refused, or executed without protection as declared.",
			Impact: "A retry during the outage pays twice.",
			run:    storeOutage,
		},
	}
}

// correctedBody sends a broken body twice, then the whole body under the same key. The last answer is an observation. The case fails if the server
// stays "in progress", or if both bodies together have more than one effect, or any effect without a success. "In progress" from a limit on the rate
// of requests (throttled) says nothing of the key.
func correctedBody(x *trial) {
	op := x.newOperation()
	bad := op.with(func(dup *operation) { dup.body = op.body[:len(op.body)-1] })
	first := x.do(bad, "JSON that does not end")
	if first.kind == done {
		x.seen("a body that is not JSON is accepted: %s", first)
		return
	}
	if same := x.again(bad, "the same once more"); same.kind == busy && !same.throttled {
		x.wantOrHarm(stuck, false, "the refusal again", "%s, and then to be told to wait: %s", first, same)
		return
	}
	corrected := x.again(op, "the corrected body")
	if x.counts() {
		if n, ok := x.settledEffects(op.ref, count(corrected.kind == done)); ok {
			x.noteEffects("its reference", n)
			x.atMost(op, count(corrected.kind == done), n, "the refused and the corrected together")
			x.wantEffectOfSuccess(op, corrected)
		}
	}
	switch {
	case corrected.kind == busy && !corrected.throttled:
		x.wantOrHarm(stuck, false, "an answer", "refused with %s; the corrected body is told to wait: %s", first, corrected)
	case corrected.kind == done:
		x.seen("refused with %s; the corrected body is executed under the same key", first)
	default:
		x.seen("refused with %s; the corrected body is answered %s", first, corrected)
	}
}

// unauthorised sends an operation without its credential. If that is refused, it sends the same with it: the key must still be free, and the success
// no replay. count turns the success into the number of effects to expect, 1 or 0. Otherwise the case is skipped.
func unauthorised(x *trial) {
	op := x.newOperation()
	refusal := x.do(op.with(func(dup *operation) { dup.anonymous = true }), "without the credential")
	if refusal.status != 401 && refusal.status != 403 {
		x.skip("without the credential it is answered %s, and not 401 or 403", refusal)
		return
	}
	again := x.again(op, "with the credential")
	x.wantOrHarm(unresolved(again), again.kind == done && !again.replayed, "success", "%s, then %s", refusal, again)
	if x.counts() {
		n, ok := x.settledEffects(op.ref, count(again.kind == done))
		x.noteEffects("its reference", n)
		if ok && x.atMost(op, count(again.kind == done), n, "the refused and the accepted together") {
			x.wantEffectOfSuccess(op, again)
		}
	}
}

// storeOutage sends an operation twice during an outage of the store of keys, and records whether the server refuses it (fails closed), executes it
// each time (fails open), or goes on as before. After the outage the operation must get its outcome, and one effect, if it had none or one before. If
// Options.Recover fails, the case is inconclusive and the outage stays.
func storeOutage(x *trial) {
	op := x.newOperation()
	if err := x.r.o.Outage(x.ctx); err != nil {
		x.inconclusive("the store could not be taken away: %s", errorText(err))
		return
	}
	during := x.do(op, "while the store is out")
	repeat := x.do(op, "once more")
	if err := x.r.o.Recover(x.ctx); err != nil {
		x.inconclusive("the store could not be given back: %s", errorText(err))
		return
	}
	n, ok := x.effects(op.ref)
	if !ok {
		return
	}
	x.noteEffects("its reference", n)
	switch {
	case n > 1:
		x.seen("it fails open: %s, then %s, %s", during, repeat, plural(n, "effect"))
	case during.kind == done:
		x.seen("it went on: %s, then %s", during, repeat)
	default:
		x.seen("it fails closed: %s", during)
	}
	again := x.resolve(op, "after the outage")
	x.wantOutcome(again, "the outcome after the outage", "%s", again)
	// with more it has failed open, and one effect cannot be expected
	if n <= 1 && again.outcome() && x.counts() {
		x.wantEffects(op, 1, "its reference, after the outage")
	}
}

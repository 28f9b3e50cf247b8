package conformance

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// outcomeCases returns the cases about a first request that fails: whether its answer is stored, and whether its key can be used again. A case is
// skipped if the target lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and
// outline are the suite's own. resolvesAfter and storedOrNot send the repeat and judge its answer.
func outcomeCases() []Case {
	after := []string{"replay/answered", "replay/effects-once"}
	marked := append([]string{"replay/not-marked-when-first"}, after...) // they read the mark
	fail, crash := []Need{NeedFail}, []Need{NeedCrash}
	return []Case{
		{
			ID: "outcome/4xx", Level: LevelPolicy, Needs: fail, After: marked,
			Spec:   []Ref{drafted26(), practice("Stored once execution began (Stripe, Whop, Zuora), or not stored (Checkout, Modern Treasury)."), outline("T13")},
			Rule:   "A final refusal is stored, or run again, as the profile declares; the key never stays locked.",
			Impact: "A declined card is charged after all by a late retry, or the customer is never told.",
			run:    func(x *trial) { x.storedOrNot(402, x.declared4xx) },
		}, {
			ID: "outcome/5xx", Level: LevelPolicy, Needs: fail, After: append([]string{"outcome/5xx-resolves"}, marked...),
			Spec:   []Ref{drafted26(), practice("Stored and replayed (Stripe v1, Akahu, Easyship), or run again (Stripe v2, Checkout)."), outline("T14")},
			Rule:   "A 500 is stored, or run again, as the profile declares.",
			Impact: "A client retries what can only ever be a 500, or waits for a person though a retry would help.",
			run:    func(x *trial) { x.storedOrNot(500, x.declared5xx) },
		}, {
			ID: "outcome/5xx-resolves", Level: LevelLiveness, Needs: fail, After: after,
			Spec:   []Ref{invariant("L1"), outline("T14")},
			Rule:   "After a 500 the key resolves.",
			Impact: "The payment that failed once is 'being processed' for a day.",
			run: func(x *trial) {
				op := x.newOperation()
				x.r.steering.fail(op, 500, 1) // once, where the suite decides that
				x.resolvesAfter(op, x.do(op, "fails"), x.countFailed)
			},
		}, {
			ID: "outcome/transient-not-pinned", Level: LevelShould, Needs: fail, After: marked,
			Spec:   []Ref{practice("429 and 503 are not stored (Solid, Fullstory, Adyen)."), outline("T19")},
			Rule:   "A 429 or 503 is not stored under the key.",
			Impact: "A moment of overload costs the customer the whole window.",
			run:    transientNotPinned,
		}, {
			ID: "outcome/crash-resolves", Level: LevelLiveness, Needs: crash, After: after,
			Spec:   []Ref{invariant("L1"), outline("T16")},
			Rule:   "After its handler has crashed the key resolves.",
			Impact: "A bug in one handler locks keys until somebody deletes them by hand.",
			run: func(x *trial) {
				op := x.newOperation()
				x.r.steering.crash(op, false) // before the effect, where the suite decides that
				x.resolvesAfter(op, x.do(op, "its handler crashes"), func(op *operation, _, again *answer) bool {
					return x.wantEffectOfSuccess(op, again) // that it is executed again is outcome/crash-effect's
				})
			},
		}, {
			ID: "outcome/crash-effect", Level: LevelPolicy, Needs: []Need{NeedCrash, NeedEffects}, After: append([]string{"outcome/crash-resolves"}, after...),
			Spec:   []Ref{invariant("S1"), outline("T16")},
			Rule:   "What a repeat does after a crash: executes again, is held, or replays an error.",
			Impact: "Where the effect had happened before the crash, a repeat that executes has it twice.",
			run:    crashEffect,
		},
	}
}

// resolvesAfter sends op again after its failure, until the answer is final, for Options.Settle at most. A replay, a fresh execution, or the same
// failure is right; so is a refusal of the key for ever (poisoned), if the profile declares it. effects checks the effects by then. If the operation
// did not fail, the case is inconclusive. while repeats as long as the answer is open (in progress, or missing); two closed connections are the same
// crash again, and end it (closedAgain).
func (x *trial) resolvesAfter(op *operation, failed *answer, effects func(op *operation, failed, again *answer) bool) {
	if failed.kind == done || failed.kind == busy {
		x.inconclusive("the operation was to fail (--fail-query, --crash-query) and was answered %s", failed)
		return
	}
	again := x.while(func(a *answer) bool { return open(a) && !closedAgain(failed, a) },
		func() *answer { return x.do(op, "after the failure") }, x.r.o.Settle)
	p := x.r.o.Profile
	fine := again.outcome() || again.kind == broken || again.status == failed.status && failed.status != 0 || closedAgain(failed, again)
	if again.kind == poisoned {
		x.want(true, "", "%s, as the profile declares", again)
		return
	}
	effects(op, failed, again)
	x.wantOrHarm(unresolved(again), fine, "an outcome, or the failure again, within "+x.r.o.Settle.String(), "%s under profile %s", again, p.Name)
}

// The fates of an error under its key.
const (
	keptError  = "stored"
	rerunError = "run again"
	stuckError = "locked"
)

// storedOrNot makes an operation fail with status at each send, repeats it, and compares the fate of the answer (kept under the key, run again, or
// never final) with the profile. declared returns the profile's word on it. The case ends early where effects were wrong or could not be counted
// (countFailed returns false). The harm stuck is recorded where the repeat gets no final answer.
func (x *trial) storedOrNot(status int, declared func(*answer) profile.Fact) {
	op := x.newOperation()
	x.r.steering.fail(op, status, 0) // 0: at each send
	first := x.do(op, "fails")
	if first.status != status {
		x.inconclusive("the operation was to answer %d (--fail-query) and answered %s", status, first)
		return
	}
	again := x.again(op, "the repeat")
	if !x.countFailed(op, first, again) {
		return
	}
	fate, known := x.errorFate(op, first, again)
	if fate == stuckError {
		x.wantOrHarm(stuck, false, "a final answer", "%s after %d", again, status)
		return
	}
	if !known {
		x.seen("%d is answered %s; stored and run again look the same here", status, again)
		return
	}
	switch declared(first) {
	case profile.Yes:
		x.want(fate == keptError, "that it is stored", "%s: %s", fate, again)
	case profile.No:
		x.want(fate == rerunError, "that it is run again", "%s: %s", fate, again)
	default:
		x.seen("%s", fate)
	}
}

// countFailed checks the effects of an operation that failed and was repeated: one at most, and one if the repeat is a success. A stored error in the
// form of a success confirms an effect that never was: so without a counter a success fails if it is a replay, or has the body of the failure. It
// returns false if a check failed, or nothing could be counted.
func (x *trial) countFailed(op *operation, failed, again *answer) bool {
	if !x.counts() {
		same := len(again.body) > 0 && bytes.Equal(again.body, failed.body)
		if again.outcome() && (same || again.replayed) {
			return x.wantOrHarm(lost, false, "the failure, or a fresh execution", "%s, then %s with what was stored of the failure", failed, again)
		}
		return true
	}
	n, ok := x.settledEffects(op.ref, count(again.outcome()))
	if !ok {
		return false
	}
	both := "an operation that was answered " + failed.String() + " and then " + again.String()
	x.noteEffects(both, n)
	most := 1
	if failed.status >= 400 && failed.status < 500 && !again.outcome() {
		most = 0 // what is refused has not happened; what failed may have
	}
	return x.atMost(op, most, n, both) && x.wantEffectOfSuccess(op, again)
}

// errorFate returns the fate of an error under its key: kept, run again, or stuck. It tells a stored error from a second one by the mark of a replay,
// or by a body that differs between executions: whether bodies differ it learns from the same operation under another key. known is false, and fate
// "", if they look the same. A 503 is asked for several times: a right server may answer it to any request, before its work.
func (x *trial) errorFate(op *operation, first, again *answer) (fate string, known bool) {
	switch {
	case again.replayed:
		return keptError, true
	case again.kind == busy && first.kind != busy:
		return stuckError, true
	case again.status != first.status:
		return yesNo(again.outcome(), rerunError, "answered otherwise"), true
	case !bytes.Equal(again.body, first.body):
		return rerunError, true
	}
	// One of the answers may be a 503 before any work: a right server may put off any request.
	for n := 1; first.status == http.StatusServiceUnavailable && n < putOffTries; n++ {
		x.pause(20 * time.Millisecond)
		if more := x.do(op, "once more"); more.status != first.status || !bytes.Equal(more.body, first.body) {
			return rerunError, true
		}
	}
	differs := len(first.body) > 0
	for n := 0; differs && n < putOffTries; n++ {
		fresh := x.newOperation()
		control := x.do(op.with(func(dup *operation) {
			dup.key, dup.ref = fresh.key, fresh.ref
			dup.fill(x.r)
		}), "the same under another key, to compare")
		// A body that quotes its own reference does not differ by that.
		plain := func(a *answer, ref string) string { return strings.ReplaceAll(string(a.body), ref, "") }
		differs = plain(control, fresh.ref) != plain(first, op.ref) && control.status == first.status
		if first.status != http.StatusServiceUnavailable {
			break
		}
	}
	if differs {
		return keptError, true
	}
	return "", false
}

// declared4xx returns the profile's statement on a refusal (4xx): whether the API stores its answer for repeats. It is yes if the profile lists such
// an answer, else unknown: the list need not be complete.
func (x *trial) declared4xx(first *answer) profile.Fact {
	if matchesAny(x.r.o.Profile.KeptErrors(), first) {
		return profile.Yes
	}
	return profile.Unknown
}

// declared5xx returns the profile's statement on server errors (5xx): whether the API stores them for repeats.
func (x *trial) declared5xx(*answer) profile.Fact { return x.r.o.Profile.Stored.ServerError }

// transientNotPinned makes an operation fail with 429 and with 503, and repeats it: it must be run again, unless the profile declares that server
// errors are stored. A repeat that is put off (a 503 before any work) is sent again, putOffTries times at most.
func transientNotPinned(x *trial) {
	for _, status := range []int{429, 503} {
		if status == 503 && x.r.o.Profile.Stored.ServerError == profile.Yes {
			x.seen("the profile declares that server errors are stored")
			continue
		}
		op := x.newOperation()
		x.r.steering.fail(op, status, 0) // 0: at each send
		first := x.do(op, "fails")
		if first.status != status {
			x.inconclusive("the operation was to answer %d (--fail-query) and answered %s", status, first)
			continue
		}
		x.pause(20 * time.Millisecond)
		again := x.do(op, "the repeat")
		for n := 1; n < putOffTries && again.status != status && x.putOffWait(again) > 0 && x.pause(20*time.Millisecond); n++ { // it is only put off
			again = x.do(op, "the repeat")
		}
		if !x.countFailed(op, first, again) {
			continue
		}
		fate, known := x.errorFate(op, first, again)
		if !known {
			x.inconclusive("stored and run again look the same here: %s", again)
			continue
		}
		x.want(fate == rerunError, "that a "+first.String()+" is run again", "%s: %s", fate, again)
	}
}

// crashEffect makes the handler crash after its effect, and repeats the operation. It records whether the repeat is executed, held or answered,
// without a judgement: after a crash no server can know whether the effect happened.
func crashEffect(x *trial) {
	op := x.newOperation()
	x.r.steering.crash(op, true) // after the effect, where the suite decides that
	crashed := x.do(op, "its handler crashes")
	if crashed.kind == done {
		x.inconclusive("the handler was to crash (--crash-query) and answered %s", crashed)
		return
	}
	before, ok := x.effects(op.ref)
	if !ok {
		return
	}
	again := x.again(op, "the repeat")
	after, ok := x.effects(op.ref)
	if !ok {
		return
	}
	x.noteEffects("before the repeat", before)
	x.noteEffects("after it", after)
	switch {
	case before > 0 && after > before:
		x.seen("executed again after an effect had been counted: %s", plural(after, "effect"))
	case again.outcome():
		x.seen("the repeat was executed: %s", again)
	case again.kind == busy:
		x.seen("the key is held: %s", again)
	default:
		x.seen("the repeat was answered %s", again)
	}
}

package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// inflightCases returns the cases about duplicates that arrive while the server works on the first request. A case is skipped if the target lacks one
// of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own.
func inflightCases() []Case {
	after := []string{"inflight/once"}
	delay := []Need{NeedDelay}
	return slices.Concat([]Case{
		{
			ID: "inflight/once", Level: LevelSafety, Needs: []Need{NeedDelay, NeedEffects}, After: []string{"replay/answered", "replay/effects-once"},
			Spec:   []Ref{invariant("S1"), drafted26Conflict(), outline("T3")},
			Rule:   "Of requests with one key at the same time, exactly one is executed.",
			Impact: "A client that times out and retries while the first is at work pays twice.",
			run: onOverlap(3, func(x *trial, v *overlap) {
				x.wantHistory(v.op, v.all())
				x.wantEffects(v.op, 1, "its reference")
			}),
		}, {
			ID: "inflight/converges", Level: LevelSafety, Needs: delay, After: after,
			Spec:   []Ref{invariant("S2"), drafted26(), outline("T3"), outline("T4")},
			Rule:   "Whoever gets an outcome gets the same one, and the conflict answer is not kept instead of it.",
			Impact: "A retry is told of another payment, or for ever that the payment is being processed.",
			run:    onOverlap(2, converges),
		}, {
			ID: "inflight/status-or-wait", Level: LevelShould, Needs: delay, After: after,
			Spec:   []Ref{drafted27("Still being processed: 409."), outline("T3"), practice("Waiting and replaying is right too; 423 (Mercado Pago) and 429 (Revolut) as profiles declare.")},
			Rule:   "A duplicate in flight is told to wait with the declared status, or waits and gets the outcome.",
			Impact: "A client takes the duplicate for a success, for an outage, or hangs.",
			run:    onOverlap(1, statusOrWait),
		},
	}, retryAfterCases(), []Case{
		{
			ID: "inflight/other-body", Level: LevelSafety, Needs: []Need{NeedDelay, NeedEffects}, After: []string{"inflight/once", "conflict/not-executed", "conflict/not-silent"},
			Spec:   []Ref{invariant("S4"), drafted22(), outline("T5")},
			Rule:   "Another request under a key that is in flight is neither executed nor confirmed.",
			Impact: "Two amounts are charged under one key when they come close together.",
			run:    inflightOtherBody,
		}, {
			ID: "inflight/refusal-not-confirmed", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedDelay, NeedFail}, After: []string{"inflight/once", "inflight/status-or-wait"},
			Spec:   []Ref{invariant("S2"), drafted26Conflict(), outline("T3"), outline("T13"), practice("'Already done' was seen in answer to whoever came second, whatever became of the first.")},
			Rule:   "A duplicate of a request that is refused in the end is not told that it succeeded.",
			Impact: "The card is declined, the second click says paid, and the goods are shipped.",
			Fix: "Answer a duplicate with what the first came to, once it has, or tell it to wait. Usual cause: whoever finds the key taken is told that " +
				"all is done, though nobody knows yet how the first one ends.",
			run: refusalNotConfirmed,
		},
	})
}

// retryAfterCases returns the cases about the wait that the server tells a duplicate. A case is skipped if the target lacks one of its Needs, or if a
// case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own.
func retryAfterCases() []Case {
	after, delay := []string{"inflight/once"}, []Need{NeedDelay}
	return []Case{
		{
			ID: "inflight/retry-after-present", Level: LevelShould, Needs: delay, After: after,
			Spec: []Ref{outline("T18"), rfc("9110", "10.2.3", "Retry-After says how long to wait before a follow-up request.")},
			Rule: "Who is told to wait is told for how long.", Impact: "Clients guess, and either hammer the server or leave the customer waiting.",
			run: onOverlap(1, func(x *trial, v *overlap) {
				told := v.rejected()
				if told == nil {
					x.skip("the duplicate was not told to wait: %s", v.followers[0])
					return
				}
				_, found := hint(x.r.o.Profile, told)
				x.want(found, "a Retry-After", "%s %s", told, yesNo(found, "with a hint", "without a hint"))
			}),
		}, {
			ID: "inflight/retry-after-sane", Level: LevelShould, Needs: delay, After: after,
			Spec: []Ref{rfc("9110", "10.2.3", "Retry-After says how long to wait before a follow-up request."), practice("Retry-After: 30 was seen where the work takes half a second.")},
			Rule: "The wait that is asked for bears some relation to the work.", Impact: "A customer waits a minute for an answer that was there at once.",
			run: onOverlap(1, retryAfterSane),
		}, {
			ID: "inflight/retry-after-honoured", Level: LevelShould, Needs: delay, After: []string{"inflight/once", "inflight/converges", "inflight/leaves-no-trap"},
			Spec: []Ref{rfc("9110", "10.2.3", "Retry-After says how long to wait before a follow-up request."), outline("T18")},
			Rule: "Who waits as told is told the outcome.", Impact: "A client that does as it is told is told to wait again.",
			run: onOverlap(1, retryAfterHonoured),
		},
	}
}

// onOverlap returns a case that sends a request and, while the server works on it, n duplicates, and calls check with the answers: the leader's (the
// first request) and the followers' (the duplicates). If they did not overlap, the case is inconclusive.
func onOverlap(n int, check func(*trial, *overlap)) func(*trial) {
	return func(x *trial) {
		if v, ok := x.overlapped(same(n)); ok {
			check(x, v)
		}
	}
}

// converges checks the answers to duplicates (followers) of a request at work (the leader): none has another outcome than the leader, and a later
// repeat gets the leader's. A success that names nothing fails if it came while more than a quarter of the work was left. A key that does not resolve
// is left to another case. v.hold is the time of the work.
func converges(x *trial, v *overlap) {
	for _, a := range v.followers {
		if same, known := sameOutcome(v.leader, a); a.kind == done && known {
			x.wantOrHarm(otherwise, same, "the leader's outcome", "the leader %s, a follower %s", v.leader, a)
		} else if a.kind == done && a.ended.Before(v.leader.ended.Add(-v.hold/4)) {
			x.wantOrHarm(otherwise, false, "the leader's outcome", "%s while the leader was still at work", a)
		}
	}
	again := x.again(v.op, "after all of them")
	// a replayed "in progress" was stored in place of the outcome, and fails below
	if again.kind == busy && !again.replayed {
		x.skip("the key does not resolve; inflight/leaves-no-trap judges that")
		return
	}
	x.wantFirst(v.op, v.leader, again, " later")
	if x.counts() {
		x.wantEffects(v.op, 1, "its reference")
	}
}

// statusOrWait checks the answer to a duplicate while the first request (the leader) is at work: the declared "in progress", or the leader's outcome
// once there is one. A success before three quarters of the work (v.hold) were over must name what the leader's answer names; a later one that names
// nothing is a warning. If the duplicate was refused by a rate limit, the case is inconclusive.
func statusOrWait(x *trial, v *overlap) {
	a := v.followers[0]
	p := x.r.o.Profile
	if !x.must(a.kind != noAnswer, "an answer", "%s within %v", a, x.r.o.AnswerTimeout) {
		return
	}
	if a.outcome() {
		early := a.ended.Before(v.leader.ended.Add(-v.hold / 4))
		same, known := sameOutcome(v.leader, a)
		x.must(!early || known && same, "to be told to wait, or the leader's outcome", "%s while the leader was still at work", a)
		x.should(known || !v.leader.names() || a.kind == alreadyDone, "to be told to wait, or the leader's outcome", "%s, which does not say what it is about", a)
		return
	}
	// a lone 429 is the server's word for "in progress"; after others in the run it is taken for a rate limit
	if x.r.limited(a) && x.r.throttled.Load() > 0 {
		x.inconclusive("the duplicate met the limit on the rate of requests: %s", a)
		return
	}
	x.noServerError(a, "to be told to wait", "%s", a)
	declared := matchesAny(p.InProgress, a) || len(p.InProgress) == 0 && a.status == http.StatusConflict
	x.want(declared, "to be told to wait with "+inProgressStatuses(p), "%s", a)
}

// inProgressStatuses returns the statuses by which the profile's API says that the first request is in progress, in words for the report.
func inProgressStatuses(p *profile.Profile) string {
	text := ""
	for _, m := range p.InProgress {
		for _, status := range m.Status {
			if text != "" {
				text += " or "
			}
			text += fmt.Sprint(status)
		}
	}
	if text == "" {
		return "409"
	}
	return text + " as the profile spells it"
}

// hint returns the wait that an answer asks for, by the profile's hints, tried in order, or else Retry-After: a number in the hint's unit, or an HTTP
// date. False: it asks for none that can be read.
func hint(p *profile.Profile, a *answer) (time.Duration, bool) {
	hints := p.RetryAfter
	if len(hints) == 0 {
		hints = []profile.Hint{{Header: "Retry-After", Unit: profile.HTTPDelay}}
	}
	for _, h := range hints {
		text := a.header.Get(h.Header)
		if h.Pointer != "" {
			text, _ = lookupText(a.body, h.Pointer)
		}
		if text == "" {
			continue
		}
		unit := time.Second
		if h.Unit == profile.Milliseconds {
			unit = time.Millisecond
		}
		if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
			return time.Duration(n) * unit, true
		}
		if at, err := http.ParseTime(text); err == nil {
			return max(time.Until(at), 0), true
		}
	}
	return 0, false
}

// retryAfterSane checks that the server tells a duplicate a sensible time to wait: at most ten times the duration of the work, or five seconds if
// that is longer.
func retryAfterSane(x *trial, v *overlap) {
	told := v.rejected()
	if told == nil {
		x.skip("the duplicate was not told to wait: %s", v.followers[0])
		return
	}
	wait, found := hint(x.r.o.Profile, told)
	if !found {
		x.skip("it was not told for how long; inflight/retry-after-present judges that")
		return
	}
	limit := max(5*time.Second, 10*v.hold)
	x.want(wait <= limit, fmt.Sprintf("at most %v for work of %v", limit, v.hold), "Retry-After of %v", wait)
}

// waitMax is the longest wait that the suite follows.
const waitMax = 5 * time.Second

// retryAfterHonoured waits as long as a duplicate was told, and sends it again. A wait over waitMax would be too long for a run, and skips the case.
// Then it must get the outcome, and not be told to wait once more.
func retryAfterHonoured(x *trial, v *overlap) {
	told := v.rejected()
	if told == nil {
		x.skip("the duplicate was not told to wait: %s", v.followers[0])
		return
	}
	wait, found := hint(x.r.o.Profile, told)
	if !found || wait > waitMax {
		x.skip("it was not told to wait for at most %v", waitMax)
		return
	}
	x.pause(max(time.Until(told.ended.Add(wait)), 0))
	again := x.do(v.op, "after waiting as told")
	x.wantOrHarm(stuck, again.kind != busy, "the outcome", "%s after %v", again, wait)
}

// inflightOtherBody sends another body under the leader's key while the leader runs: it must not be executed, and the leader's outcome stays. It may
// be told to wait: the server need not compare bodies yet.
func inflightOtherBody(x *trial) {
	var other *operation
	v, ok := x.overlapped(func(op *operation) []*operation {
		other = x.changed(op)
		return []*operation{other}
	})
	if !ok {
		return
	}
	a := v.followers[0]
	x.notExecuted(other, a, "the other request")
	if !x.failed() { // else it was executed, which says more
		x.want(a.kind != done, "a refusal, or to be told to wait", "%s", a)
	}
	x.wantFirst(v.op, v.leader, x.again(v.op, "the leader's once more"), " later")
	x.wantEffects(v.op, 1, "the leader")
}

// refusalNotConfirmed sends a duplicate while the first request is at work, and that is refused in the end: the duplicate must not be a success. If
// they may not have met, it tries again with three times the work; at last the case is skipped.
func refusalNotConfirmed(x *trial) {
	hold := x.r.o.Hold
	for range holdTriesMax {
		v, proved := x.refusedInTheEnd(hold)
		switch {
		case v.leader.outcome():
			x.skip("an operation cannot be slow and be refused (--delay-query with --fail-query): it was answered %s", v.leader)
			return
		// a leader told to wait is not refused yet: it came second, and shows nothing
		case v.leader.kind != busy && proved:
			a := v.followers[0]
			x.wantOrHarm(lost, !a.outcome(), "to be told to wait, or the refusal", "%s, and the request itself %s", a, v.leader)
			return
		}
		hold *= 3
	}
	x.skip("a request that fails could not be held for %v (--delay-query with --fail-query)", hold/3)
}

// refusedInTheEnd makes one try of refusalNotConfirmed: a slow request (the leader) that is refused with 402 in the end, with a duplicate (the
// follower) while it is at work. v holds both answers. proved is false if the duplicate may not have met it at work. gate holds the operation at work
// in the suite's own handler; for another server gate.entered is nil, and only the time tells when it is at work.
func (x *trial) refusedInTheEnd(hold time.Duration) (v *overlap, proved bool) {
	v = &overlap{op: x.newOperation(), hold: hold}
	gate := x.r.steering.hold(v.op, hold)
	defer gate.release()
	x.r.steering.fail(v.op, http.StatusPaymentRequired, 0) // 0: at each send
	lead := x.launch(v.op, "leader", "slow, and refused in the end")
	<-lead.sent
	x.awaitEntry(gate, lead, hold)
	follower := x.launch(v.op, "follower", "while the leader runs")
	if gate.entered != nil {
		x.awaitFollowers([]*sending{follower})
		gate.release()
	}
	v.leader, v.followers = lead.wait(), []*answer{follower.wait()}
	a := v.followers[0]
	held := v.leader.ended.Sub(v.leader.started) >= hold*3/4 // else it failed at once
	return v, a.kind != noAnswer && (gate.entered != nil || held && v.met(a))
}

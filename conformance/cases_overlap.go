package conformance

import (
	"fmt"
	"time"
)

// Duplicates are sent from aroundSpread before to aroundSpread after the expected end of an
// operation, one in each aroundStep.
const (
	aroundSpread = 30 * time.Millisecond
	aroundStep   = 5 * time.Millisecond
)

// overlapCases returns the cases about many duplicates at once, about long work, and about callers that leave during it. A case is skipped if the
// target lacks one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the
// suite's own. Alone: nothing else runs beside it. early: it waits for long, and begins before the cases of After have ended.
func overlapCases() []Case {
	return []Case{
		{
			ID: "inflight/burst", Level: LevelSafety, Alone: true, Needs: []Need{NeedEffects}, After: []string{"inflight/once", "replay/answered", "replay/effects-once"},
			Spec:   []Ref{invariant("S1"), drafted26Conflict(), outline("T3"), practice("Stores that look before they claim fail in a burst only.")},
			Rule:   "Of 64 duplicates that are released at one instant, exactly one is executed.",
			Impact: "A double click, or a queue that delivers twice, pays twice once in a while.",
			run:    bursts,
		}, {
			ID: "inflight/around-completion", Level: LevelSafety, Needs: []Need{NeedDelay, NeedEffects}, After: []string{"inflight/once", "inflight/converges", "inflight/leaves-no-trap"},
			Spec:   []Ref{invariant("S1"), drafted26(), outline("T3")},
			Rule:   "Duplicates that arrive just before, while and just after the first completes are not executed.",
			Impact: "The retry that comes in the very moment in which the lock gives way to the record pays again.",
			run:    aroundCompletion,
		}, {
			ID: "inflight/long-work", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedDelay, NeedEffects}, After: []string{"inflight/once", "replay/answered", "replay/effects-once"},
			Spec:   []Ref{invariant("S1"), practice("Locks of 5 s in front of work that takes longer are taught.")},
			Rule:   "A duplicate that arrives when the first has been at work for five seconds is not executed.",
			Impact: "When the bank is slow, every retry is another payment.",
			Fix: "Let the lock live as long as the work: renew it while the work goes on, or record that the key is being worked on and decide what is stale by asking, " +
				"not by time. Usual cause: SET NX with a short expiry.",
			early: true, run: longWork,
		}, {
			ID: "inflight/follower-leaves", Level: LevelSafety, Needs: []Need{NeedDelay, NeedEffects}, After: []string{"inflight/once", "inflight/leaves-no-trap", "net/response-lost-then-retry"},
			Spec:   []Ref{invariant("S1"), invariant("L1"), outline("T15")},
			Rule:   "A duplicate that hangs up changes nothing for the one that is at work.",
			Impact: "A retry that gives up releases the lock of the first request, and the next one pays again.",
			run:    followerLeaves,
		}, {
			ID: "inflight/leader-leaves", Level: LevelLiveness, Needs: []Need{NeedDelay}, After: []string{"inflight/once", "net/abort-then-retry-resolves", "net/once"},
			Spec:   []Ref{invariant("L1"), invariant("S1"), outline("T15")},
			Rule:   "When the first caller hangs up, its duplicate still gets the outcome, once.",
			Impact: "The retry waits for ever for somebody who has gone.",
			run:    leaderLeaves,
		}, {
			ID: "inflight/leaves-no-trap", Level: LevelLiveness, Needs: []Need{NeedDelay}, After: []string{"inflight/once", "inflight/converges"},
			Spec:   []Ref{invariant("L1"), outline("T4")},
			Rule:   "After concurrent duplicates the key still resolves.",
			Impact: "One retry too early, and the payment is 'being processed' for a day.",
			run: onOverlap(1, func(x *trial, v *overlap) {
				again := x.resolve(v.op, "after all of them")
				resolved := x.wantOutcome(again, "the outcome within "+x.r.o.Settle.String(), "%s", again)
				if x.counts() {
					x.onceIf(resolved, v.op, "its reference")
				}
			}),
		},
	}
}

// aroundCompletion sends one duplicate after the other from aroundSpread before to aroundSpread after the end of a slow operation. There must be one
// effect and one outcome. The try is made again if the operation was not slow enough to meet any, or was not the first to arrive (overtaken). gate
// holds the operation at work in the suite's own handler; for another server gate.entered is nil, and only the time tells when it is at work.
func aroundCompletion(x *trial) {
	x.holding(func(hold time.Duration) bool {
		op := x.newOperation()
		gate := x.r.steering.hold(op, hold)
		defer gate.release()
		lead := x.launch(op, "leader", "slow")
		<-lead.sent
		x.awaitEntry(gate, lead, hold)
		if gate.entered == nil {
			x.pause(max(hold*7/8-aroundSpread, 0)) // so that the first duplicate comes about the end of the work
		}
		var sendings []*sending
		for at := -aroundSpread; at <= aroundSpread; at += aroundStep {
			if at == 0 {
				gate.release()
			}
			sendings = append(sendings, x.launch(op, fmt.Sprintf("at %+d ms", at.Milliseconds()), "around the end"))
			x.pause(aroundStep)
		}
		answers := []*answer{lead.wait()}
		for _, f := range sendings {
			answers = append(answers, f.wait())
		}
		if overtaken(answers[0]) || gate.entered == nil && answers[0].ended.Sub(answers[0].started) < hold*3/4 {
			return false
		}
		if x.setup(answers[0]) {
			x.wantHistory(op, answers)
			x.wantEffects(op, 1, "its reference")
		}
		return true
	})
}

// longHold is the age of the first request when its duplicate arrives: the shortest lock that
// is widely taught.
const longHold = 5 * time.Second

// longWork sends a duplicate after five seconds (longHold) of an operation that takes a little longer. It must not be executed (sameOrTwice: another
// outcome is a second effect), although a lock with a lifetime of five seconds, a usual one, would be over by then. gate holds the operation at work
// in the suite's own handler; for another server gate.entered is nil, and only the time tells when it is at work.
func longWork(x *trial) {
	hold := min(longHold+longHold/10, x.r.o.AnswerTimeout*3/4) // so that the answer comes within the time for one
	op := x.newOperation()
	gate := x.r.steering.hold(op, hold)
	defer gate.release()
	lead := x.launch(op, "leader", "slow")
	<-lead.sent
	x.pause(hold * 10 / 11) // longHold, unless answers must come sooner
	follower := x.launch(op, "follower", "late, while the leader runs")
	if gate.entered != nil {
		x.awaitFollowers([]*sending{follower})
		gate.release()
	}
	leader, late := lead.wait(), follower.wait()
	if !leader.outcome() || gate.entered == nil && leader.ended.Sub(leader.started) < hold*3/4 {
		x.inconclusive("no overlap came about: the first request was answered %s after %v (--delay-query)", leader, leader.ended.Sub(leader.started).Round(time.Millisecond))
		return
	}
	if same, known := sameOutcome(leader, late); late.kind == done && known {
		x.wantOrHarm(x.sameOrTwice(op, same), same, "the leader's outcome, or to be told to wait", "the leader %s, a follower after %v %s", leader, hold*10/11, late)
	}
	x.wantEffects(op, 1, "its reference, which took "+hold.String())
}

// followerLeaves lets duplicates of a slow operation hang up while it is at work. The operation and the duplicate that stays must get one outcome,
// with one effect. False tries again with longer work: the operation was overtaken by a duplicate, or was not slow.
func followerLeaves(x *trial) {
	x.holding(func(hold time.Duration) bool {
		op := x.newOperation()
		leader, third := x.withLeavers(op, hold)
		if overtaken(leader) || !x.r.steering.ownsHandler() && leader.ended.Sub(leader.started) < hold*3/4 {
			return false
		}
		if !x.setup(leader) {
			return true
		}
		x.wantHistory(op, []*answer{leader, third})
		x.wantFirst(op, leader, x.resolve(op, "after all of them"), " later")
		x.wantEffects(op, 1, "its reference")
		return true
	})
}

// withLeavers sends two duplicates whose clients hang up, one by FIN and one by RST, and a third that stays, while a first request (the leader) runs.
// It returns the answers to leader and third. The pause lets the server see that they have left. gate holds the operation at work in the suite's own
// handler; for another server gate.entered is nil, and only the time tells when it is at work.
func (x *trial) withLeavers(op *operation, hold time.Duration) (leader, third *answer) {
	gate := x.r.steering.hold(op, hold)
	defer gate.release()
	lead := x.launch(op, "leader", "slow")
	<-lead.sent
	x.awaitEntry(gate, lead, hold)
	for _, reset := range []bool{false, true} {
		l := x.dial("follower")
		l.load(op, withLength)
		l.note = "leaves"
		l.write(0)
		l.leave(reset) // by RST if true, else by FIN
	}
	x.pause(min(hold/8, 20*time.Millisecond))
	after := x.launch(op, "third", "while the leader may be running")
	if gate.entered != nil {
		x.awaitFollowers([]*sending{after})
	}
	gate.release()
	return lead.wait(), after.wait()
}

// leaderLeaves lets the first client leave during the work, with a duplicate waiting: the key resolves, all outcomes are one, and there is one
// effect. If the leader may not have left during the work (during is false), it tries again with longer work.
func leaderLeaves(x *trial) {
	x.holding(func(hold time.Duration) bool {
		op := x.newOperation()
		told, during := x.leftBehind(op, hold)
		if !during {
			return false
		}
		again := x.until(op, "afterwards", hold+x.r.o.Settle, true) // true: also past server errors
		resolved := x.wantOutcome(again, "the outcome within "+x.r.o.Settle.String(), "%s", again)
		if same, known := sameOutcome(told, again); told.outcome() && again.outcome() && known && !same {
			x.wantOrHarm(x.twoNames(op), false, "one outcome", "the follower %s, a later repeat %s", told, again)
		}
		x.onceIf(resolved, op, "its reference")
		return true
	})
}

// leftBehind sends a slow request (the leader), then a duplicate, and lets the leader's client hang up. told is the answer to the duplicate. during
// is false if the leader may have been answered before it left, or may have left before the duplicate arrived: the try shows nothing then. A status
// that has begun to arrive counts as an answer. gate holds the operation at work in the suite's own handler; for another server gate.entered is nil,
// and only the time tells when it is at work.
func (x *trial) leftBehind(op *operation, hold time.Duration) (told *answer, during bool) {
	gate := x.r.steering.hold(op, hold)
	defer gate.release()
	l := x.dial("leader")
	l.load(op, withLength)
	l.note = "leaves while its request is handled"
	began := time.Now()
	l.write(0)
	x.enteredOr(gate, hold/leadPart)
	follower := x.launch(op, "follower", "while the leader runs")
	<-follower.sent
	x.pause(hold / 8)
	if l.answered() { // so it was not at work, as after 429
		l.receive()
		l.close()
	} else {
		l.leave(false) // by FIN
		during = gate.entered != nil || time.Since(began) < hold
	}
	x.pause(hold / 8)
	gate.release()
	return follower.wait(), during
}

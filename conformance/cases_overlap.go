package conformance

import (
	"fmt"
	"time"
)

// burstWidth is how many duplicates are released at one instant in the first
// rounds; later rounds are narrower, so that there can be more of them.
const (
	burstWidth      = 64
	burstWide       = 3
	burstNarrow     = 16
	aroundSpread    = 30 * time.Millisecond
	aroundStep      = 5 * time.Millisecond
	burstRoundQuiet = 2
)

// overlapCases: bursts, and callers that leave.
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
				x.want(again.outcome(), "the outcome within "+x.r.o.Settle.String(), "%s", again)
			}),
		},
	}
}

func bursts(x *trial) {
	clean, narrow := 0, 0
	for round := range x.r.o.Rounds {
		width := burstWidth
		if round >= burstWide {
			width = burstNarrow
			narrow++
		}
		op := x.op()
		answers := x.burst(op, width)
		if x.ctx.Err() != nil {
			break
		}
		n, ok := x.settledEffects(op.ref, 1)
		if !ok {
			return
		}
		if x.uncounted() {
			n = -1
		}
		r := judgeHistory(events(answers), n)
		if !r.known {
			x.vague("round %d: %s", round+1, r.why)
			return
		}
		if !r.legal {
			x.note("its reference", max(n, 0))
			x.want(false, "one effect; each answer its outcome, or in-progress while it may be running", "round %d of %d, %d at once: %s", round+1, x.r.o.Rounds, width, r.why)
			return
		}
		clean++
		if round >= burstRoundQuiet {
			x.forget()
		}
	}
	x.want(true, "", "%d rounds without a find (%d of %d, %d of %d at once); no proof that there is none", clean, clean-narrow, burstWidth, narrow, burstNarrow)
}

// forget drops the evidence of a round in which nothing was found.
func (x *trial) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sent.forget()
}

// aroundCompletion sends one duplicate after the other, from shortly before the
// expected end to shortly after it.
func aroundCompletion(x *trial) {
	x.holding(func(hold time.Duration) bool {
		op := x.op()
		gate := x.r.stage.hold(op, hold)
		defer gate.release()
		lead := x.launch(op, "leader", "slow")
		<-lead.sent
		x.awaitEntry(gate, lead, hold)
		if gate.entered == nil {
			x.pause(max(hold*7/8-aroundSpread, 0))
		}
		var flights []*flight
		for at := -aroundSpread; at <= aroundSpread; at += aroundStep {
			if at == 0 {
				gate.release()
			}
			flights = append(flights, x.launch(op, fmt.Sprintf("at %+d ms", at.Milliseconds()), "around the end"))
			x.pause(aroundStep)
		}
		answers := []*answer{lead.wait()}
		for _, f := range flights {
			answers = append(answers, f.wait())
		}
		if overtaken(answers[0]) {
			return false
		}
		if x.setup(answers[0]) {
			x.wantHistory(op, answers)
			x.wantEffects(op, 1, "its reference")
		}
		return true
	})
}

func followerLeaves(x *trial) {
	x.holding(func(hold time.Duration) bool {
		op := x.op()
		leader, third := x.withLeavers(op, hold)
		if overtaken(leader) {
			return false
		}
		if !x.setup(leader) {
			return true
		}
		x.wantHistory(op, []*answer{leader, third})
		again := x.resolve(op, "after all of them")
		same, known := sameOutcome(leader, again)
		x.want(again.outcome() && (same || !known), "the leader's outcome", "the leader %s, a later repeat %s", leader, again)
		x.wantEffects(op, 1, "its reference")
		return true
	})
}

// withLeavers sends two duplicates that leave, and a third that does not, while
// a leader runs.
func (x *trial) withLeavers(op *operation, hold time.Duration) (leader, third *answer) {
	gate := x.r.stage.hold(op, hold)
	defer gate.release()
	lead := x.launch(op, "leader", "slow")
	<-lead.sent
	x.awaitEntry(gate, lead, hold)
	for _, reset := range []bool{false, true} {
		l := x.dial("follower")
		l.load(op, withLength)
		l.note = "leaves"
		l.write(0)
		l.leave(reset)
	}
	x.pause(min(hold/8, 20*time.Millisecond))
	after := x.launch(op, "third", "while the leader may be running")
	if gate.entered != nil {
		x.awaitFollowers([]*flight{after})
	}
	gate.release()
	return lead.wait(), after.wait()
}

func leaderLeaves(x *trial) {
	op := x.op()
	gate := x.r.stage.hold(op, x.r.o.Hold)
	defer gate.release()
	l := x.dial("leader")
	l.load(op, withLength)
	l.note = "leaves while its request is handled"
	l.write(0)
	x.pause(x.r.o.Hold / leadPart)
	follower := x.launch(op, "follower", "while the leader runs")
	<-follower.sent
	x.pause(x.r.o.Hold / 8)
	l.leave(false)
	x.pause(x.r.o.Hold / 8)
	gate.release()
	follower.wait()
	again := x.until(op, "afterwards", x.r.o.Hold+x.r.o.Settle, true)
	x.want(again.outcome(), "the outcome within "+x.r.o.Settle.String(), "%s", again)
	x.pause(x.r.o.Hold)
	x.wantEffects(op, 1, "its reference")
}

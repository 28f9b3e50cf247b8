package conformance

import (
	"context"
	"strings"
	"time"
)

// timeCases returns the cases about the window, the time for which the server remembers a key. A case is skipped if the target lacks one of its
// Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own. Alone: nothing
// else runs beside it.
func timeCases() []Case {
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "time/not-before", Level: LevelSafety, Needs: []Need{NeedWindow, NeedEffects}, After: after,
			Spec:   []Ref{invariant("S1"), draft07("2.3", "The expiry policy is published."), outline("T17")},
			Rule:   "A key is known for as long as its window is said to be.",
			Impact: "A retry inside the promised window pays again.",
			run:    notBefore,
		}, {
			ID: "time/expires", Level: LevelPolicy, Alone: true, Needs: []Need{NeedExpiry}, After: after,
			Spec:   []Ref{draft07("2.3", "The expiry policy is published."), outline("T17"), practice("Expiry is silent everywhere but with OASIS and Azure, which answer 412.")},
			Rule:   "After its window a key is fresh again, or refused as expired.",
			Impact: "Keys that are never forgotten fill the store, and a reused one is answered with last year's payment.",
			run:    expires,
		},
	}
}

// notBefore repeats an operation at two thirds of the window (the time for which the server promises to remember a key): it gets the first outcome. A
// repeat that ends after nine tenths of it is inconclusive: so close to the end of the window, two clocks may differ.
func notBefore(x *trial) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return
	}
	window := x.r.o.Window
	x.pause(max(time.Until(first.started.Add(window*2/3)), 0))
	again := x.do(op, "at two thirds of the window")
	if again.ended.Sub(first.started) >= window*9/10 {
		x.inconclusive("the repeat came too late to tell: after %v of %v", again.ended.Sub(first.started).Round(time.Millisecond), window)
		return
	}
	x.wantFirst(op, first, again, " at two thirds of "+window.String())
	x.wantEffects(op, 1, "its reference")
}

// expires repeats an operation after the window of its key, the time for which the server promises to remember it. The repeat must be executed anew,
// or refused with 412. With Options.Expire a command of the user makes keys expire, and there is no wait. Any other answer is only recorded.
func expires(x *trial) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return
	}
	if x.r.o.Expire != nil {
		if err := x.r.o.Expire(x.ctx); err != nil {
			x.inconclusive("keys could not be made to expire: %s", errorText(err))
			return
		}
	} else {
		x.pause(max(time.Until(first.ended.Add(x.r.o.Window)), 0) + x.r.o.Window/5 + 50*time.Millisecond) // some more, for clocks and stores that are not exact
	}
	again := x.do(op, "after the window")
	same, known := sameOutcome(first, again)
	switch {
	case again.status == 412:
		x.want(true, "", "expired, as OASIS has it: %s", again)
	case again.kind == done && known:
		x.want(!same, "a fresh execution, or 412", "%s, then %s", first, again)
	case again.kind == done && again.replayed:
		x.want(false, "a fresh execution, or 412", "%s, then %s", first, again)
	default:
		x.seen("after the window: %s", again)
	}
}

// restartCases returns the cases in which the target is killed and started again. A case is skipped if the target lacks one of its Needs, or if a
// case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own. Alone: nothing else runs
// beside it. survived tells whether the counter of effects has kept its counts over the restart: only then they can be compared.
func restartCases() []Case {
	needs := []Need{NeedRestart}
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "restart/replay-survives", Level: LevelSafety, Alone: true, Needs: needs, After: after,
			Spec:   []Ref{invariant("S1"), draft07("2.3", "A key is kept until it expires as published.")},
			Rule:   "A completed key is still known after the server was killed and has come back.",
			Impact: "Every deployment is a chance to pay twice.",
			run: func(x *trial) {
				op := x.newOperation()
				first, ok := x.first(op)
				if !ok || !x.restart() {
					return
				}
				survived := x.survived(op)
				again := x.resolve(op, "after the restart")
				x.wantFirst(op, first, again, " after the restart")
				if survived && x.counts() {
					x.wantEffects(op, 1, "its reference")
				}
			},
		}, {
			ID: "restart/inflight-killed-resolves", Level: LevelLiveness, Alone: true, Needs: []Need{NeedRestart, NeedDelay}, After: after,
			Spec:   []Ref{invariant("L1"), outline("T16")},
			Rule:   "A key whose request was at work when the server was killed resolves after it has come back.",
			Impact: "Whoever was paying during the crash can never pay with that order again.",
			run: func(x *trial) {
				if _, again, ok := x.killed(); ok {
					x.wantOrHarm(unresolved(again), again.outcome() || again.kind == broken, "an outcome within "+x.r.o.Settle.String(), "%s", again)
				}
			},
		}, {
			ID: "restart/no-double-after-kill", Level: LevelSafety, Alone: true, Needs: []Need{NeedRestart, NeedDelay, NeedEffects}, After: after,
			Spec:   []Ref{invariant("S1"), outline("T16")},
			Rule:   "A request that was at work when the server was killed has at most one effect after the retry.",
			Impact: "Whoever was paying during the crash pays twice.",
			run: func(x *trial) {
				before := x.newOperation()
				if _, ok := x.first(before); !ok {
					return
				}
				op, again, ok := x.killed()
				if !ok || !x.survived(before) {
					return
				}
				n, counted := x.settledEffects(op.ref, count(again.outcome()))
				if !counted {
					return
				}
				x.noteEffects("its reference", n)
				if x.atMost(op, 1, n, "its reference") && x.wantEffectOfSuccess(op, again) {
					x.want(true, "", "%s after the retry was answered %s", plural(n, "effect"), again)
				}
			},
		},
	}
}

// survived reports whether the witness (the counter of effects) still counts op's effect from before the restart. If not, the case is inconclusive:
// its counts are too low from now on. Without a counter it returns true.
func (x *trial) survived(op *operation) bool {
	if !x.counts() {
		return true
	}
	n, ok := x.effects(op.ref)
	if ok && n == 0 {
		x.inconclusive("the witness has forgotten what it had counted before the restart (--witness, --restart-cmd)")
		return false
	}
	return ok
}

// comeBack is the least time that a target is given to accept connections again.
const comeBack = 10 * time.Second

// restart kills the target and waits until it accepts connections again. False: it did not, and the case is inconclusive. From the call on, refused
// connections are no failure of the transport (calm).
func (x *trial) restart() bool {
	x.calm = true
	if err := x.r.o.Restart(x.ctx); err != nil {
		x.inconclusive("the target could not be restarted: %s", strings.TrimPrefix(errorText(err), "conformance: "))
		return false
	}
	deadline := time.Now().Add(max(x.r.o.Settle, comeBack))
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(x.ctx, time.Second)
		conn, err := x.r.connect(ctx)
		cancel()
		if err == nil {
			_ = conn.Close() // nothing was said on it
			return true
		}
		if !x.pause(50 * time.Millisecond) {
			break
		}
	}
	x.inconclusive("the target did not come back")
	return false
}

// killed kills the target while an operation is at work, waits until it is back, and sends the operation again. It returns the operation with its
// last answer. The work is four holds long, so that the kill, at half a hold, falls into it; a record of it may be locked for as long. False: the
// target was not killed during the work, and the case is inconclusive.
func (x *trial) killed() (*operation, *answer, bool) {
	x.calm = true // refused connections are no failure: the target is killed
	op := x.newOperation()
	gate := x.r.steering.hold(op, 4*x.r.o.Hold)
	defer gate.release()
	lead := x.launch(op, "leader", "at work when the target is killed")
	<-lead.sent
	x.pause(x.r.o.Hold / 2)
	if !x.restart() {
		lead.wait()
		return nil, nil, false
	}
	if a := lead.wait(); a.outcome() {
		x.inconclusive("the request was answered before the target was killed: %s", a)
		return nil, nil, false
	}
	return op, x.until(op, "after the restart", 4*x.r.o.Hold+x.r.o.Settle, true), true // the first true: also past server errors
}

package conformance

import (
	"fmt"
	"sync"
	"time"
)

// flooded is one request among many, with its answer.
type flooded struct {
	op *operation
	l  *link // closed; for the evidence
	*answer
}

// volumeRun is one run of a case of volume. The goroutine of the trial uses it.
type volumeRun struct {
	trial *trial
	plan  VolumePlan // the amount that the case may send
}

// floodTime bounds one call of flood.
const floodTime = 20 * time.Second

// flood sends many operations, Options.Parallel at a time, for floodTime at most. It returns those that were sent, in the order of ops. It ends early
// with the case. The report gets none of them before showFlooded.
func (v volumeRun) flood(ops []*operation, note string) []*flooded {
	all := make([]*flooded, len(ops))
	end := time.Now().Add(floodTime)
	next := make(chan int)
	var wait sync.WaitGroup
	for range v.trial.r.o.Parallel {
		wait.Go(func() {
			for i := range next {
				all[i] = v.floodOne(ops[i], note)
			}
		})
	}
	sent := 0
	for ; sent < len(ops) && v.trial.ctx.Err() == nil && !v.trial.over() && time.Now().Before(end); sent++ {
		next <- sent
	}
	close(next)
	wait.Wait()
	return all[:sent]
}

// floodOne sends one of many requests on a connection of its own, which it closes. After a
// rate limit it sends again.
func (v volumeRun) floodOne(op *operation, note string) *flooded {
	f := &flooded{op: op}
	f.answer = v.trial.pastLimit(op, func() *answer {
		l := v.trial.dial("")
		defer l.close()
		l.silent = true
		l.load(op, withLength)
		l.note = note
		l.write(0)
		a := l.receive()
		l.resetOnClose(a)
		f.l = l
		return a
	})
	return f
}

// showFlooded keeps the exchange as evidence, and returns f.
func (v volumeRun) showFlooded(f *flooded) *flooded {
	v.trial.keep(f.l, f.answer)
	return f
}

// fresh returns n new operations, each changed by change.
func (v volumeRun) fresh(n int, change func(op *operation)) []*operation {
	ops := make([]*operation, n)
	for i := range ops {
		ops[i] = v.trial.newOperation().with(change)
	}
	return ops
}

// begin sends new operations and returns those that succeeded, to be repeated later. False: one of them got another's outcome, a fresh key was
// refused, or fewer than nine in ten succeeded; the finding is recorded.
func (v volumeRun) begin(ops []*operation, note string) ([]*flooded, bool) {
	var taken []*flooded
	all := v.flood(ops, note)
	for _, f := range all {
		switch {
		// its id or Location is that of another operation
		case f.outcome() && !v.trial.isOwn(&sent{op: f.op, answer: f.answer}):
			v.trial.proved = true
			v.showFlooded(f)
			v.trial.wantOrHarm(lost, false, "an outcome of its own for each of "+plural(len(all), "fresh key"), "%s of another reference", f)
			return nil, false
		case f.outcome():
			taken = append(taken, f)
		case f.kind == mismatch || f.kind == refused || f.kind == busy && !f.throttled:
			if v.refusesKey(f, len(all)) {
				return nil, false
			}
		}
	}
	if len(taken) < len(all)*9/10 || len(taken) == 0 {
		v.trial.inconclusive("of %s only %d were taken", plural(len(all), "operation"), len(taken))
		return nil, false
	}
	return taken, true
}

// refusesKey reports, as a failed check, that f was refused for its key: the refusal comes
// again, and the same request under another key succeeds. among is the number of fresh keys,
// for the report.
func (v volumeRun) refusesKey(f *flooded, among int) bool {
	again := v.trial.again(f.op, "the refused one, again")
	if again.kind != mismatch && again.kind != refused && again.kind != busy {
		return false
	}
	other := f.op.with(func(dup *operation) {
		dup.key = v.trial.newOperation().key
		dup.fillKey(v.trial.r)
	})
	if a := v.trial.do(other, "the same under another key"); !a.outcome() {
		return false
	}
	v.showFlooded(f)
	return !v.trial.wantOrHarm(denied, false, "a fresh key is taken", "%s for one of %s, and again %s; under another key the same request is taken", f, plural(among, "fresh key"), again)
}

// repeatAll sends the operations of first again and checks outcomes and effects. after says in the report, "after ...", what came in between. It
// stops at the first failure. A success that names nothing passes here: countAll counts its effects. An answer that leaves the key open is asked for
// again before it is judged.
func (v volumeRun) repeatAll(first []*flooded, after string) {
	ops := make([]*operation, len(first))
	for i, f := range first {
		ops[i] = f.op
	}
	repeats := v.flood(ops, "a repeat, "+after)
	for i, again := range repeats {
		if same, known := sameOutcome(first[i].answer, again.answer); again.outcome() && (same || !known) {
			continue
		}
		if again.kind == busy || again.kind == noAnswer || again.kind == broken {
			again.answer = v.trial.again(again.op, "the repeat once more")
		}
		same, known := sameOutcome(first[i].answer, again.answer)
		switch {
		case again.outcome() && known && !same:
			v.trial.proved = true
			v.showFlooded(first[i])
			v.showFlooded(again)
			v.trial.wantOrHarm(v.trial.twoNames(again.op), false, "the first outcome "+after, "%s, and then %s", first[i], again)
			return
		case !again.outcome():
			v.showFlooded(first[i])
			v.showFlooded(again)
			v.trial.wantOrHarm(unresolved(again.answer), false, "the first outcome "+after, "%s, and then %s", first[i], again)
			return
		}
	}
	if len(repeats) == 0 {
		v.trial.inconclusive("no repeat was sent in time")
		return
	}
	v.countAll(ops, after)
	v.trial.find(VerdictPass, fmt.Sprintf("%s had the first outcome %s", plural(len(repeats), "repeat"), after))
}

// countAll checks the effects of repeated operations: one for each at most. It stops at the first failure, and does nothing without a counter. The
// counts are repeated at the end of the case (claims), for late effects. after says, for the report, what came in between.
func (v volumeRun) countAll(ops []*operation, after string) {
	if !v.trial.counts() {
		return
	}
	claims := make([]claim, len(ops))
	for i, op := range ops {
		claims[i] = claim{ref: op.ref, what: "an operation that was repeated " + after, most: 1} // most: the effects that are allowed
	}
	v.trial.witness = v.trial.r.learnt.witness
	for i, n := range v.trial.r.recount(v.trial.ctx, claims) {
		claims[i].seen = n
		if n > 1 {
			v.trial.atMost(ops[i], 1, n, claims[i].what)
			return
		}
	}
	v.trial.claims = append(v.trial.claims, claims...)
}

// someOf returns up to n of a list: half of them from its start, the others spread over the
// rest.
func someOf(all []*flooded, n int) []*flooded {
	if len(all) <= n {
		return all
	}
	few := all[: n/2 : n/2] // no spare capacity: append must not write into all
	for i := range n - n/2 {
		few = append(few, all[n/2+i*(len(all)-n/2)/(n-n/2)])
	}
	return few
}

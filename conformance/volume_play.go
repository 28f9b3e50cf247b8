package conformance

import (
	"fmt"
	"sync"
	"time"
)

// flooded is one request among many, with its answer.
type flooded struct {
	op *operation
	l  *link
	*answer
}

// floodTime bounds how long requests are sent that differ in number only.
const floodTime = 20 * time.Second

// flood sends operations, Options.Parallel at a time, and returns what was sent within floodTime.
// Nothing of it is evidence until show says so.
func (x *trial) flood(ops []*operation, note string) []*flooded {
	all := make([]*flooded, len(ops))
	end := time.Now().Add(floodTime)
	next := make(chan int)
	var wait sync.WaitGroup
	for range x.r.o.Parallel {
		wait.Go(func() {
			for i := range next {
				all[i] = x.floodOne(ops[i], note)
			}
		})
	}
	sent := 0
	for ; sent < len(ops) && x.ctx.Err() == nil && !x.over() && time.Now().Before(end); sent++ {
		next <- sent
	}
	close(next)
	wait.Wait()
	return all[:sent]
}

// floodOne sends one of many requests on a connection of its own.
func (x *trial) floodOne(op *operation, note string) *flooded {
	f := &flooded{op: op}
	f.answer = x.pastLimit(op, func() *answer {
		l := x.dial("")
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

// show makes the exchange evidence.
func (x *trial) showFlooded(f *flooded) *flooded {
	x.keep(f.l, f.answer)
	return f
}

// fresh makes n operations, each with a change.
func (x *trial) fresh(n int, change func(op *operation)) []*operation {
	ops := make([]*operation, n)
	for i := range ops {
		ops[i] = x.newOperation().with(change)
	}
	return ops
}

// plan is what the case may send.
func (x *trial) plan() VolumePlan { return PlanVolume(x.r.o) }

// begin makes up to n operations, and returns those that were executed. False: something is wrong with one of
// them, or too few were taken to say anything.
func (x *trial) begin(ops []*operation, note string) ([]*flooded, bool) {
	var taken []*flooded
	all := x.flood(ops, note)
	for _, f := range all {
		switch {
		case f.outcome() && !x.isOwn(&sent{op: f.op, answer: f.answer}):
			x.proved = true
			x.showFlooded(f)
			x.spared(lost, false, "an outcome of its own for each of "+plural(len(all), "fresh key"), "%s of another reference", f)
			return nil, false
		case f.outcome():
			taken = append(taken, f)
		case f.kind == mismatch || f.kind == refused || f.kind == busy && !f.throttled:
			if x.refusesKey(f, len(all)) {
				return nil, false
			}
		}
	}
	if len(taken) < len(all)*9/10 || len(taken) == 0 {
		x.inconclusive("of %s only %d were taken", plural(len(all), "operation"), len(taken))
		return nil, false
	}
	return taken, true
}

// refusesKey reports whether a refusal is one of the key: it comes again, and the same request under another key is taken.
func (x *trial) refusesKey(f *flooded, among int) bool {
	again := x.again(f.op, "the refused one, again")
	if again.kind != mismatch && again.kind != refused && again.kind != busy {
		return false
	}
	other := f.op.with(func(dup *operation) {
		dup.key = x.newOperation().key
		dup.fillKey(x.r)
	})
	if a := x.do(other, "the same under another key"); !a.outcome() {
		return false
	}
	x.showFlooded(f)
	return !x.spared(denied, false, "a fresh key is taken", "%s for one of %s, and again %s; under another key the same request is taken", f, plural(among, "fresh key"), again)
}

// repeat sends operations again, and holds their outcomes and effects against the first ones.
func (x *trial) repeatAll(first []*flooded, after string) {
	ops := make([]*operation, len(first))
	for i, f := range first {
		ops[i] = f.op
	}
	repeats := x.flood(ops, "a repeat, "+after)
	for i, again := range repeats {
		if same, known := sameOutcome(first[i].answer, again.answer); again.outcome() && (same || !known) {
			continue
		}
		if again.kind == busy || again.kind == noAnswer || again.kind == broken {
			again.answer = x.again(again.op, "the repeat once more")
		}
		same, known := sameOutcome(first[i].answer, again.answer)
		switch {
		case again.outcome() && known && !same:
			x.proved = true
			x.showFlooded(first[i])
			x.showFlooded(again)
			x.spared(x.twoNames(again.op), false, "the first outcome "+after, "%s, and then %s", first[i], again)
			return
		case !again.outcome():
			x.showFlooded(first[i])
			x.showFlooded(again)
			x.spared(unresolved(again.answer), false, "the first outcome "+after, "%s, and then %s", first[i], again)
			return
		}
	}
	if len(repeats) == 0 {
		x.inconclusive("no repeat was sent in time")
		return
	}
	x.countAll(ops, after)
	x.find(VerdictPass, fmt.Sprintf("%s had the first outcome %s", plural(len(repeats), "repeat"), after))
}

// countAll counts the effects of operations that were repeated.
func (x *trial) countAll(ops []*operation, after string) {
	if !x.counts() {
		return
	}
	claims := make([]claim, len(ops))
	for i, op := range ops {
		claims[i] = claim{ref: op.ref, what: "an operation that was repeated " + after, most: 1}
	}
	x.witness = x.r.learnt.witness
	for i, n := range x.r.recount(x.ctx, claims) {
		claims[i].seen = n
		if n > 1 {
			x.atMost(ops[i], 1, n, claims[i].what)
			return
		}
	}
	x.claims = append(x.claims, claims...)
}

// some returns up to n of a list: half of them its first, the others spread over the rest.
func someOf(all []*flooded, n int) []*flooded {
	if len(all) <= n {
		return all
	}
	few := all[: n/2 : n/2]
	for i := range n - n/2 {
		few = append(few, all[n/2+i*(len(all)-n/2)/(n-n/2)])
	}
	return few
}

package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// volumeKeys sends as many keys as the plan has, and repeats the first of them and some others.
func volumeKeys(x *trial) {
	p := x.plan()
	if all, ok := x.begin(x.fresh(p.keys, func(*operation) {}), "one of many"); ok {
		x.repeatAll(someOf(all, p.repeats), "after "+plural(len(all), "other operation"))
	}
}

// volumeBytes sends large operations, and repeats them.
func volumeBytes(x *trial) {
	p := x.plan()
	large := func(op *operation) { op.body = withMember(op.body, "padding", `"`+strings.Repeat("-", largeBytes)+`"`) }
	first, ok := x.begin(x.fresh(max(p.large/10, 1), func(*operation) {}), "one of a few")
	if !ok {
		return
	}
	if all, ok := x.begin(x.fresh(p.large, large), fmt.Sprintf("one of %d KiB", largeBytes>>10)); ok {
		x.repeatAll(append(first, all...), fmt.Sprintf("after %d MB in %d operations", len(all)*largeBytes>>20, len(all)))
	}
}

// volumeAges repeats operations after a while in which nothing was sent.
func volumeAges(x *trial) {
	all, ok := x.begin(x.fresh(x.plan().aged, func(*operation) {}), "before a pause")
	age := volumeAge
	if w := x.r.o.Window; w > 0 {
		age = min(age, w*3/4)
	}
	if ok && x.pause(age) {
		x.repeatAll(all, fmt.Sprintf("after %v", age))
	}
}

// volumeBodies sends many other bodies under a few keys. Every other one has another number, the rest the same
// characters in another order, so that sums do not tell them apart.
func volumeBodies(x *trial) {
	p := x.plan()
	digits := "1234567890"
	first, ok := x.begin(x.fresh(p.owners, func(op *operation) { op.body = withMember(op.body, "code", `"`+digits+digits+`"`) }), "the first under its key")
	if !ok {
		return
	}
	var ops []*operation
	for n := range p.bodies {
		for i, f := range first {
			ops = append(ops, f.op.with(func(dup *operation) {
				number := n*len(first) + i // others under each key: some checksums tell of a change the same for all
				code := strconv.Itoa(1_000_000 + number)
				if n%2 == 1 {
					code = swapped(digits+digits, number)
				}
				dup.body = []byte(strings.Replace(string(dup.body), `"code":"`+digits+digits, `"code":"`+code, 1))
			}))
		}
	}
	for _, f := range x.flood(ops, "another body under the key") {
		if f.outcome() {
			x.showFlooded(f)
			x.spared(lost, false, "a refusal of each of "+plural(len(ops), "other request"), "%s", f)
			break
		}
	}
	if !x.failed() {
		x.repeatAll(first, "after "+plural(len(ops), "other request")+" under their keys")
	}
}

// swapped returns a text with two different characters exchanged, another two for each n.
func swapped(text string, n int) string {
	b := []byte(text)
	i := n % len(b)
	j := (i + 1 + n/len(b)%(len(b)-1)) % len(b)
	if b[i] == b[j] {
		j = (j + 1) % len(b)
	}
	b[i], b[j] = b[j], b[i]
	return string(b)
}

// volumeLocks sends many keys while one operation is at work.
func volumeLocks(x *trial) {
	slow, hold := x.newOperation(), min(volumeHold, x.r.o.AnswerTimeout/2)
	gate := x.r.steering.hold(slow, hold)
	defer gate.release()
	ops := x.fresh(x.plan().besides, func(*operation) {})
	var wait sync.WaitGroup
	var lead *answer
	wait.Go(func() { lead = x.do(slow, fmt.Sprintf("at work for %v", hold)) })
	x.pause(leaveWait)
	began := time.Now()
	var beside []*flooded
	waited := 0
	for sent := 0; sent < len(ops) && time.Since(began) < hold*3/4; sent += x.r.o.Parallel {
		for _, f := range x.flood(ops[sent:min(len(ops), sent+x.r.o.Parallel)], "another key, while one is at work") {
			beside = append(beside, f)
			waited += count(f.outcome() && f.ended.Sub(f.started) > hold/2)
		}
	}
	gate.release()
	wait.Wait()
	refused := 0
	for _, f := range beside {
		if f.kind == mismatch || f.kind == busy && !f.throttled || f.kind == noAnswer {
			if refused++; refused == 1 {
				x.showFlooded(f)
			}
		}
	}
	switch {
	case !lead.outcome():
		x.inconclusive("the operation that was to be at work was answered %s", lead)
	case refused > 0:
		x.should(false, "every key is taken while another one is at work", "%d of %d other keys were refused or not answered", refused, len(beside))
	case waited > 0:
		x.seen("%d of %s waited until the operation was over", waited, plural(len(beside), "other key"))
	default:
		x.find(VerdictPass, plural(len(beside), "other key")+" were taken while one operation was at work")
	}
}

// volumeConnections sends operations of all kinds on the same connections.
func volumeConnections(x *trial) {
	var rounds [][]*operation
	for range x.plan().connections {
		one := x.newOperation()
		rounds = append(rounds, []*operation{
			one.with(func(dup *operation) { dup.body = padded(x.r, dup.body) }), x.strangersTurn(one), x.keylessTurn(),
			x.newOperation(), one.with(func(dup *operation) { dup.body = padded(x.r, dup.body) }),
		})
	}
	var wait sync.WaitGroup
	lanes := make(chan struct{}, x.r.o.Parallel)
	answers := make([][]*flooded, len(rounds))
	for i, ops := range rounds {
		wait.Go(func() {
			lanes <- struct{}{}
			defer func() { <-lanes }()
			answers[i] = x.alongOne(ops)
		})
	}
	wait.Wait()
	for _, along := range answers {
		if !x.judgeAlong(along) {
			return
		}
	}
	x.find(VerdictPass, fmt.Sprintf("%d connections with %d requests each", len(rounds), connectionRound))
}

// padded is a body with some KB more, where it is JSON.
func padded(r *runner, body []byte) []byte {
	if !r.jsonBody() {
		return body
	}
	return withMember(body, "padding", `"`+strings.Repeat("-", 6<<10)+`"`)
}

// strangersTurn is an operation under the same key by the second caller, or under another one if there is none.
func (x *trial) strangersTurn(one *operation) *operation {
	op := x.newOperation()
	if x.r.o.As == nil || x.r.o.handsOutKeys() {
		return op
	}
	return op.with(func(dup *operation) {
		dup.key, dup.stranger = one.key, true
		dup.body = []byte(render(x.r.o.Body, dup.ref, dup.key))
		dup.fillKey(x.r)
	})
}

// keylessTurn is an operation without a key, or with one where it is not in a header.
func (x *trial) keylessTurn() *operation {
	return x.newOperation().with(func(dup *operation) { dup.keyless = x.r.o.inHeader() })
}

// alongOne sends operations one after the other on one connection, for as long as the server keeps it.
func (x *trial) alongOne(ops []*operation) []*flooded {
	var all []*flooded
	l := x.dial("one connection")
	defer func() { l.close() }()
	for i, op := range ops {
		if l.err != nil && i > 0 && x.ctx.Err() == nil && !x.over() {
			l.close()
			l = x.dial("one connection")
		}
		l.silent = true
		l.load(op, withLength)
		l.note = fmt.Sprintf("(%d) on one connection", i+1)
		l.write(0)
		a := l.receive()
		if a.header.Get("Connection") == "close" {
			l.err = errLeft
		}
		dup := *l
		all = append(all, &flooded{op: op, l: &dup, answer: a})
	}
	return all
}

// judgeAlong looks at the answers on one connection. The last request repeats the first.
func (x *trial) judgeAlong(along []*flooded) bool {
	show := func() {
		for _, f := range along {
			x.showFlooded(f)
		}
	}
	for _, f := range along {
		if f.outcome() && !x.isOwn(&sent{op: f.op, answer: f.answer}) {
			show()
			x.proved = true
			return x.spared(lost, false, "an outcome of its own for each request", "%s of another request", f)
		}
	}
	for _, f := range along {
		if (f.kind == mismatch || f.kind == refused) && !f.throttled {
			if alone := x.do(f.op, "the refused one on a connection of its own"); alone.outcome() {
				show()
				return x.spared(denied, false, "the same answer on any connection", "%s behind other requests on one connection, and %s on another", f, alone)
			}
		}
	}
	first, last := along[0], along[len(along)-1]
	same, known := sameOutcome(first.answer, last.answer)
	if first.outcome() && last.outcome() && known && !same {
		show()
		x.proved = true
		return x.spared(x.twoNames(first.op), false, "the first outcome for its repeat", "%s, and then %s", first, last)
	}
	if x.counts() && first.outcome() {
		n, ok := x.settledEffects(first.op.ref, 1)
		return ok && x.atMost(first.op, 1, n, "a request on a connection with others")
	}
	return true
}

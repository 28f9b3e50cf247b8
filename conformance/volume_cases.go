package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// volumeKeys sends many keys, then repeats the first of them and some others: a server must not forget a key because it has seen many. begin sends
// new operations and returns those that succeeded; repeatAll checks that each gets its outcome again.
func volumeKeys(v volumeRun) {
	p := v.plan
	if all, ok := v.begin(v.fresh(p.keys, func(*operation) {}), "one of many"); ok {
		v.repeatAll(someOf(all, p.repeats), "after "+plural(len(all), "other operation"))
	}
}

// volumeBytes begins a few operations and then many with large bodies, and repeats all of them: large requests must not make the server forget keys.
// begin sends new operations and returns those that succeeded; repeatAll checks that each gets its outcome again.
func volumeBytes(v volumeRun) {
	p := v.plan
	large := func(op *operation) { op.body = withMember(op.body, "padding", `"`+strings.Repeat("-", largeBytes)+`"`) }
	first, ok := v.begin(v.fresh(max(p.large/10, 1), func(*operation) {}), "one of a few")
	if !ok {
		return
	}
	if all, ok := v.begin(v.fresh(p.large, large), fmt.Sprintf("one of %d KiB", largeBytes>>10)); ok {
		v.repeatAll(append(first, all...), fmt.Sprintf("after %d MB in %d operations", len(all)*largeBytes>>20, len(all)))
	}
}

// volumeAges repeats operations after a long pause without any request: the server must still know their keys. The pause is volumeAge, or three
// quarters of the window that the server promises, if that is shorter. repeatAll checks that each gets its outcome again.
func volumeAges(v volumeRun) {
	all, ok := v.begin(v.fresh(v.plan.aged, func(*operation) {}), "before a pause")
	age := volumeAge
	if w := v.trial.r.o.Window; w > 0 {
		age = min(age, w*3/4)
	}
	if ok && v.trial.pause(age) {
		v.repeatAll(all, fmt.Sprintf("after %v", age))
	}
}

// volumeBodies sends many different bodies under a few used keys: all must be refused. Each second body has the same characters in another order, so
// that a simple checksum does not tell it apart. flood sends all of them. At the end the first requests must still get their outcomes (repeatAll).
func volumeBodies(v volumeRun) {
	p := v.plan
	digits := "1234567890"
	first, ok := v.begin(v.fresh(p.owners, func(op *operation) { op.body = withMember(op.body, "code", `"`+digits+digits+`"`) }), "the first under its key")
	if !ok {
		return
	}
	var ops []*operation
	for n := range p.bodies {
		for i, f := range first {
			ops = append(ops, f.op.with(func(dup *operation) {
				number := n*len(first) + i // other bodies under each key: a checksum that misses one change would miss it under all
				code := strconv.Itoa(1_000_000 + number)
				if n%2 == 1 {
					code = swapped(digits+digits, number)
				}
				dup.body = []byte(strings.Replace(string(dup.body), `"code":"`+digits+digits, `"code":"`+code, 1))
			}))
		}
	}
	for _, f := range v.flood(ops, "another body under the key") {
		if f.outcome() {
			v.showFlooded(f)
			v.trial.wantOrHarm(lost, false, "a refusal of each of "+plural(len(ops), "other request"), "%s", f)
			break
		}
	}
	if !v.trial.failed() {
		v.repeatAll(first, "after "+plural(len(ops), "other request")+" under their keys")
	}
}

// swapped returns a text with two characters exchanged, other positions for each n. They are
// different characters in texts such as volumeBodies uses. text must have two bytes at least.
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

// volumeLocks sends many other keys while one operation is at work. Refused ones are a warning: they show a lock for more than one key. Those that
// wait are only recorded. flood sends Options.Parallel keys at once; the last ones are sent while a quarter of the work (hold) is still to come.
func volumeLocks(v volumeRun) {
	slow, hold := v.trial.newOperation(), min(volumeHold, v.trial.r.o.AnswerTimeout/2)
	gate := v.trial.r.steering.hold(slow, hold)
	defer gate.release()
	ops := v.fresh(v.plan.besides, func(*operation) {})
	var wait sync.WaitGroup
	var lead *answer
	wait.Go(func() { lead = v.trial.do(slow, fmt.Sprintf("at work for %v", hold)) })
	v.trial.pause(leaveWait) // so that it is at work
	began := time.Now()
	var beside []*flooded
	waited := 0
	for sent := 0; sent < len(ops) && time.Since(began) < hold*3/4; sent += v.trial.r.o.Parallel {
		for _, f := range v.flood(ops[sent:min(len(ops), sent+v.trial.r.o.Parallel)], "another key, while one is at work") {
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
				v.showFlooded(f)
			}
		}
	}
	switch {
	case !lead.outcome():
		v.trial.inconclusive("the operation that was to be at work was answered %s", lead)
	case refused > 0:
		v.trial.should(false, "every key is taken while another one is at work", "%d of %d other keys were refused or not answered", refused, len(beside))
	case waited > 0:
		v.trial.seen("%d of %s waited until the operation was over", waited, plural(len(beside), "other key"))
	default:
		v.trial.find(VerdictPass, plural(len(beside), "other key")+" were taken while one operation was at work")
	}
}

// volumeConnections sends operations of several kinds, callers and sizes on each of many connections, Options.Parallel of these at a time. Each
// answer must be about its own request. The last request on a connection repeats the first. alongOne sends them on one connection, judgeAlong judges
// the answers.
func volumeConnections(v volumeRun) {
	var rounds [][]*operation
	for range v.plan.connections {
		one := v.trial.newOperation()
		rounds = append(rounds, []*operation{
			one.with(func(dup *operation) { dup.body = padded(v.trial.r, dup.body) }), v.strangersTurn(one), v.keylessTurn(),
			v.trial.newOperation(), one.with(func(dup *operation) { dup.body = padded(v.trial.r, dup.body) }),
		})
	}
	var wait sync.WaitGroup
	lanes := make(chan struct{}, v.trial.r.o.Parallel)
	answers := make([][]*flooded, len(rounds))
	for i, ops := range rounds {
		wait.Go(func() {
			lanes <- struct{}{}
			defer func() { <-lanes }()
			answers[i] = v.alongOne(ops)
		})
	}
	wait.Wait()
	for _, along := range answers {
		if !v.judgeAlong(along) {
			return
		}
	}
	v.trial.find(VerdictPass, fmt.Sprintf("%d connections with %d requests each", len(rounds), connectionRound))
}

// padded returns a JSON body with 6 KiB more; other bodies come back as they are.
func padded(r *runner, body []byte) []byte {
	if !r.jsonBody() {
		return body
	}
	return withMember(body, "padding", `"`+strings.Repeat("-", 6<<10)+`"`)
}

// strangersTurn returns an operation of the second caller under the key of one: a server must not take it for a repeat. Without a second caller, or
// with keys from the server (each is for one caller), it returns an operation with its own key.
func (v volumeRun) strangersTurn(one *operation) *operation {
	op := v.trial.newOperation()
	if v.trial.r.o.As == nil || v.trial.r.o.handsOutKeys() {
		return op
	}
	return op.with(func(dup *operation) {
		dup.key, dup.stranger = one.key, true
		dup.body = []byte(render(v.trial.r.o.Body, dup.ref, dup.key))
		dup.fillKey(v.trial.r)
	})
}

// keylessTurn returns an operation without a key; with one if keys do not travel in a header.
func (v volumeRun) keylessTurn() *operation {
	return v.trial.newOperation().with(func(dup *operation) { dup.keyless = v.trial.r.o.inHeader() })
}

// alongOne sends operations one after the other on one connection, and opens another one when the server closes it. It gives up if the first one
// cannot be opened, or nothing more can be sent. Each result has a copy of the link as evidence. The result is parallel to ops.
func (v volumeRun) alongOne(ops []*operation) []*flooded {
	var all []*flooded
	l := v.trial.dial("one connection")
	defer func() { l.close() }()
	for i, op := range ops {
		if l.err != nil && i > 0 && v.trial.ctx.Err() == nil && !v.trial.over() {
			l.close()
			l = v.trial.dial("one connection")
		}
		l.silent = true
		l.load(op, withLength)
		l.note = fmt.Sprintf("(%d) on one connection", i+1)
		l.write(0)
		a := l.receive()
		if a.header.Get("Connection") == "close" {
			l.err = errLeft // the server closes it: the next one opens another
		}
		dup := *l // l goes on with the next request
		all = append(all, &flooded{op: op, l: &dup, answer: a})
	}
	return all
}

// judgeAlong checks the answers on one connection: each is about its own request, no request is refused that is taken on a connection of its own, and
// the last one, a repeat of the first, gets its outcome. along must not be empty. It returns false after a failed check, or if effects could not be
// counted. isOwn: the id and Location in an answer belong to no other request.
func (v volumeRun) judgeAlong(along []*flooded) bool {
	show := func() {
		for _, f := range along {
			v.showFlooded(f)
		}
	}
	for _, f := range along {
		if f.outcome() && !v.trial.isOwn(&sent{op: f.op, answer: f.answer}) {
			show()
			v.trial.proved = true
			return v.trial.wantOrHarm(lost, false, "an outcome of its own for each request", "%s of another request", f)
		}
	}
	for _, f := range along {
		if (f.kind == mismatch || f.kind == refused) && !f.throttled {
			if alone := v.trial.do(f.op, "the refused one on a connection of its own"); alone.outcome() {
				show()
				return v.trial.wantOrHarm(denied, false, "the same answer on any connection", "%s behind other requests on one connection, and %s on another", f, alone)
			}
		}
	}
	first, last := along[0], along[len(along)-1]
	same, known := sameOutcome(first.answer, last.answer)
	if first.outcome() && last.outcome() && known && !same {
		show()
		v.trial.proved = true
		return v.trial.wantOrHarm(v.trial.twoNames(first.op), false, "the first outcome for its repeat", "%s, and then %s", first, last)
	}
	if v.trial.counts() && first.outcome() {
		n, ok := v.trial.settledEffects(first.op.ref, 1)
		return ok && v.trial.atMost(first.op, 1, n, "a request on a connection with others")
	}
	return true
}

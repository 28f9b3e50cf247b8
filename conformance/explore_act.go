package conformance

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// played is a sequence as it was sent: its requests with their answers. The goroutine of the
// trial uses it; mu guards kept, which requests in the background use, too.
type played struct {
	*sequence
	op     *operation            // its first request
	as     map[string]*operation // its requests, by the relation in which they differ from op; "": op
	sends  []*sent               // of its key, in no strict order
	others []*sent               // of other keys
	kept   *link                 // an open connection for the form "connection"; nil: none
	mu     sync.Mutex
}

// sent is one request of a sequence on the wire, with its answer.
type sent struct {
	act     int    // index of its act; for other keys that of the next act; len(acts) at the end
	change  string // the relation in which it differs from the first request; "": it does not
	op      *operation
	again   bool // the outcome had been given before it was sent
	amid    bool // other requests of the key may have been at work
	*answer      // nil until the request has ended
}

// playOut sends a sequence (a plan of requests) under a fresh key, and repeats its first request at the end. p holds the requests with their answers;
// it is never nil. ok is false if the sequence cannot be sent to this target, or the case has ended; the answers then show nothing. p.as has the
// requests by the relation (kind of difference) in which they differ from the first one. s.fails is the id of the failure that the handler is told,
// if any. Acts (steps) that are beside the one before are sent as a group.
func (x *trial) playOut(s *sequence) (p *played, ok bool) {
	p = &played{sequence: s, as: map[string]*operation{}}
	if !p.prepare(x) {
		return p, false
	}
	gate := &gate{}
	if s.slow {
		gate = x.r.steering.hold(p.op, p.holds(x))
	}
	defer gate.release()
	if rel, failing := x.r.related[s.fails]; failing {
		x.makeFail(p.op, rel.id)
	}
	for _, change := range s.changes() {
		if p.as[change] = p.differing(x, p.op, change); p.as[change] == nil {
			return p, false
		}
	}
	for first := 0; first < len(s.acts); {
		end := first + 1
		for end < len(s.acts) && s.acts[end].beside {
			end++
		}
		p.group(x, first, end, gate)
		first = end
	}
	gate.release()
	if p.kept != nil { // a connection kept for another request
		x.park(p.kept)
	}
	p.resolve(x)
	return p, x.ctx.Err() == nil && !x.over()
}

// holds returns for how long the slow operation of the sequence works. It is longer if another request is to meet it at work (beside) after a pause,
// so that it is still at work then.
func (p *played) holds(x *trial) time.Duration {
	for _, a := range p.acts {
		if a.beside && a.pause {
			return x.r.o.Hold + x.pauseLength()
		}
	}
	return x.r.o.Hold
}

// pauseLength returns the length of one pause between requests of a sequence: long enough for short-lived records to be forgotten, but bounded by the
// time for which a caller waits.
func (x *trial) pauseLength() time.Duration { return min(pauseWait, 2*x.r.o.Settle) }

// makeFail makes the handler of an operation fail with a status, or crash, as the id of a relation of the search says ("fails-500"). For any other id
// it does nothing.
func (x *trial) makeFail(op *operation, id string) {
	switch id {
	case "fails-500":
		x.r.steering.fail(op, 500, 0) // 0: at each send
	case "fails-503":
		x.r.steering.fail(op, 503, 0)
	case "fails-402":
		x.r.steering.fail(op, 402, 0)
	case "crash":
		x.r.steering.crash(op, false) // before the effect, where the suite decides that
	}
}

// changes returns the ids of the relations in which requests of the sequence differ from its first one, each once, in the order of the acts (the
// steps of the sequence).
func (s *sequence) changes() []string {
	var ids []string
	for _, a := range s.acts {
		if a.change != "" && !slices.Contains(ids, a.change) {
			ids = append(ids, a.change)
		}
	}
	return ids
}

// prepare sets p.op, the first request of the sequence: a new operation with its key, its padding (for a large body), and the first value (one) of
// each body member that later requests change. p.as[""] is the request without a difference. It returns false if the trial can send nothing more.
func (p *played) prepare(x *trial) bool {
	p.op = x.newOperation()
	p.op.key = p.keyFrom(x.r, p.op.key)
	for _, id := range p.changes() {
		if rel := x.r.related[id]; rel.member != "" && rel.one != "" {
			p.op.body = withMember(p.op.body, rel.member, rel.one)
		}
	}
	if n := map[string]int{"large-5k": 5 << 10, "large-60k": 60 << 10}[p.size]; n > 0 && x.r.jsonBody() {
		p.op.body = withMember(p.op.body, "padding", `"`+strings.Repeat("-", n)+`"`)
	}
	p.as[""] = p.op
	return !x.over()
}

// keyFrom returns the key of the first request: a new key, in the form that the differences of later keys need, such as digits only. One sequence has
// one such difference at most.
func (p *played) keyFrom(r *runner, fresh string) string {
	for _, id := range p.changes() {
		if rel := r.related[id]; rel.key != nil {
			fresh = rel.key(fresh)
		}
	}
	return fresh
}

// differing returns a request that differs from op in one relation (a kind of difference, by its id change): its body member has the value two in the
// place of one, where "" means that the member is missing; or the relation's own function changes the request. It returns nil if the relation cannot
// be applied to op. The texts are replaced as prepare has put them in, members without white space.
func (p *played) differing(x *trial, op *operation, change string) *operation {
	rel, possible := x.r.related[change], true
	return op.with(func(dup *operation) {
		switch {
		case rel.member != "" && rel.one == "":
			dup.body = withMember(dup.body, rel.member, rel.two)
		case rel.member != "" && rel.two == "":
			dup.body = []byte(strings.Replace(string(dup.body), `,"`+rel.member+`":`+rel.one, "", 1))
		case rel.member != "":
			dup.body = []byte(strings.Replace(string(dup.body), `"`+rel.member+`":`+rel.one, `"`+rel.member+`":`+rel.two, 1))
		default:
			possible = rel.change(x.r, dup)
		}
	}).orNil(possible)
}

// orNil returns op, or nil if possible is false: the request could not be changed as the act asks.
func (op *operation) orNil(possible bool) *operation {
	if !possible {
		return nil
	}
	return op
}

// group sends the acts (steps of the sequence) from first to end, without end: a single one, or several that overlap. gate is that of the slow
// operation: it holds the operation at work until the others are sent. sendOthers sends operations with other keys before the act, where it asks for
// them. copies below 2 are one request.
func (p *played) group(x *trial, first, end int, gate *gate) {
	a := p.acts[first]
	if a.pause {
		x.pause(x.pauseLength())
	}
	p.sendOthers(x, first)
	if a.failing {
		defer x.failBeside()() // it is at work from now on; the second call waits for its failure
	}
	if end-first == 1 && a.copies < 2 {
		p.single(x, first)
		return
	}
	if p.slow {
		p.overlap(x, first, end, gate)
		return
	}
	p.atOnce(x, first, end)
}

// failBeside sends another operation, at work for a while and then failed, for requests of the sequence to meet. It returns once the operation is at
// work. The caller must call the result; it waits for the failure.
func (x *trial) failBeside() func() {
	op := x.newOperation()
	x.r.steering.hold(op, x.r.o.Hold)
	x.r.steering.fail(op, http.StatusInternalServerError, 0) // 0: at each send
	over := make(chan struct{})
	go func() {
		defer close(over)
		x.once(op, withLength, "another operation, which fails")
	}()
	x.pause(x.r.o.Hold / leadPart) // the time in which it begins its work
	return func() { <-over }
}

// sendOthers sends the operations with other keys that come before an act of the sequence, one after the other.
func (p *played) sendOthers(x *trial, at int) {
	for range p.acts[at].others {
		op := x.newOperation()
		a := x.do(op, "another operation")
		p.others = append(p.others, &sent{act: at, op: op, answer: a})
	}
}

// single sends one act (step of the sequence) and waits for its answer. If the outcome was given before, it repeats an answer "in progress" or a
// server error for a second: a server may take a moment to store its answer. An act whose client leaves (ends) has no answer to wait for. pastLimit
// repeats only after a rate limit.
func (p *played) single(x *trial, at int) {
	a, op := p.acts[at], p.as[p.acts[at].change]
	send := &sent{act: at, change: a.change, op: op, again: p.given()}
	once := func() *answer { return p.send(x, a, op, "", p.note(x.r, at)) }
	if send.again && a.ends == "" {
		send.answer = x.untilBy(once, min(x.r.o.Settle, time.Second), true) // true: also past server errors
	} else {
		send.answer = x.pastLimit(op, once)
	}
	p.sends = append(p.sends, send)
}

// given reports whether the first request, or an exact repeat of it, has had the answer of finished work.
func (p *played) given() bool {
	return slices.ContainsFunc(p.sends, func(s *sent) bool { return s.change == "" && s.outcome() })
}

// resolve repeats the first request at the end, until it has an outcome, for Options.Settle at most. Without one it repeats the changed requests that
// may have come first under the key, and so may hold it, each for a second at most (patient is false); one with a key of its own (apart: another
// caller, path or method) cannot have. A server error, or the closed connection of a crash, ends the wait only where a request was made to fail.
func (p *played) resolve(x *trial) {
	last := move{copies: 1} // a plain repeat, that waits for its answer
	ask := func(change string, patient bool) *sent {
		limit := min(x.r.o.Settle, time.Second)
		if patient {
			limit = x.r.o.Settle
		}
		op := p.as[change]
		s := &sent{act: len(p.acts), change: change, op: op, again: change == "" && p.given()}
		settled := p.fails == "" && (s.again || !p.mayFail()) // a server error is no outcome then
		waiting := func(a *answer) bool {
			crashed := p.fails == "crash" && a.closed()
			return open(a) && !crashed || settled && a.kind == broken // open: in progress, or no answer
		}
		s.answer = x.while(waiting, func() *answer { return p.send(x, last, op, "", p.note(x.r, len(p.acts))) }, limit)
		return s
	}
	p.sends = append(p.sends, ask("", true))
	if p.sends[len(p.sends)-1].outcome() {
		return
	}
	for _, change := range p.changes() {
		switch x.r.related[change].bearing {
		case other, either, free: // one that may hold the key
			p.sends = append(p.sends, ask(change, false))
		}
	}
}

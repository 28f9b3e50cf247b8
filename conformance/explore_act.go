package conformance

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// played is a sequence as it was sent: its operation, and every request with its answer.
type played struct {
	*sequence
	op     *operation            // its first request
	as     map[string]*operation // its requests by the relation in which they differ; "": op
	sends  []*sent
	others []*sent // of other keys
	kept   *link   // of the form "connection"; nil: none is open
	mu     sync.Mutex
}

// sent is one request of a sequence on the wire.
type sent struct {
	act    int // its place in the sequence; that of the act behind for other keys; len(acts) at the end
	change string
	op     *operation
	again  bool // the outcome had been given before it was sent
	amid   bool // others of the key were under way
	*answer
}

// play sends a sequence under a fresh key. ok is false if it cannot be sent to this target.
func (x *trial) playOut(s *sequence) (p *played, ok bool) {
	p = &played{sequence: s, as: map[string]*operation{}}
	if !p.prepare(x) {
		return p, false
	}
	gate := &gate{}
	if s.slow {
		gate = x.r.steering.hold(p.op, x.r.o.Hold)
	}
	defer gate.release()
	if rel, failing := x.r.related[s.fails]; failing {
		x.makeFail(p.op, rel.id)
	}
	for _, change := range s.changes() {
		if p.as[change] = p.differing(x, change); p.as[change] == nil {
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
	if p.kept != nil {
		x.park(p.kept)
	}
	p.resolve(x)
	return p, x.ctx.Err() == nil && !x.over()
}

// makeFail makes the handler of an operation fail as the relation says.
func (x *trial) makeFail(op *operation, id string) {
	switch id {
	case "fails-500":
		x.r.steering.fail(op, 500, 0)
	case "fails-503":
		x.r.steering.fail(op, 503, 0)
	case "fails-402":
		x.r.steering.fail(op, 402, 0)
	case "crash":
		x.r.steering.crash(op, false)
	}
}

// changes lists the relations in which a request differs from the first, each once.
func (s *sequence) changes() []string {
	var ids []string
	for _, a := range s.acts {
		if a.change != "" && !slices.Contains(ids, a.change) {
			ids = append(ids, a.change)
		}
	}
	return ids
}

// prepare makes the operation, with every member that one of its requests has another value of.
func (p *played) prepare(x *trial) bool {
	p.op = x.newOperation()
	for _, id := range p.changes() {
		if rel := x.r.related[id]; rel.key != nil {
			p.op.key = rel.key(p.op.key)
		}
	}
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

// differing is the operation's request with that difference; nil: there is none.
func (p *played) differing(x *trial, change string) *operation {
	rel, possible := x.r.related[change], true
	return p.op.with(func(dup *operation) {
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

// orNil returns the operation if it is possible, else nil.
func (op *operation) orNil(possible bool) *operation {
	if !possible {
		return nil
	}
	return op
}

// group sends the acts from first to end, each but the first while the one before is at work.
func (p *played) group(x *trial, first, end int, gate *gate) {
	a := p.acts[first]
	if a.pause {
		x.pause(min(pauseWait, 2*x.r.o.Settle))
	}
	p.sendOthers(x, first)
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

// sendOthers sends other operations before an act.
func (p *played) sendOthers(x *trial, at int) {
	for range p.acts[at].others {
		op := x.newOperation()
		a := x.do(op, "another operation")
		p.others = append(p.others, &sent{act: at, op: op, answer: a})
	}
}

// single sends one act and waits for its answer. Once the outcome was given, "in progress"
// and server errors are asked again for a while: a server may take a moment to store
// what it has answered.
func (p *played) single(x *trial, at int) {
	a, op := p.acts[at], p.as[p.acts[at].change]
	send := &sent{act: at, change: a.change, op: op, again: p.given()}
	once := func() *answer { return p.send(x, a, op, "", p.note(x.r, at)) }
	if send.again && a.ends == "" {
		send.answer = x.untilBy(once, min(x.r.o.Settle, time.Second), true)
	} else {
		send.answer = x.pastLimit(op, once)
	}
	p.sends = append(p.sends, send)
}

// given reports whether the outcome of the first request has been given.
func (p *played) given() bool {
	return slices.ContainsFunc(p.sends, func(s *sent) bool { return s.change == "" && s.outcome() })
}

// send writes one request as its act says.
func (p *played) send(x *trial, a move, op *operation, lane, note string) *answer {
	l := p.open(x, a, lane)
	p.write(l, a, op, note)
	if a.ends != "" {
		return p.leave(x, l, a)
	}
	return p.receive(x, l, a)
}

// leave ends a request whose client does not read the answer, once the server may be at work.
func (p *played) leave(x *trial, l *link, a move) *answer {
	wait := leaveWait
	if p.slow {
		wait = x.r.o.Hold / leadPart
	}
	x.pause(wait)
	got := l.leave(a.ends != "leaves")
	x.pause(leaveWait) // so that the server has seen it
	return got
}

// leaveWait is how long a client waits before it leaves.
const leaveWait = 10 * time.Millisecond

// open opens a connection, or takes the one that is kept.
func (p *played) open(x *trial, a move, lane string) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.kept; l != nil && slices.Contains(a.forms, "connection") {
		p.kept = nil
		return l
	}
	return x.dial(lane)
}

// receive reads the answer, and keeps the connection if its form says so.
func (p *played) receive(x *trial, l *link, a move) *answer {
	got := l.receive()
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(a.forms, "connection") && got.err == nil && p.kept == nil {
		p.kept = l
		return got
	}
	x.park(l)
	return got
}

// write writes a request in its form: all of it, or as much as its end lets out.
func (p *played) write(l *link, a move, op *operation, note string) {
	l.load(formed(op, a.forms), framingOf(a.forms))
	l.note = note
	switch {
	case a.ends == "cut":
		l.write(len(op.body)/2 + 1)
	case slices.Contains(a.forms, "expect"):
		l.write(l.headOnly())
		l.awaitContinue(100 * time.Millisecond)
		l.write(0)
	case slices.Contains(a.forms, "slices"):
		l.write(len(op.body)/2 + 1)
		l.x.pause(5 * time.Millisecond)
		l.write(0)
	default:
		l.write(0)
	}
}

func framingOf(forms []string) framing {
	switch {
	case slices.Contains(forms, "chunked"):
		return chunked
	case slices.Contains(forms, "expect"):
		return expecting
	}
	return withLength
}

// formed is the request with header fields as its form says.
func formed(op *operation, forms []string) *operation {
	return op.with(func(dup *operation) {
		dup.backwards = slices.Contains(forms, "field-order")
		dup.lowerNames = slices.Contains(forms, "field-names")
		if slices.Contains(forms, "more-fields") {
			dup.extra = append(dup.extra, [2]string{"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
				[2]string{"X-Attempt", "2"}, [2]string{"Accept-Language", "de"})
		}
	})
}

// overlap sends a group whose first act is slow: the others come while it is at work.
func (p *played) overlap(x *trial, first, end int, gate *gate) {
	again := p.given()
	lead := p.launch(x, first, "1", again)
	<-lead.written
	all := []*launched{lead}
	for n := 1; n < p.acts[first].copies; n++ {
		all = append(all, p.launch(x, first, "1", again))
	}
	if gate.entered != nil {
		x.awaitEntry(gate, &sending{over: lead.over}, x.r.o.Hold)
	}
	for at := first + 1; at < end; at++ {
		if gate.entered == nil {
			x.pause(time.Duration(float64(x.r.o.Hold) * p.acts[at].part))
		}
		for range max(p.acts[at].copies, 1) {
			all = append(all, p.launch(x, at, "2", again))
		}
	}
	if gate.entered != nil {
		x.pause(followersGrace)
		gate.release()
	}
	p.collect(all)
}

// launched is a request that was sent in the background.
type launched struct {
	*sent
	written, over chan struct{}
}

// launch sends one act in the background.
func (p *played) launch(x *trial, at int, lane string, again bool) *launched {
	a := p.acts[at]
	f := &launched{sent: &sent{act: at, change: a.change, op: p.as[a.change], again: again}, written: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(f.over)
		l := p.open(x, a, lane)
		p.write(l, a, f.op, p.note(x.r, at))
		close(f.written)
		if a.ends != "" {
			f.answer = p.leave(x, l, a)
			return
		}
		f.answer = p.receive(x, l, a)
	}()
	return f
}

// collect waits for requests that were sent in the background.
func (p *played) collect(all []*launched) {
	for _, f := range all {
		<-f.over
		f.amid, f.again = true, false // it may have come while another was at work
		p.sends = append(p.sends, f.sent)
	}
}

// atOnce writes a group but for the last byte of each request, and then the last bytes in
// one go.
func (p *played) atOnce(x *trial, first, end int) {
	var gates []*link
	var all []*launched
	for at := first; at < end; at++ {
		for range max(p.acts[at].copies, 1) {
			a := p.acts[at]
			a.forms = slices.DeleteFunc(slices.Clone(a.forms), func(form string) bool { return form == "connection" })
			l := x.dial("at once")
			op := p.as[a.change]
			l.load(formed(op, a.forms), framingOf(a.forms))
			l.note = p.note(x.r, at)
			l.write(1)
			gates = append(gates, l)
			all = append(all, &launched{sent: &sent{act: at, change: a.change, op: op}, over: make(chan struct{})})
		}
	}
	var wait sync.WaitGroup
	for i, l := range gates {
		wait.Go(func() {
			defer close(all[i].over)
			l.write(0)
			all[i].answer = p.receive(x, l, move{})
		})
	}
	wait.Wait()
	p.collect(all)
}

// resolve asks for the first request's outcome at the end, and, where that is refused, for those
// of the requests that may have come first.
func (p *played) resolve(x *trial) {
	last := move{copies: 1}
	ask := func(change string, patient bool) *sent {
		limit := min(x.r.o.Settle, time.Second)
		if patient {
			limit = x.r.o.Settle
		}
		op := p.as[change]
		s := &sent{act: len(p.acts), change: change, op: op, again: change == "" && p.given()}
		s.answer = x.untilBy(func() *answer { return p.send(x, last, op, "", p.note(x.r, len(p.acts))) }, limit, p.fails == "")
		return s
	}
	p.sends = append(p.sends, ask("", true))
	if p.sends[len(p.sends)-1].outcome() {
		return
	}
	for _, change := range p.changes() {
		switch x.r.related[change].bearing {
		case other, either, free:
			p.sends = append(p.sends, ask(change, false))
		}
	}
}

package conformance

import (
	"slices"
	"sync"
	"time"
)

// Requests of a sequence that meet each other: while one is at work, and at once.

// overlap sends a group of acts (steps of the sequence that meet) with a slow first one: the others come while it is at work. All have ended when it
// returns. gate is that of the slow operation, by which the suite's own handler holds it at work; overlap releases it. For another server
// gate.entered is nil, and each act waits for its part of the work (Options.Hold). The lanes "1" and "2" label the requests in the report. again
// tells that the first outcome was given before the group.
func (p *played) overlap(x *trial, first, end int, gate *gate) {
	again := p.given()
	lead := p.launch(x, first, "1", again)
	<-lead.written
	all := []*launched{lead}
	for n := 1; n < p.acts[first].copies; n++ {
		all = append(all, p.launch(x, first, "1", again))
	}
	if gate.entered != nil {
		x.awaitEntry(gate, &sending{over: lead.over}, x.r.o.Hold) // it reads over alone
	}
	for at := first + 1; at < end; at++ {
		if p.acts[at].pause {
			x.pause(x.pauseLength())
		}
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

// launched is a request in the background. Its answer may be read after over is closed.
type launched struct {
	*sent
	written, over chan struct{} // closed after its last byte; when its answer is there
}

// launch sends one act of the sequence in the background, and returns at once. again tells that the outcome was given before; lane labels the request
// in the report.
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

// collect waits for the requests in the background, and adds them to the sends of the sequence. It marks them as sent while another may have been at
// work (amid), so that they are not judged as repeats after the outcome (again).
func (p *played) collect(all []*launched) {
	for _, f := range all {
		<-f.over
		f.amid, f.again = true, false // it may have come while another was at work
		p.sends = append(p.sends, f.sent)
	}
}

// atOnce sends a group of acts (steps of the sequence) at one instant: all requests but their last bytes, then the last bytes together. All have
// ended when it returns. No request shares a connection with another one, so that the form "connection" is dropped. copies of 0 is one request.
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
			l.write(1) // all but the last byte
			gates = append(gates, l)
			all = append(all, &launched{sent: &sent{act: at, change: a.change, op: op}, over: make(chan struct{})})
		}
	}
	var wait sync.WaitGroup
	for i, l := range gates {
		wait.Go(func() {
			defer close(all[i].over)
			l.write(0) // the last byte
			all[i].answer = p.receive(x, l, move{})
		})
	}
	wait.Wait()
	p.collect(all)
}

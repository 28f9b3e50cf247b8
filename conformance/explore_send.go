package conformance

import (
	"slices"
	"time"
)

// One request of a sequence on the wire: its connection, its form and its end.

// send sends one request of the sequence, and returns its answer. a says how: in which form, and whether its client reads the answer or leaves
// before. lane and note label it in the report.
func (p *played) send(x *trial, a move, op *operation, lane, note string) *answer {
	l := p.open(x, a, lane)
	p.write(l, a, op, note)
	if a.ends != "" {
		return p.leave(x, l, a)
	}
	return p.receive(x, l, a)
}

// leave closes the connection of a request without reading the answer, once the server may be at work on it: by FIN if the act ends with "leaves",
// else by RST. It returns an answer of kind noAnswer.
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

// leaveWait is the time after which a client leaves.
const leaveWait = 10 * time.Millisecond

// open returns a connection: the one that was kept, if the act asks to reuse it, else a fresh one. The caller must call receive or leave.
func (p *played) open(x *trial, a move, lane string) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.kept; l != nil && slices.Contains(a.forms, "connection") {
		p.kept = nil
		return l
	}
	return x.dial(lane)
}

// receive reads the answer on l. If the act is of the form "connection", the connection is kept for a later request of the
// sequence; else it stays open, unused, until the end. The caller must not use l again.
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

// write writes a request in the form of its act: whole, in two pieces, announced, or only a part of it if the client cuts it off in its body.
// link.write sends all but the given number of bytes at the end.
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

// framingOf returns the HTTP framing that the forms of an act ask for.
func framingOf(forms []string) framing {
	switch {
	case slices.Contains(forms, "chunked"):
		return chunked
	case slices.Contains(forms, "expect"):
		return expecting
	}
	return withLength
}

// formed returns a copy of the operation with the header fields that its forms ask for. "more-fields" are those of tracing and of other clients,
// which mean nothing to the key.
func formed(op *operation, forms []string) *operation {
	return op.with(func(dup *operation) {
		dup.backwards = slices.Contains(forms, "field-order")
		dup.lowerNames = slices.Contains(forms, "field-names")
		if slices.Contains(forms, "accept") {
			dup.extra = append(dup.extra, [2]string{"Accept", "application/json, */*;q=0.5"})
		}
		if slices.Contains(forms, "closing") {
			dup.extra = append(dup.extra, [2]string{"Connection", "close"})
		}
		if slices.Contains(forms, "more-fields") {
			dup.extra = append(dup.extra, [2]string{"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
				[2]string{"X-Attempt", "2"}, [2]string{"Accept-Language", "de"})
		}
	})
}

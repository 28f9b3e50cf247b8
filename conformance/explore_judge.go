package conformance

import (
	"bytes"
	"net/http"
	"slices"
)

// The model that a played sequence is held against: a key has one effect at most and one
// outcome, which every repeat of the request is given; another request under it is refused;
// what was refused had no effect; a key resolves. What servers may decide is left to them: whether
// spellings of a body are one request, whether query, path and caller belong to the key, whether
// a duplicate waits or is told to, whether failures are kept.

// judgePlayed adds to the trial what is wrong with the answers and effects of a sequence. It
// skips one whose requests the target does not take at all.
func (x *trial) judgePlayed(p *played) {
	if !p.wasTaken() && !p.mayFail() && !x.takenFresh(p, "", nil) {
		if x.judgeCount(p); x.worst() == VerdictPass { // what nobody was told of may have happened all the same
			x.skip("the target does not take such a request")
		}
		return
	}
	x.judgeOutcomes(p, "")
	x.judgeRepeats(p)
	x.judgeAmid(p)
	for _, change := range p.changes() {
		x.judgeOutcomes(p, change)
		x.judgeChange(p, change)
	}
	x.judgeEnd(p)
	x.judgeOthers(p)
	if p.fails != "crash" { // an effect before and after a crash is a choice
		x.judgeCount(p)
	}
	x.find(VerdictPass, "the sequence was played")
}

// wasTaken reports whether a request of the sequence met an outcome.
func (p *played) wasTaken() bool {
	return slices.ContainsFunc(p.sends, func(s *sent) bool { return s.outcome() })
}

// takenFresh reports whether the target takes the request with that difference, in these forms, under a key and with a
// reference of its own.
func (x *trial) takenFresh(p *played, change string, forms []string) bool {
	fresh := x.newOperation()
	fresh.key = p.keyFrom(x.r, fresh.key)
	op := p.op.with(func(dup *operation) {
		dup.body = bytes.ReplaceAll(dup.body, []byte(dup.ref), []byte(fresh.ref))
		dup.body = bytes.ReplaceAll(dup.body, []byte(dup.key), []byte(fresh.key))
		dup.key, dup.ref = fresh.key, fresh.ref
	})
	op.fillKey(x.r)
	if change != "" {
		op = p.differing(x, op, change)
	}
	return op != nil && p.send(x, move{copies: 1, forms: forms}, op, "", "the same under a key of its own").outcome()
}

// judgeOutcomes holds the outcomes of the requests with one difference against each other.
func (x *trial) judgeOutcomes(p *played, change string) {
	var first *sent
	for _, s := range p.sends {
		switch {
		case s.change != change || !s.outcome() || x.unprotected(p, change):
		case first == nil:
			first = s
		default:
			if same, known := sameOutcome(first.answer, s.answer); known && !same {
				x.proved = true
				x.spared(x.twoNames(p.op), false, "one outcome of one request", "%s, and %s", first, s)
				return
			}
		}
	}
}

// unprotected reports whether the profile says of requests with that difference that no key protects them.
func (x *trial) unprotected(p *played, change string) bool {
	method := p.as[change].method
	return method != x.r.o.Method && !x.r.o.keyed(method)
}

// judgeAmid looks at repeats that met another request of the key at work: they wait for its outcome, or are told
// to come again.
func (x *trial) judgeAmid(p *played) {
	first, ok := p.outcomeOf("")
	if !ok || p.othersOutcome() || p.mayFail() {
		return
	}
	for _, s := range p.sends {
		switch {
		case !s.amid || s.change != "" || p.endsEarly(s.act) || len(p.acts[s.act].forms) > 0:
		case s.kind == refused || s.kind == mismatch || s.kind == broken && s.status != http.StatusServiceUnavailable:
			x.should(false, "the outcome, or the word that it is in progress", "%s", s)
			return
		case s.kind == noAnswer && s.ended.Sub(first.ended) > x.r.o.AnswerTimeout/2 && errorText(s.err) == "timeout":
			x.spared(stuck, false, "the outcome, or the word that it is in progress", "%s, though %s", s, first)
			return
		}
	}
}

// judgeRepeats looks for repeats that are refused, or not answered, though the outcome had been given.
func (x *trial) judgeRepeats(p *played) {
	for _, s := range p.sends {
		if !s.again || s.change != "" || s.outcome() || p.endsEarly(s.act) {
			continue
		}
		if forms := p.formsOf(s); len(forms) > 0 && !x.takenFresh(p, "", forms) {
			continue // not in this form, whatever the key
		}
		x.spared(unresolved(s.answer), false, "the outcome that was given before", "%s", s)
		return
	}
}

// formsOf lists the forms of a send.
func (p *played) formsOf(s *sent) []string {
	if s.act >= len(p.acts) {
		return nil
	}
	return p.acts[s.act].forms
}

// endsEarly reports whether the act's client leaves before its answer.
func (p *played) endsEarly(at int) bool { return at < len(p.acts) && p.acts[at].ends != "" }

// judgeChange looks at the answers to the requests that differ in one relation.
func (x *trial) judgeChange(p *played, change string) {
	rel := x.r.related[change]
	first, ok := p.outcomeOf("")
	differing, also := p.outcomeOf(change)
	if !ok || !also || rel.bearing == free {
		return
	}
	same, known := sameOutcome(first.answer, differing.answer)
	switch {
	case rel.bearing == either && known && !same:
		x.proved = true
		x.spared(x.twoNames(p.op), false, "the outcome of the first request, or a refusal", "%s, and %s", first, differing)
	case rel.bearing == either:
	case !known && !differing.replayed && !first.replayed && !x.oneEffect(p):
		if rel.bearing == other {
			x.spared(twice, false, "a refusal", "%s, and %s", first, differing)
		}
	case known && !same && rel.bearing == other:
		x.proved = true
		x.spared(x.twoNames(p.op), false, "a refusal", "%s, and %s", first, differing)
	case known && !same:
	case rel.bearing == other && rel.level == LevelShould:
		x.should(false, "a refusal", "%s, and %s", first, differing)
	case rel.bearing == other:
		x.spared(lost, false, "a refusal", "%s, and %s", first, differing)
	default:
		x.spared(lost, false, "a refusal, or an outcome of its own", "%s, and %s", first, differing)
	}
}

// oneEffect reports whether one effect is counted of the sequence's operation. Where nobody counts, it may be two.
func (x *trial) oneEffect(p *played) bool {
	if !x.counts() {
		return false
	}
	n, ok := x.settledEffects(p.op.ref, 2)
	return ok && n == 1
}

// outcomeOf is the first send that met the outcome of the requests with that difference.
func (p *played) outcomeOf(change string) (*sent, bool) {
	at := slices.IndexFunc(p.sends, func(s *sent) bool { return s.change == change && s.outcome() })
	if at < 0 {
		return nil, false
	}
	return p.sends[at], true
}

// judgeEnd looks whether the key has resolved: by the outcome of the first request or, if another one may
// have come before it, by that one's. An operation that fails may fail again.
func (x *trial) judgeEnd(p *played) {
	last := p.ending()
	switch {
	case last.outcome():
	case p.mayFail() && last.kind != busy:
	case p.mayFail():
		x.spared(stuck, false, "an outcome, or the failure again", "%s", last)
	case p.othersOutcome(), p.refusedFirst() && unresolved(last.answer) == denied:
	case last.again: // judgeRepeats has said it
	case last.kind == refused && !x.takenFresh(p, "", nil):
	default:
		x.spared(unresolved(last.answer), false, "the outcome in the end", "%s", last)
	}
}

// mayFail reports whether a request of the sequence is made to fail: its failure may be kept.
func (p *played) mayFail() bool { return p.fails != "" || slices.Contains(p.changes(), failsFirst) }

// ending is the first request's last send.
func (p *played) ending() *sent {
	var last *sent
	for _, s := range p.sends {
		if s.change == "" {
			last = s
		}
	}
	return last
}

// othersOutcome reports whether another request has the key: it met an outcome.
func (p *played) othersOutcome() bool {
	return slices.ContainsFunc(p.sends, func(s *sent) bool { return s.change != "" && s.outcome() })
}

// refusedFirst reports whether another request came first under the key: a server may keep its refusal.
func (p *played) refusedFirst() bool {
	return len(p.acts) > 0 && (p.acts[0].change != "" || len(p.acts) > 1 && p.acts[1].beside && p.acts[1].change != "")
}

// judgeOthers looks whether other keys have met outcomes of their own.
func (x *trial) judgeOthers(p *played) {
	for _, s := range p.others {
		if !s.outcome() {
			continue
		}
		if !x.isOwn(s) {
			x.proved = true
			x.spared(lost, false, "an outcome of another operation's own", "%s of another reference for an operation with another key and body", s.answer)
			return
		}
		if n, ok := x.effects(s.op.ref); ok && n > 1 {
			x.atMost(s.op, 1, n, "another operation")
			return
		}
	}
}

// isOwn reports whether an outcome names nothing that another operation's named before.
func (x *trial) isOwn(s *sent) bool {
	owner := func(name string) bool { return x.r.owners.claim(name, s.op.ref) == s.op.ref }
	return (s.id == "" || owner("id "+s.id)) && (s.place == "" || owner("place "+s.place))
}

// judgeCount holds the effects of the operation against how many it may have.
func (x *trial) judgeCount(p *played) {
	if x.r.blind() != "" {
		return // no answer names an effect, and nobody counts
	}
	want := count(p.wasTaken())
	n, ok := x.settledEffects(p.op.ref, want)
	if !ok {
		return
	}
	const what = "its reference"
	x.noteEffects(what, n)
	if !x.atMost(p.op, p.mostEffects(x), n, what) || !x.counts() {
		return
	}
	if _, given := p.outcomeOf(""); given {
		x.spared(lost, n > 0, "an effect of what was answered with a success", "%s of %s", x.counted(n), what)
	}
}

// mostEffects is how many effects the sequence may have: one, none if all was refused, and one for each
// operation of its own that it may hold.
func (p *played) mostEffects(x *trial) int {
	most, extra := 0, map[string]int{}
	for _, s := range p.sends {
		refusal := s.status >= 400 && s.status < 500 && s.kind != busy
		if refusal || p.endsEarly(s.act) && p.acts[s.act].ends == "cut" {
			continue
		}
		if b := x.r.related[s.change].bearing; s.change != "" && (b == apart || b == free) && s.change != failsFirst {
			extra[s.change]++
			if !x.unprotected(p, s.change) {
				extra[s.change] = 1
			}
			continue
		}
		most = 1
	}
	for _, n := range extra {
		most += n
	}
	return most
}

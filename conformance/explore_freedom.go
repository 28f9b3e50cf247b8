package conformance

import (
	"fmt"
	"slices"
)

// What a right server is free in, it does in one way: a request with a query is the same one, refused, or another operation,
// but not each of these in turn. Two equal observations settle a freedom for the rest of the search.

// freedom is one of the things that a right server may do with a request that differs in a relation.
type freedom uint8

const (
	asSame    freedom = iota + 1 // it is given the first outcome
	asRefused                    // it is refused
	asOwn                        // it has an outcome of its own
)

// String is a freedom in words.
func (f freedom) String() string {
	switch f {
	case asSame:
		return "given the first outcome"
	case asRefused:
		return "refused"
	}
	return "executed as one of its own"
}

// freedoms keeps what the server has done, by relation.
type freedoms map[string]taken

// taken is one freedom of a server, and how often it was seen in a row.
type taken struct {
	freedom
	times int
}

// settledAfter is the number of equal observations for a settled freedom.
const settledAfter = 2

// note adds an observation.
func (f freedoms) note(id string, seen freedom) {
	had := f[id]
	switch {
	case had.freedom == seen:
		had.times++
	case had.times < settledAfter:
		had = taken{seen, 1}
	}
	f[id] = had
}

// settled is the server's way with a relation, once it is settled.
func (f freedoms) settled(id string) (freedom, bool) {
	had := f[id]
	return had.freedom, had.times >= settledAfter
}

// observed is one observation of a freedom: a request, and what was done with it.
type observed struct {
	*sent
	freedom
}

// observe lists what a played sequence shows of the server's freedoms, once for each relation: what was done with requests
// that came alone, after the first outcome.
func (p *played) observe(x *trial) []observed {
	first, given := p.outcomeOf("")
	if !given || p.fails != "" {
		return nil
	}
	var all []observed
	for _, s := range p.sends {
		met := slices.ContainsFunc(all, func(o observed) bool { return o.change == s.change })
		if met || !x.r.related[s.change].bearing.isFree() || s.amid || p.endsEarly(s.act) || s.started.Before(first.ended) || x.unprotected(p, s.change) {
			continue
		}
		if f := p.freedomOf(first, s); f != 0 {
			all = append(all, observed{s, f})
		}
	}
	return all
}

// freedomOf returns the server's way with a request after the first outcome. Zero: the answer does not tell.
func (p *played) freedomOf(first, s *sent) freedom {
	same, known := sameOutcome(first.answer, s.answer)
	switch {
	case s.outcome() && known && same:
		return asSame
	case s.outcome() && known:
		return asOwn
	case s.kind == mismatch, s.kind == refused && len(p.formsOf(s)) == 0: // else the form may be refused
		return asRefused
	}
	return 0
}

// isFree reports whether a right server may do one of several things with a request that differs in such a relation.
func (b bearing) isFree() bool { return b == either || b == apart || b == free }

// judgeFreedoms compares the server's behaviour in a sequence with its behaviour in others.
func (x *trial) judgeFreedoms(p *played, elsewhere freedoms) {
	for _, o := range p.observe(x) {
		before, settled := elsewhere.settled(o.change)
		if !settled || o.freedom == before || o.freedom == asRefused && !x.takenFresh(p, o.change, p.formsOf(o.sent)) {
			continue
		}
		x.should(false, fmt.Sprintf("a request %s that is %s, as in other sequences", x.r.related[o.change].words, before), "that it is %s: %s", o.freedom, o.sent)
		return
	}
}

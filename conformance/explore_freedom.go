package conformance

import (
	"fmt"
	"slices"
)

// A correct server makes each of its choices once: a request with a query is the same request,
// refused, or another operation, but not each of these in turn. Two equal observations settle a
// choice for the rest of the search.

// freedom is one possible choice of a server for requests that differ in a relation. Zero is
// no choice.
type freedom uint8

const (
	asSame    freedom = iota + 1 // it is given the first outcome
	asRefused                    // it is refused
	asOwn                        // it has an outcome of its own
)

// String returns the choice in words, after "the request is".
func (f freedom) String() string {
	switch f {
	case asSame:
		return "given the first outcome"
	case asRefused:
		return "refused"
	}
	return "executed as one of its own"
}

// freedoms holds the server's choices so far, by relation. One goroutine changes it, between the
// batches that read it.
type freedoms map[string]taken

// taken is one choice of a server, with the number of equal observations in a row.
type taken struct {
	freedom
	times int
}

// settledAfter is the number of equal observations that settle a choice.
const settledAfter = 2

// note adds an observation of the server's choice for a kind of difference between requests. Once it was seen often enough, the choice is settled,
// and other observations change nothing: they are contradictions. Before that another choice starts the count anew.
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

// settled returns the server's choice for a relation, a kind of difference between requests to which several answers are right; false if it was not
// yet seen often enough to expect it again.
func (f freedoms) settled(id string) (freedom, bool) {
	had := f[id]
	return had.freedom, had.times >= settledAfter
}

// observed is one observation: a request, and the server's choice for it.
type observed struct {
	*sent
	freedom
}

// observe lists what the server chose, in a played sequence, where several answers are right: once for each relation (kind of difference). Only
// requests that were sent alone (not amid others), after the first outcome, and read their answer count: any other answer may have another cause. So
// may one in a sequence whose handler fails, or to a method that the profile has no keys for (unprotected).
func (j judgement) observe() []observed {
	first, given := j.play.outcomeOf("")
	if !given || j.play.fails != "" {
		return nil
	}
	var all []observed
	for _, s := range j.play.sends {
		met := slices.ContainsFunc(all, func(o observed) bool { return o.change == s.change })
		if met || !j.trial.r.related[s.change].bearing.isFree() || s.amid || j.play.endsEarly(s.act) || s.started.Before(first.ended) || j.unprotected(s.change) {
			continue
		}
		if f := j.play.freedomOf(first, s); f != 0 {
			all = append(all, observed{s, f})
		}
	}
	return all
}

// freedomOf returns the server's choice for a request with several right answers: the first outcome (it is the same request), an outcome of its own,
// or a refusal. first is the send with the first outcome. Zero: the answer does not show the choice, such as a success without a name.
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

// isFree reports whether a correct server may choose its answer to a request with such a difference under the same key: the first outcome, a refusal
// or an outcome of its own, at least two of these.
func (b bearing) isFree() bool { return b == either || b == apart || b == free }

// judgeFreedoms warns if the server treats a kind of difference in this sequence otherwise than it did in several others (elsewhere): it may choose,
// but once for all. A sequence is compared with a choice that is settled, seen often enough. A refusal counts only if the same request is accepted
// under a fresh key. It warns once.
func (j judgement) judgeFreedoms(elsewhere freedoms) {
	for _, o := range j.observe() {
		before, settled := elsewhere.settled(o.change)
		if !settled || o.freedom == before || o.freedom == asRefused && !j.takenFresh(o.change, j.play.formsOf(o.sent)) {
			continue
		}
		j.trial.should(false, fmt.Sprintf("a request %s that is %s, as in other sequences", j.trial.r.related[o.change].words, before), "that it is %s: %s", o.freedom, o.sent)
		return
	}
}

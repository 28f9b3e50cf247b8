package conformance

import (
	"math/rand/v2"
	"slices"
)

// drawer draws sequences from a seed. The same seed, ids and findings give the same ones.
type drawer struct {
	seed   uint64
	known  map[string]relation // all relations by id
	order  []string            // ids of all relations, as in a report
	ids    []string            // relations to draw from
	delays bool                // operations can be slow
	found  [][]string          // the relations of each finding; no sequence with all of one is drawn
}

// drawTries is the most draws for one number, if sequences hold an earlier finding.
const drawTries = 20

// draw returns the random sequence with this number, the same for the same seed; nil if each of drawTries draws holds an earlier finding. Of three
// sequences two have many changes of the request and few ways of sending, to meet all pairs soon; one is short and free: one to three acts, with any
// relations. pools returns the ways of sending and the changes. The number of the try makes each draw another.
func (d *drawer) draw(number int) *sequence {
	ways, changes := d.pools()
	pool := slices.Concat(ways, changes)
	if len(pool) == 0 {
		return nil
	}
	for try := range uint64(drawTries) {
		random := rand.New(rand.NewPCG(d.seed, uint64(number)<<8|try))
		s := &sequence{acts: make([]move, 1)}
		if number%3 == 2 { // the short and free one
			s.acts = make([]move, 1+random.IntN(3))
			d.mixAll(s, append([]string{pool[number%len(pool)]}, d.more(ways, changes, random)...), random)
		} else {
			d.pair(s, number/3*2+number%3, ways, changes, random) // numbered without the short ones
		}
		if !d.holdsFound(s) {
			return s
		}
	}
	return nil
}

// batchMost is the most changes in a sequence of pairs.
const batchMost = 8

// pair fills s with one way of sending (such as a pause or an overlap), sometimes more, and a batch of changes of the request. With rising numbers
// all ways come in turn; a round is one turn of all. The plain repeats (move{}) between the changes, one in four times, see whether a change has
// harmed the record of the key.
func (d *drawer) pair(s *sequence, number int, ways, changes []string, random *rand.Rand) {
	round, chosen := number, []string{}
	if n := len(ways); n > 0 {
		round = number / n
		chosen = append(chosen, ways[number%n])
		switch {
		case round%2 == 1: // in every other round each way meets another one
			chosen = append(chosen, ways[(number+round/2+1)%n])
		case random.IntN(4) == 0:
			chosen = append(chosen, ways[random.IntN(n)])
		}
	}
	slices.SortStableFunc(chosen, func(a, b string) int { return count(b == "overlap") - count(a == "overlap") }) // a pause may be put into it
	for _, id := range d.batch(number, round, changes) {
		d.add(s, func(dup *sequence) {
			if random.IntN(4) == 0 {
				dup.acts = append(dup.acts, move{})
			}
			dup.acts = append(dup.acts, move{change: id})
		})
	}
	for _, id := range chosen {
		d.add(s, func(dup *sequence) { d.mix(dup, id, random) })
	}
}

// batch returns the changes (kinds of differences between requests) of the sequence with this number: batchMost at most, with at most one about keys,
// from a random order of all changes. round is the number of times that all ways of sending have had their turn before it: in the next one, each way
// meets the next changes of its order. Two differences of keys would need two forms of one key.
func (d *drawer) batch(number, round int, changes []string) []string {
	if len(changes) == 0 {
		return nil
	}
	order := rand.New(rand.NewPCG(d.seed, ^uint64(number-round))).Perm(len(changes))
	var ids []string
	keyed := false
	for i := range min(batchMost, len(changes)) {
		id := changes[order[(round*batchMost+i)%len(order)]]
		if d.known[id].key != nil && keyed {
			continue
		}
		keyed = keyed || d.known[id].key != nil
		ids = append(ids, id)
	}
	return ids
}

// add applies a change to the sequence s, unless s would then only show a fault that was found before.
func (d *drawer) add(s *sequence, change func(*sequence)) {
	dup := s.clone()
	if change(dup); !d.holdsFound(dup) {
		*s = *dup
	}
}

// pools splits the relations (kinds of differences between a request and its repeat) to draw from into two: other ways of sending the same request,
// and changes of the request. Relations found faulty on their own are left out: a longer sequence with one would show nothing new. The sequence with
// only is one that stands for this relation alone.
func (d *drawer) pools() (ways, changes []string) {
	for _, id := range d.ids {
		switch {
		case d.holdsFound(&sequence{acts: []move{{}}, only: id}):
		case d.isWay(id):
			ways = append(ways, id)
		default:
			changes = append(changes, id)
		}
	}
	return ways, changes
}

// isWay reports whether a relation is a way of sending (its form on the wire, or its course: time and manner), and no change of the request. A first
// request that fails (failsFirst) counts as a way, though it changes the request: it decides what comes first.
func (d *drawer) isWay(id string) bool {
	return d.known[id].bearing == sameForm || d.known[id].bearing == course || id == failsFirst
}

// more draws up to two ways of sending and up to three changes (kinds of differences between requests) for a sequence.
func (d *drawer) more(ways, changes []string, random *rand.Rand) []string {
	var ids []string
	for _, from := range []struct {
		pool []string
		most int
	}{{ways, 2}, {changes, 3}} {
		for range random.IntN(from.most + 1) {
			if len(from.pool) > 0 {
				ids = append(ids, from.pool[random.IntN(len(from.pool))])
			}
		}
	}
	return ids
}

// mixAll adds randomly drawn differences to the sequence s of requests: first those of their contents, then the ways of sending, such as a pause. Of
// several differences of keys only the first counts, since one key has one form. The ways come last: they are put around the requests that are there.
func (d *drawer) mixAll(s *sequence, ids []string, random *rand.Rand) {
	keyed := false
	for _, id := range ids {
		rel := d.known[id]
		if d.isWay(id) || keyed && rel.key != nil {
			continue
		}
		keyed = keyed || rel.key != nil
		d.differ(s, id, random)
	}
	for _, id := range ids {
		if d.isWay(id) {
			d.mix(s, id, random)
		}
	}
}

// holdsFound reports whether the sequence has all relations (kinds of differences) of a fault found before: it would only show that again. A fault
// without relations, that of any request, is in all.
func (d *drawer) holdsFound(s *sequence) bool {
	ids := s.relations(d.order)
	return slices.ContainsFunc(d.found, func(found []string) bool {
		return !slices.ContainsFunc(found, func(id string) bool { return !slices.Contains(ids, id) })
	})
}

// mix adds one randomly drawn difference to a sequence of requests. id names it: a form of the request on the wire, a repeat, a pause, an overlap, a
// client that leaves, or a failure of the server. The part of a move is the time before it, as a part of the slow operation's work: over 1, it comes
// after the end. Most random numbers only weigh the variants; a way may add the acts (requests) that it needs.
func (d *drawer) mix(s *sequence, id string, random *rand.Rand) {
	switch {
	case d.known[id].bearing == sameForm:
		d.form(s, id, random)
	case id == "repeat":
		for range 2 + random.IntN(3) {
			s.acts = slices.Insert(s.acts, min(d.place(s, random), len(s.acts)), move{forms: d.anyForm(random)})
		}
	case id == "large-5k", id == "large-60k":
		s.size = id
	case id == "leaves", id == "reset", id == "cut":
		d.leave(s, id, random)
	case id == "overlap":
		s.slow = true
		ends := []string{"", "", "", "leaves", "reset"}[random.IntN(5)]
		at := d.place(s, random)
		a := move{copies: 1 + random.IntN(3), ends: ends, forms: d.anyForm(random), beside: true, part: random.Float64() * 1.1, pause: d.draws("pause") && random.IntN(4) == 0}
		s.acts = slices.Insert(s.acts, at, a)
		for range random.IntN(3) {
			s.acts = slices.Insert(s.acts, at+1, move{forms: d.anyForm(random), beside: true, part: random.Float64() / 4})
		}
		d.meet(s, random)
	case id == "at-once":
		s.acts[random.IntN(len(s.acts))].copies = 2 + random.IntN(7)
	case id == "pause":
		d.pause(s, random)
	case id == failsFirst:
		d.failFirst(s, random)
	case id == "others-fail":
		s.acts[random.IntN(len(s.acts))].failing = true
		s.acts = append(s.acts, move{})
	case id == "others":
		d.later(s, random).others = []int{1 + random.IntN(12), manyOthers}[random.IntN(2)]
	default: // it fails
		s.fails = id
	}
}

// meet moves the changed requests, in three of four sequences, so that they arrive early while the server works on the first one (beside, at a part
// of the work under a quarter). Requests whose client leaves (ends) stay. It does nothing if the first act is a changed request: no plain one is at
// work then.
func (d *drawer) meet(s *sequence, random *rand.Rand) {
	if random.IntN(4) == 0 || s.acts[0].change != "" {
		return
	}
	var beside, others []move
	for _, a := range s.acts[1:] {
		if a.change == "" || a.ends != "" {
			others = append(others, a)
			continue
		}
		a.beside, a.part = true, random.Float64()/4
		beside = append(beside, a)
	}
	s.acts = slices.Concat(s.acts[:1], beside, others)
}

// failFirst puts a request that fails at the beginning of the sequence, and a repeat of it after that. If operations can be slow (delays), the
// repeats arrive during its work.
func (d *drawer) failFirst(s *sequence, random *rand.Rand) {
	first := []move{{change: failsFirst}, {}}
	if s.slow = s.slow || d.delays; s.slow {
		first[1] = move{beside: true, copies: 2 + random.IntN(3), part: random.Float64() / 4}
	}
	s.acts = append(first, s.acts...)
}

// anyForm returns a random form of a request, a difference on the wire only (such as a chunked body), as a list of one id; nil, if five draws from
// all relations meet none, means no form, as for most requests. The form "connection" is left out: it takes two requests.
func (d *drawer) anyForm(random *rand.Rand) []string {
	id := d.ids[random.IntN(len(d.ids))]
	for range 4 {
		if d.known[id].bearing == sameForm && id != "connection" {
			return []string{id}
		}
		id = d.ids[random.IntN(len(d.ids))]
	}
	return nil
}

// draws reports whether a relation, a kind of difference between two requests, is among those that this search draws from.
func (d *drawer) draws(id string) bool { return slices.Contains(d.ids, id) }

// place draws an index for a new act of the sequence, after the first act: often 1, else any up to the end.
func (d *drawer) place(s *sequence, random *rand.Rand) int {
	if random.IntN(2) == 0 {
		return 1
	}
	return 1 + random.IntN(len(s.acts))
}

// pause puts a pause into the sequence of requests: often before one that meets another at work, else at the end or before any
// later one.
func (d *drawer) pause(s *sequence, random *rand.Rand) {
	at := slices.IndexFunc(s.acts, func(a move) bool { return a.beside })
	if at > 0 && s.slow && random.IntN(2) == 0 {
		s.acts[at].pause = true
		return
	}
	if random.IntN(2) == 0 {
		s.acts = append(s.acts, move{pause: true}) // a plain repeat after a pause
		return
	}
	d.later(s, random).pause = true
}

// manyOthers is the number of operations between two acts in some sequences.
const manyOthers = 120

// form gives a form, a difference on the wire only, to one act of the sequence (one time in six), to all but the first (two), or to all.
func (d *drawer) form(s *sequence, id string, random *rand.Rand) {
	from, to := 0, len(s.acts)
	switch random.IntN(6) {
	case 0:
		from = random.IntN(len(s.acts))
		to = from + 1
	case 1, 2:
		s.acts = append(s.acts, move{})
		from, to = 1, len(s.acts)
	}
	for i := from; i < to; i++ {
		if !slices.Contains(s.acts[i].forms, id) {
			s.acts[i].forms = append(s.acts[i].forms, id)
		}
	}
	if id == "connection" { // two requests share the connection
		s.acts = append(s.acts, move{forms: []string{id}})
	}
}

// leave puts a request into the sequence whose client hangs up before the answer: in front of all others, or anywhere. id is the kind of its end.
// With slow, the work takes long enough to hang up during it; beside means that it is sent while the act before it is at work, which the first act
// cannot be.
func (d *drawer) leave(s *sequence, id string, random *rand.Rand) {
	s.slow = s.slow || d.delays && random.IntN(2) == 0
	at := 0
	if random.IntN(2) == 0 {
		at = random.IntN(len(s.acts) + 1)
	}
	s.acts = slices.Insert(s.acts, at, move{ends: id, beside: at > 0 && random.IntN(3) == 0})
	s.acts[0].beside = false
}

// later returns an act of the sequence that is neither the first nor at the same time as another. It changes the sequence if there is none: it
// appends a plain repeat to a single act, or takes the second out of its group.
func (d *drawer) later(s *sequence, random *rand.Rand) *move {
	if len(s.acts) == 1 {
		s.acts = append(s.acts, move{})
	}
	a := &s.acts[min(d.place(s, random), len(s.acts)-1)]
	if a.beside {
		a = &s.acts[1]
		a.beside = false
	}
	return a
}

// differ puts one or two requests with a difference into the sequence, sometimes while the act before is at work (beside), which the first act cannot
// be. id names the difference. The part of a move is the time before it, as a part of the slow operation's work.
func (d *drawer) differ(s *sequence, id string, random *rand.Rand) {
	beside := random.IntN(4) == 0
	s.slow = s.slow || beside && d.delays
	for n := range 1 + random.IntN(2) {
		at := random.IntN(len(s.acts) + 1)
		s.acts = slices.Insert(s.acts, at, move{change: id, beside: at > 0 && beside && n == 0, part: random.Float64()})
		s.acts[0].beside = false
	}
}

package conformance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// effects counts the effects of one reference, and remembers which witness did. If
// they cannot be counted ok is false, and the case becomes inconclusive.
func (x *trial) effects(ref string) (n int, ok bool) {
	if why := x.r.blind(); why != "" {
		x.inconclusive("%s", why)
		return 0, false
	}
	n, witness, err := x.r.steering.effects(x.ctx, ref)
	if err != nil {
		x.inconclusive("%s", strings.TrimPrefix(err.Error(), "conformance: "))
		return 0, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if witness == WitnessInferred {
		n = x.names.count(ref)
	}
	x.witness = witness
	return n, true
}

// counts reports whether a witness counts effects: they are not only inferred.
func (x *trial) counts() bool {
	w := x.r.learnt.witness
	return x.r.steering.ownsHandler() || x.r.blind() == "" && (w == WitnessCounted || w == WitnessListed)
}

// names are the effects that answers have named, by reference. An effect belongs
// to the reference that it was first named for: the same name under another
// reference is the answer to another operation, and no second effect.
type names struct {
	all   []named
	owner *owners // of the run
}

// owners says for which reference an effect was first named in this run. It may
// be used by several goroutines.
type owners struct {
	mu sync.Mutex
	of map[string]string
}

// claim gives a name to a reference unless it has an owner, and says who has it.
func (o *owners) claim(name, ref string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[string]string{}
	}
	if _, known := o.of[name]; !known {
		o.of[name] = ref
	}
	return o.of[name]
}

// named is one answer's name of an effect: an id, a Location, or both.
type named struct {
	ref, id, place string
	own            bool // no other reference had the name before
}

// saw notes what an answer to this reference names.
func (s *names) saw(ref string, a *answer) {
	if a.id == "" && a.place == "" {
		return
	}
	n := named{ref: ref, id: a.id, place: a.place}
	n.own = (n.id == "" || s.owner.claim("id "+n.id, ref) == ref) && (n.place == "" || s.owner.claim("place "+n.place, ref) == ref)
	s.all = append(s.all, n)
}

// count is the number of distinct effects of a reference. An answer that has
// lost its id is known by its Location.
func (s *names) count(ref string) int {
	ids, places := map[string]bool{}, map[string]bool{}
	for _, n := range s.all {
		if n.ref == ref && n.id != "" && n.own {
			ids[n.id] = true
		}
	}
	for _, n := range s.all {
		placed := slices.ContainsFunc(s.all, func(m named) bool { return m.id != "" && m.place == n.place })
		if n.ref == ref && n.id == "" && n.place != "" && !placed && n.own {
			places[n.place] = true
		}
	}
	return len(ids) + len(places)
}

// claim is a count that has to hold when late effects have had their time.
type claim struct {
	ref, what  string
	most, seen int
}

// wantEffects checks how many effects an operation's reference had. One too many, and
// one too few, is a matter of safety, whatever the level of the case. A count that is too
// low is asked for again for a moment; one that is only inferred cannot be too low,
// since it misses every effect whose answer was lost.
func (x *trial) wantEffects(op *operation, want int, what string) bool {
	n, ok := x.settledEffects(op.ref, want)
	if !ok {
		return false
	}
	x.noteEffects(what, n)
	if !x.atMost(op, want, n, what) {
		return false
	}
	return x.spared(lost, n == want || !x.counts(), plural(want, "effect")+" of "+what, "%s of %s", x.counted(n), what)
}

// atMost checks that a count is not too high, now and after late effects.
func (x *trial) atMost(op *operation, most, n int, what string) bool {
	x.claims = append(x.claims, claim{ref: op.ref, what: what, most: most, seen: n})
	return n <= most || x.spared(tooMany(most), false, plural(most, "effect")+" of "+what, "%s of %s", x.counted(n), what)
}

// wantEffectOfSuccess checks that an operation whose success was reported had an
// effect, if effects can be counted.
func (x *trial) wantEffectOfSuccess(op *operation, a *answer) bool {
	if !a.outcome() || !x.counts() {
		return true
	}
	n, ok := x.settledEffects(op.ref, 1)
	return ok && x.spared(lost, n > 0, "a success that has an effect", "%s, and no effect", a)
}

// tooMany is what an effect too many shows, where most were asked for.
func tooMany(most int) harm {
	if most == 0 {
		return unasked
	}
	return twice
}

// counted is a number of effects in words. Without a witness an effect is seen only
// if an answer names it, so that there may have been more.
func (x *trial) counted(n int) string {
	switch {
	case x.counts():
		return plural(n, "effect")
	case n == 0:
		return "no effect that an answer names (whether there was one cannot be seen without --witness)"
	}
	return plural(n, "effect") + " that answers name"
}

// settledEffects counts, again and again for a while where there are too few.
func (x *trial) settledEffects(ref string, want int) (int, bool) {
	deadline := time.Now().Add(min(x.r.o.Settle, max(time.Second, x.r.o.EffectWait)))
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		n, ok := x.effects(ref)
		if !ok || n >= want || !x.counts() || x.over() || time.Now().After(deadline) || !x.pause(wait) {
			return n, ok
		}
	}
}

// settleAll gives late effects their time, and counts again. It is not cut short
// by the bound of a case, and sends nothing to the target but what a witness asks.
func (r *runner) settleAll(ctx context.Context, tries []*trial) {
	var all sync.WaitGroup
	for _, x := range tries {
		all.Go(func() { r.settle(ctx, x) })
	}
	all.Wait()
}

// settle does this for one trial: it waits until Options.EffectWait after its last
// answer, and a count that has become too high fails it.
func (r *runner) settle(ctx context.Context, x *trial) {
	if len(x.claims) == 0 || !x.counts() {
		return
	}
	timer := time.NewTimer(time.Until(x.latest.Add(r.o.EffectWait)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	for i, n := range r.recount(ctx, x.claims) {
		c := x.claims[i]
		x.recountNote(c.what, n)
		if n > c.most && c.seen <= c.most {
			x.noteEffects(c.what, n)
			x.spared(tooMany(c.most), false, plural(c.most, "effect")+" of "+c.what, "%s of %s, %v after its last answer", plural(n, "effect"), c.what, r.o.EffectWait)
		}
	}
}

// recountParallel is how many counts are asked for at once.
const recountParallel = 16

// recount asks for the counts of claims again; a witness that does not answer
// counts nothing.
func (r *runner) recount(ctx context.Context, claims []claim) []int {
	counts := make([]int, len(claims))
	places := make(chan struct{}, recountParallel)
	var all sync.WaitGroup
	for i, c := range claims {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if n, _, err := r.steering.effects(ctx, c.ref); err == nil {
				counts[i] = n
			}
		})
	}
	all.Wait()
	return counts
}

// note is a line of the effects in the report.
type note struct {
	what string
	n    int
}

// noteEffects puts a count into the report; the last of one name stands.
func (x *trial) noteEffects(what string, n int) {
	if i := slices.IndexFunc(x.notes, func(had note) bool { return had.what == what }); i >= 0 {
		x.notes[i].n = n
		return
	}
	x.notes = append(x.notes, note{what: what, n: n})
}

// recountNote raises a count that stands in the report already.
func (x *trial) recountNote(what string, n int) {
	for i := range x.notes {
		if x.notes[i].what == what {
			x.notes[i].n = max(x.notes[i].n, n)
		}
	}
}

// noted joins the counts of effects, for the report. What was only inferred is no
// count: there may have been more.
func (x *trial) noted() string {
	var parts []string
	for _, n := range x.notes {
		text := strconv.Itoa(n.n)
		switch {
		case x.counts():
		case n.n == 0:
			text = "cannot be seen without --witness"
		default:
			text = "at least " + text
		}
		parts = append(parts, n.what+": "+text)
	}
	return strings.Join(parts, ", ")
}

// plural returns n with the noun, in the plural unless n is 1.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// wantFirst checks that a repeat was given the outcome of the first request. Two
// answers that name nothing are told apart by the mark of a replay or by the
// witness; without either nothing is known.
func (x *trial) wantFirst(op *operation, first, again *answer, where string) bool {
	const expected = "the outcome of the first request"
	if !again.outcome() {
		return x.spared(unresolved(again), false, expected, "%s, then %s%s", first, again, where)
	}
	same, known := sameOutcome(first, again)
	switch {
	case known && !same:
		x.proved = true
		return x.spared(x.twoNames(op), false, expected, "%s, then %s%s", first, again, where)
	case known, again.replayed && !first.replayed:
		return x.want(true, "", "%s, then %s%s", first, again, where)
	}
	n, ok := x.settledEffects(op.ref, 1)
	if !ok {
		return false
	}
	if !x.counts() {
		x.inconclusive("the answers %s and %s do not name what they are about, and nobody counts effects (--witness)", first, again)
		return false
	}
	return x.atMost(op, 1, n, "its reference") && x.spared(lost, n == 1, "1 effect of both answers", "%s of both answers", plural(n, "effect"))
}

// twoNames is what two successes under one key show that name two effects: these have
// happened, unless a witness counts no more than one.
func (x *trial) twoNames(op *operation) harm {
	if !x.counts() {
		return twice
	}
	n, ok := x.settledEffects(op.ref, 2)
	if ok {
		x.noteEffects("its reference", n)
		x.claims = append(x.claims, claim{ref: op.ref, what: "its reference", most: 1, seen: n})
	}
	if ok && n > 1 {
		return twice
	}
	return otherwise
}

// sameOrTwice is what two successes under one key show, where they name two effects.
func (x *trial) sameOrTwice(op *operation, same bool) harm {
	if same {
		return ownHarm
	}
	return x.twoNames(op)
}

// unresolved is what a last answer shows that is no outcome: the key is stuck, or the
// request is refused.
func unresolved(a *answer) harm {
	if a.kind == busy || a.kind == noAnswer || a.kind == broken {
		return stuck
	}
	return denied
}

// wantOutcome checks that a key resolved: the last answer is the outcome.
func (x *trial) wantOutcome(a *answer, expected, format string, args ...any) bool {
	return x.spared(unresolved(a), a.outcome(), expected, format, args...)
}

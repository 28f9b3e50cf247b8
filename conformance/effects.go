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

// effects returns the number of effects (executions) that the target has had for a reference, the text in a body by which it counts them. Without a
// counter it is the number of distinct names in answers, and may be too low. ok is false if effects cannot be counted: the case is then inconclusive
// already, and the caller returns.
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

// counts reports whether a witness (a counter or list of effects at the target) tells how many there were, as the probe has found, or the suite's own
// handler does. If not, their number is inferred from answers: never too high, and perhaps too low.
func (x *trial) counts() bool {
	w := x.r.learnt.witness
	return x.r.steering.ownsHandler() || x.r.blind() == "" && (w == WitnessCounted || w == WitnessListed)
}

// names holds the effects named in answers of one trial, by reference. A name belongs to the
// reference for which the run saw it first. Under another reference it means that the server
// gave the answer to another operation, and is no second effect. The trial's lock guards it.
type names struct {
	all   []named
	owner *owners // shared by all trials of the run
}

// owners maps each name of an effect to the reference for which the run saw it first. It is
// safe for concurrent use; the zero value is ready.
type owners struct {
	mu sync.Mutex
	of map[string]string // references by name; nil until the first claim
}

// claim returns the reference of the operation to which a name of an effect, an id or a Location in an answer, belongs: that of the first answer with
// the name. So a name that two operations are given is found. A new name belongs to ref from now on.
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

// named is the name of an effect in one answer: an id, a Location, or both.
type named struct {
	ref, id, place string
	own            bool // ref owns both names
}

// saw notes the names of an effect, its id and its Location, in an answer to an operation with this reference. own is true if no operation with
// another reference had one of these names before; other names are no effects of this operation. An answer without a name adds nothing. The words
// "id" and "place" keep equal texts of both kinds apart.
func (s *names) saw(ref string, a *answer) {
	if a.id == "" && a.place == "" {
		return
	}
	n := named{ref: ref, id: a.id, place: a.place}
	n.own = (n.id == "" || s.owner.claim("id "+n.id, ref) == ref) && (n.place == "" || s.owner.claim("place "+n.place, ref) == ref)
	s.all = append(s.all, n)
}

// count returns the number of different effects that answers have named for a reference: its ids, and those Locations that never came with an id (one
// that did is the same effect). Names that belong to another reference do not count.
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

// claim is a count of effects for a second look, after late effects have had their time.
type claim struct {
	ref  string
	what string // the subject in the report: "its reference"
	most int    // a higher count is a failure
	seen int    // the first count
}

// wantEffects checks that op's reference has exactly want effects; what names the reference in the report. Every miss is a matter of safety: too many
// are harm twice or unasked, too few are harm lost (a success without an effect). A count below want is asked for again for a moment
// (settledEffects); if effects are only inferred from answers, it is no failure. False: the check failed, or nothing could be counted.
func (x *trial) wantEffects(op *operation, want int, what string) bool {
	n, ok := x.settledEffects(op.ref, want)
	if !ok {
		return false
	}
	x.noteEffects(what, n)
	if !x.atMost(op, want, n, what) {
		return false
	}
	return x.wantOrHarm(lost, n == want || !x.counts(), plural(want, "effect")+" of "+what, "%s of %s", x.counted(n), what)
}

// atMost checks that n, the counted effects of op's reference, is at most most, and returns true if so. The number is checked again at the end of the
// case: a later effect fails it, too. what names the requests, for the report.
func (x *trial) atMost(op *operation, most, n int, what string) bool {
	x.claims = append(x.claims, claim{ref: op.ref, what: what, most: most, seen: n})
	return n <= most || x.wantOrHarm(tooMany(most), false, plural(most, "effect")+" of "+what, "%s of %s", x.counted(n), what)
}

// wantEffectOfSuccess checks that op has an effect if the answer a is a success. If a is no success, or effects cannot be counted, it returns true
// without a check.
func (x *trial) wantEffectOfSuccess(op *operation, a *answer) bool {
	if !a.outcome() || !x.counts() {
		return true
	}
	n, ok := x.settledEffects(op.ref, 1)
	return ok && x.wantOrHarm(lost, n > 0, "a success that has an effect", "%s, and no effect", a)
}

// tooMany returns the harm of more effects than most, the allowed number: unasked if none was allowed, else twice.
func tooMany(most int) harm {
	if most == 0 {
		return unasked
	}
	return twice
}

// counted returns n effects in words for the report. If nobody counts effects, the words say that there may have been more.
func (x *trial) counted(n int) string {
	switch {
	case x.counts():
		return plural(n, "effect")
	case n == 0:
		return "no effect that an answer names (whether there was one cannot be seen without --witness)"
	}
	return plural(n, "effect") + " that answers name"
}

// settledEffects returns the number of effects of a reference; false if they cannot be counted. While a counter shows fewer than want it asks again,
// since effects may come late: for a second, or Options.EffectWait if that is longer, but not beyond Options.Settle. It returns the last count, which
// may still be below want. It returns at once if effects are only inferred from answers, or if nothing more can be sent (over).
func (x *trial) settledEffects(ref string, want int) (int, bool) {
	deadline := time.Now().Add(min(x.r.o.Settle, max(time.Second, x.r.o.EffectWait)))
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		n, ok := x.effects(ref)
		if !ok || n >= want || !x.counts() || x.over() || time.Now().After(deadline) || !x.pause(wait) {
			return n, ok
		}
	}
}

// settleAll waits until late effects of all tries have had their time, and counts again, so that an effect after the last answer is found. It blocks
// for Options.EffectWait at most, all tries at once, and ends early with ctx. The time limit of a case does not end it. It asks the witness (the
// counter of effects) only.
func (r *runner) settleAll(ctx context.Context, tries []*trial) {
	var all sync.WaitGroup
	for _, x := range tries {
		all.Go(func() { r.settle(ctx, x) })
	}
	all.Wait()
}

// settle counts the effects of an ended trial (one run of a case) again, after late effects have had their time. A count that has become too high
// adds a finding, so that result must come after it. A count that was too high already (seen) has its finding. x.latest is the time of the last
// answer.
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
			x.wantOrHarm(tooMany(c.most), false, plural(c.most, "effect")+" of "+c.what, "%s of %s, %v after its last answer", plural(n, "effect"), c.what, r.o.EffectWait)
		}
	}
}

// recountParallel is how many counts are asked for at once.
const recountParallel = 16

// recount asks the target's witness, a URL that counts effects, for the present count of each claim, a first count of one reference. It sends
// recountParallel questions at once. The result is parallel to claims; 0 also stands for a failed question, so that it never proves too many.
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

// note is one count of effects in the report, by the name of its subject.
type note struct {
	what string
	n    int
}

// noteEffects puts a number of effects into the report, under a name. It replaces an earlier number with the same name.
func (x *trial) noteEffects(what string, n int) {
	if i := slices.IndexFunc(x.notes, func(had note) bool { return had.what == what }); i >= 0 {
		x.notes[i].n = n
		return
	}
	x.notes = append(x.notes, note{what: what, n: n})
}

// recountNote raises the number with this name in the report. A lower n, or an unknown name, changes nothing: effects do not go away, and 0 may stand
// for a failed question.
func (x *trial) recountNote(what string, n int) {
	for i := range x.notes {
		if x.notes[i].what == what {
			x.notes[i].n = max(x.notes[i].n, n)
		}
	}
}

// noted returns the counts as one line of the report: "the first: 1, its reference: at least
// 1". Without a counter a number is a lower bound.
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

// wantFirst checks that again has the outcome of first, both answers to op. where follows the answers in the report; it may be "". Answers without an
// id or Location in common are compared by the mark of a replay, or else by the count of effects: one shows that both had the same outcome. False:
// the check failed, or the case is inconclusive.
func (x *trial) wantFirst(op *operation, first, again *answer, where string) bool {
	const expected = "the outcome of the first request"
	if !again.outcome() {
		return x.wantOrHarm(unresolved(again), false, expected, "%s, then %s%s", first, again, where)
	}
	same, known := sameOutcome(first, again)
	switch {
	case known && !same:
		x.proved = true
		return x.wantOrHarm(x.twoNames(op), false, expected, "%s, then %s%s", first, again, where)
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
	return x.atMost(op, 1, n, "its reference") && x.wantOrHarm(lost, n == 1, "1 effect of both answers", "%s of both answers", plural(n, "effect"))
}

// twoNames returns the harm of two successes of one operation that name different resources. It is twice (two effects), unless a counter shows one
// effect only: then the answers are merely wrong (otherwise). The count is repeated later for late effects.
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

// sameOrTwice returns the harm of a second success: the case's own if both answers have the same outcome, else that of two different effects
// (twoNames).
func (x *trial) sameOrTwice(op *operation, same bool) harm {
	if same {
		return ownHarm
	}
	return x.twoNames(op)
}

// unresolved returns the harm (the damage to a customer) of a last answer without an outcome: stuck if the key does not resolve (in progress, no
// answer or a server error), denied if the request is refused.
func unresolved(a *answer) harm {
	if a.kind == busy || a.kind == noAnswer || a.kind == broken {
		return stuck
	}
	return denied
}

// wantOutcome checks that the last answer under a key is its outcome: the work is done. expected, format and args are the text of the report. It
// returns the result of the check.
func (x *trial) wantOutcome(a *answer, expected, format string, args ...any) bool {
	return x.wantOrHarm(unresolved(a), a.outcome(), expected, format, args...)
}

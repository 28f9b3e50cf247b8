package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// learnt holds the results of the probe. It does not change after the probe.
type learnt struct {
	// ids and places report that two operations got two ids, or two Locations: only then do
	// they tell effects apart.
	ids, places bool
	done        bool    // the probe has set ids and places
	witness     Witness // the strongest one that works
	// badWitness and badDelay are the reasons against the witness and the delay; "": they work.
	badWitness, badDelay string
}

// probeTries is the most sends of a plain operation while the server is not ready.
const probeTries = 3

// probe sends a few plain operations before the first case, and fills r.learnt: whether ids and Locations tell effects apart, and whether effects can
// be counted, or only inferred from these names. findWayIn tries other ways to send the key after a refusal; one is nil if none works. If the server
// accepts none, the error matches ErrRefuses: no case could be judged, and such a run must not look clean. If ctx ends, the error wraps the
// context's.
func (r *runner) probe(ctx context.Context, chosen []Case) error {
	x := r.newTrial(&Case{ID: "probe"}, "", nil)
	x.start(ctx)
	defer x.end()
	one, a := x.plainOperation()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("conformance: the run was ended: %w", err)
	}
	if a.kind != done {
		refusal := a
		if one, a = x.findWayIn(a); one == nil {
			return fmt.Errorf("%w: %s %s was answered %s%s", ErrRefuses, r.o.Method, r.target.Path, refusal, x.advice(refusal))
		}
	}
	// The same body under another key: an id that is made of the body tells
	// operations apart, and not executions.
	b := x.do(one.with(func(dup *operation) {
		dup.key = x.newOperation().key
		dup.fill(r)
	}), "the same under another key")
	two, c := x.plainOperation()
	if c.kind != done {
		c, two = a, one // the second did not succeed: the first stands for it
	}
	if b.kind != done && !strings.Contains(c.id, two.ref) {
		b = c // a body may be sent once only; the id is not made of it
	}
	r.learnt.done = true
	r.learnt.ids = a.id != "" && b.id != "" && a.id != b.id
	r.learnt.places = a.place != "" && b.place != "" && a.place != b.place
	r.learnt.witness = WitnessNone
	if r.learnt.ids || r.learnt.places {
		r.learnt.witness = WitnessInferred
	}
	x.tryWitness(one, two)
	if slices.ContainsFunc(chosen, func(c Case) bool { return slices.Contains(c.Needs, NeedDelay) }) {
		x.tryDelay()
	}
	return nil
}

// plainOperation sends new operations, probeTries at most, until one is answered, and without a server error: a refusal is final. It returns the last
// one with its answer.
func (x *trial) plainOperation() (*operation, *answer) {
	for n := 1; ; n++ {
		op := x.newOperation()
		a := x.do(op, "a plain operation")
		waiting := a.kind == noAnswer || a.status >= 500
		if a.kind == done || !waiting || n == probeTries || !x.pause(100*time.Millisecond) {
			return op, a
		}
	}
}

// keyHeaders lists the header names under which servers look for keys.
func keyHeaders() []string {
	return []string{"Idempotency-Key", "X-Idempotency-Key", "X-Request-Id", "Idempotence-Key", "Request-Id"}
}

// advice returns a hint for the error after a refusal of every operation, with a leading semicolon: an option for credentials, or for the name of the
// key's header, if that may be the cause; "" if there is no hint. findable: the refusal is one that another way of sending the key could change.
// probesAllowed is the number of such ways that may be tried.
func (x *trial) advice(a *answer) string {
	if a.status == http.StatusUnauthorized && x.r.o.Header.Get("Authorization") == "" {
		return "; give its credentials with -H 'Authorization: …'"
	}
	if !findable(a) || !x.r.o.inHeader() {
		return ""
	}
	text := "; where it wants its key under another name than " + x.r.o.Profile.Carrier.Name + ", give --key-header NAME"
	if x.r.probesAllowed() == 0 && !x.r.o.NoProbe {
		text += "; other ways to send it are tried elsewhere than on loopback only with --max-effects N, since each may have an effect"
	}
	return text
}

// tryWitness checks the witness (the counter of effects at the target): it must count 0 for a reference without a request, and 1 or more for each
// accepted operation. Otherwise it sets badWitness, the reason why counts are not trusted in this run. WitnessInferred means that there is none, and
// changes nothing.
func (x *trial) tryWitness(accepted ...*operation) {
	l := &x.r.learnt
	unused, witness, err := x.r.steering.effects(x.ctx, x.newOperation().ref)
	switch {
	case err != nil:
		l.badWitness = strings.TrimPrefix(err.Error(), "conformance: ")
		return
	case witness == WitnessInferred:
		return
	case unused > 0:
		l.badWitness = fmt.Sprintf("witness: it counts %d for a reference that was never used", unused)
		return
	}
	inferred := l.witness
	l.witness = witness
	for _, op := range accepted {
		if n, ok := x.settledEffects(op.ref, 1); !ok || n == 0 {
			l.badWitness = fmt.Sprintf("witness: it counts 0 for an operation that was accepted, though it was waited for (--effect-wait %v)", x.r.o.EffectWait)
			l.witness = inferred
			return
		}
	}
}

// tryDelay tests whether operations can be made slow: it sends a plain one and a slow one. If the slow one does not take its time, badDelay has the
// reason, and cases that need it are inconclusive.
func (x *trial) tryDelay() {
	if x.r.steering.ownsHandler() || x.r.o.DelayQuery == "" {
		return
	}
	plain := x.do(x.newOperation(), "not slow")
	slow := x.newOperation()
	hold := min(x.r.o.Hold, holdDefault) // enough to tell, and no longer than needed
	x.r.steering.hold(slow, hold)
	a := x.do(slow, "slow")
	took, usual := a.ended.Sub(a.started), plain.ended.Sub(plain.started)
	switch {
	case a.kind != done:
		x.r.learnt.badDelay = fmt.Sprintf("an operation that was to be slow (--delay-query) was answered %s", a)
	case took < hold*3/4:
		x.r.learnt.badDelay = fmt.Sprintf("an operation that was to take %v (--delay-query) took %v, and another one %v: nothing would overlap",
			hold, took.Round(time.Millisecond), usual.Round(time.Millisecond))
	}
}

// blind returns the reason for which effects cannot be seen in this run, with the option that may help; "" if they can. Cases that count effects are
// then inconclusive.
func (r *runner) blind() string {
	switch {
	case r.learnt.badWitness != "":
		return r.learnt.badWitness + " (--witness)"
	case r.learnt.witness == WitnessNone && !r.steering.ownsHandler():
		return "no effect can be seen: two operations are not told apart by " + r.o.IDPointer + " or Location in their answers, and there is no witness (--witness, --id-pointer)"
	}
	return ""
}

// unfounded returns the reason if the probe has shown that an option for the case does not
// work, such as a DelayQuery without a delay; "" otherwise. The case is inconclusive then.
func (r *runner) unfounded(c *Case) string {
	if slices.Contains(c.Needs, NeedDelay) && r.learnt.badDelay != "" {
		return r.learnt.badDelay
	}
	return ""
}

// headline returns Report.Headline: what limits the verdicts of the run, in sentences; "" if nothing does. It sets rep.Witness, and reads rep.Cut,
// which must be set.
func (r *runner) headline(rep *Report) string {
	rep.Witness = r.learnt.witness
	var parts []string
	if found := r.wayFound(); found != "" {
		parts = append(parts, found)
	}
	if why := r.blind(); why != "" {
		rep.Witness = WitnessNone
		parts = append(parts, "Effects could not be counted: "+why+".")
	}
	if r.learnt.badDelay != "" {
		parts = append(parts, "Nothing could be made to overlap: "+r.learnt.badDelay+".")
	}
	if rep.Cut {
		parts = append(parts, "The run was ended before every case was judged.")
	}
	return strings.Join(parts, " ")
}

// limited reports whether an answer comes from a limit on the rate of requests: 429, unless
// that means "in progress" in the profile.
func (r *runner) limited(a *answer) bool {
	return a.status == http.StatusTooManyRequests && !matchesAny(r.o.Profile.InProgress, a)
}

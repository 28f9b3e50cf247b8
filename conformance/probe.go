package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// learnt is what the probe found out about the target and about what the options
// say of it. It does not change afterwards.
type learnt struct {
	// ids and places report whether two operations were given two ids, or two
	// Locations: only then does one of them name an effect.
	ids, places bool
	done        bool // the probe was sent
	witness     Witness
	// badWitness and badDelay say why the witness, or the delay, is not believed.
	badWitness, badDelay string
}

// probeTries is how often a plain operation is tried before anything is judged.
const probeTries = 3

// probe sends a few plain operations before the first case, and fills r.learnt. If
// the server does not accept them, the error matches ErrRefuses: every case would
// be inconclusive, and a run that judged nothing must not look like a clean one.
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
		c, two = a, one
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

// plainOperation sends a new operation, and again, up to probeTries times, while the
// server is not ready.
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

// keyHeaders are names under which servers look for keys.
func keyHeaders() []string {
	return []string{"Idempotency-Key", "X-Idempotency-Key", "X-Request-Id", "Idempotence-Key", "Request-Id"}
}

// advice says what may be wrong if every operation is refused, and no other way was found.
func (x *trial) advice(a *answer) string {
	if !findable(a) || !x.r.o.inHeader() {
		return ""
	}
	text := "; where it wants its key under another name than " + x.r.o.Profile.Carrier.Name + ", give --key-header NAME"
	if x.r.probesAllowed() == 0 && !x.r.o.NoProbe {
		text += "; other ways to send it are tried elsewhere than on loopback only with --max-effects N, since each may have an effect"
	}
	return text
}

// tryWitness believes the witness only where it counts nothing for a reference
// that was never used, and something for an operation that was accepted.
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

// tryDelay sends one operation that is to be slow, and one that is not.
func (x *trial) tryDelay() {
	if x.r.steering.ownsHandler() || x.r.o.DelayQuery == "" {
		return
	}
	plain := x.do(x.newOperation(), "not slow")
	slow := x.newOperation()
	hold := min(x.r.o.Hold, holdDefault)
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

// blind says why effects cannot be seen in this run, or "".
func (r *runner) blind() string {
	switch {
	case r.learnt.badWitness != "":
		return r.learnt.badWitness + " (--witness)"
	case r.learnt.witness == WitnessNone && !r.steering.ownsHandler():
		return "no effect can be seen: two operations are not told apart by " + r.o.IDPointer + " or Location in their answers, and there is no witness (--witness, --id-pointer)"
	}
	return ""
}

// unfounded says why what a case needs does not do what the options say of it.
func (r *runner) unfounded(c *Case) string {
	if slices.Contains(c.Needs, NeedDelay) && r.learnt.badDelay != "" {
		return r.learnt.badDelay
	}
	return ""
}

// headline is what a reader has to know before any verdict.
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

// limited reports whether an answer comes from a limit on the rate of requests:
// 429, where the profile does not use that for "still being worked on".
func (r *runner) limited(a *answer) bool {
	return a.status == http.StatusTooManyRequests && !matchesAny(r.o.Profile.InProgress, a)
}

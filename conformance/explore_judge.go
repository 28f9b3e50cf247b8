package conformance

import (
	"bytes"
	"net/http"
	"slices"
)

// The model for a played sequence: a key has one effect at most, and one outcome for every
// repeat of its request; another request under it is refused; a refused request has no effect;
// a key resolves. Servers may choose: spellings of a body are one request or several; query,
// path and caller belong to the key or not; a duplicate waits or is told to; failures are kept
// or run again.

// judgement compares a played sequence with the model, and adds the contradictions to the trial of
// the play. The goroutine of the trial uses it.
type judgement struct {
	trial *trial
	play  *played // sent whole
}

// judgePlayed adds the contradictions between a played sequence and the model of a correct server to the trial's findings. It skips a sequence with
// requests that the target refuses under any key (takenFresh sends the first one under a fresh key, to see). After a crash it does not count effects:
// one before and one after it are a server's choice.
func (j judgement) judgePlayed() {
	if !j.play.wasTaken() && !j.play.mayFail() && !j.takenFresh("", nil) {
		if j.judgeCount(); j.trial.worst() == VerdictPass { // what nobody was told of may have happened all the same
			j.trial.skip("the target does not take such a request")
		}
		return
	}
	j.judgeOutcomes("")
	j.judgeRepeats()
	j.judgeAmid()
	for _, change := range j.play.changes() {
		j.judgeOutcomes(change)
		j.judgeChange(change)
	}
	j.judgeEnd()
	j.judgeOthers()
	if j.play.fails != "crash" { // an effect before and after a crash is a choice
		j.judgeCount()
	}
	j.trial.find(VerdictPass, "the sequence was played")
}

// wasTaken reports whether some request of the sequence was executed: it had the answer of a finished work.
func (p *played) wasTaken() bool {
	return slices.ContainsFunc(p.sends, func(s *sent) bool { return s.outcome() })
}

// takenFresh sends the request with that difference, in these forms, under a fresh key, and reports whether it has an outcome: a refusal was then for
// the key. False also if the difference cannot be made.
func (j judgement) takenFresh(change string, forms []string) bool {
	fresh := j.trial.newOperation()
	fresh.key = j.play.keyFrom(j.trial.r, fresh.key)
	op := j.play.op.with(func(dup *operation) {
		dup.body = bytes.ReplaceAll(dup.body, []byte(dup.ref), []byte(fresh.ref))
		dup.body = bytes.ReplaceAll(dup.body, []byte(dup.key), []byte(fresh.key))
		dup.key, dup.ref = fresh.key, fresh.ref // body and all: padding and members stay, which fill would drop
	})
	op.fillKey(j.trial.r)
	if change != "" {
		op = j.play.differing(j.trial, op, change)
	}
	return op != nil && j.play.send(j.trial, move{copies: 1, forms: forms}, op, "", "the same under a key of its own").outcome()
}

// judgeOutcomes checks that all requests of the sequence with one difference have one outcome. An empty change means the first request and its
// repeats.
func (j judgement) judgeOutcomes(change string) {
	var first *sent
	for _, s := range j.play.sends {
		switch {
		case s.change != change || !s.outcome() || j.unprotected(change):
		case first == nil:
			first = s
		default:
			if same, known := sameOutcome(first.answer, s.answer); known && !same {
				j.trial.proved = true
				j.trial.wantOrHarm(j.trial.twoNames(j.play.op), false, "one outcome of one request", "%s, and %s", first, s)
				return
			}
		}
	}
}

// unprotected reports whether the profile has no keys for the method of requests with that difference, so that each of them may be executed.
func (j judgement) unprotected(change string) bool {
	method := j.play.as[change].method
	return method != j.trial.r.o.Method && !j.trial.r.o.keyed(method)
}

// judgeAmid checks repeats that arrived while another request of the key was at work (amid): they must wait for its outcome, or be told to come
// again. A repeat whose client leaves, or in a special form, does not count; nor does a sequence in which another request had an outcome or may fail.
func (j judgement) judgeAmid() {
	first, ok := j.play.outcomeOf("")
	if !ok || j.play.othersOutcome() || j.play.mayFail() {
		return
	}
	for _, s := range j.play.sends {
		switch {
		case !s.amid || s.change != "" || j.play.endsEarly(s.act) || len(j.play.acts[s.act].forms) > 0:
		case s.kind == refused || s.kind == mismatch || s.kind == broken && s.status != http.StatusServiceUnavailable:
			j.trial.should(false, "the outcome, or the word that it is in progress", "%s", s)
			return
		// it waited for long after the outcome, and not for want of time
		case s.kind == noAnswer && s.ended.Sub(first.ended) > j.trial.r.o.AnswerTimeout/2 && errorText(s.err) == "timeout":
			j.trial.wantOrHarm(stuck, false, "the outcome, or the word that it is in progress", "%s, though %s", s, first)
			return
		}
	}
}

// judgeRepeats checks that each repeat of the first request after its outcome (again) gets an outcome. It stops at the first one that does not. A
// repeat in a form that the target never takes does not count.
func (j judgement) judgeRepeats() {
	for _, s := range j.play.sends {
		if !s.again || s.change != "" || s.outcome() || j.play.endsEarly(s.act) {
			continue
		}
		if forms := j.play.formsOf(s); len(forms) > 0 && !j.takenFresh("", forms) {
			continue // not in this form, whatever the key
		}
		j.trial.wantOrHarm(unresolved(s.answer), false, "the outcome that was given before", "%s", s)
		return
	}
}

// formsOf returns the special forms in which a request of the sequence was sent (such as "chunked"); none for the requests that
// the suite adds at the end.
func (p *played) formsOf(s *sent) []string {
	if s.act >= len(p.acts) {
		return nil
	}
	return p.acts[s.act].forms
}

// endsEarly reports whether the client of the act (a step of the sequence) at this index leaves before the answer. The index behind the last act
// means the repeat at the end; its client stays.
func (p *played) endsEarly(at int) bool { return at < len(p.acts) && p.acts[at].ends != "" }

// judgeChange checks requests that differ from the first one in a relation, a kind of difference. The relation's bearing is the behaviour of a
// correct server: the first outcome or a refusal (either), a refusal (other), a refusal or an outcome of its own (apart), any of these (free).
// Without names in common, a mark of a replay or a single effect shows that both had one outcome. Without an outcome of both requests there is
// nothing to compare.
func (j judgement) judgeChange(change string) {
	rel := j.trial.r.related[change]
	first, ok := j.play.outcomeOf("")
	differing, also := j.play.outcomeOf(change)
	if !ok || !also || rel.bearing == free {
		return
	}
	same, known := sameOutcome(first.answer, differing.answer)
	switch {
	case rel.bearing == either && known && !same:
		j.trial.proved = true
		j.trial.wantOrHarm(j.trial.twoNames(j.play.op), false, "the outcome of the first request, or a refusal", "%s, and %s", first, differing)
	case rel.bearing == either:
	case !known && !differing.replayed && !first.replayed && !j.oneEffect(): // nothing shows that both had one outcome
		if rel.bearing == other {
			j.trial.wantOrHarm(twice, false, "a refusal", "%s, and %s", first, differing)
		}
	case known && !same && rel.bearing == other:
		j.trial.proved = true
		j.trial.wantOrHarm(j.trial.twoNames(j.play.op), false, "a refusal", "%s, and %s", first, differing)
	case known && !same:
	case rel.bearing == other && rel.level == LevelShould:
		j.trial.should(false, "a refusal", "%s, and %s", first, differing)
	case rel.bearing == other:
		j.trial.wantOrHarm(lost, false, "a refusal", "%s, and %s", first, differing)
	default:
		j.trial.wantOrHarm(lost, false, "a refusal, or an outcome of its own", "%s, and %s", first, differing)
	}
}

// oneEffect reports whether a count shows exactly one effect of the sequence's operation. It returns false if nobody counts. It waits a moment for a
// second effect.
func (j judgement) oneEffect() bool {
	if !j.trial.counts() {
		return false
	}
	n, ok := j.trial.settledEffects(j.play.op.ref, 2)
	return ok && n == 1
}

// outcomeOf returns the first send of a request with that difference that got an outcome; false if none did.
func (p *played) outcomeOf(change string) (*sent, bool) {
	at := slices.IndexFunc(p.sends, func(s *sent) bool { return s.change == change && s.outcome() })
	if at < 0 {
		return nil, false
	}
	return p.sends[at], true
}

// judgeEnd checks that the key has resolved: to the outcome of the first request, or of another that may have come before it, or to that one's
// refusal. An operation that is made to fail may fail again. A refusal that the request gets under a fresh key, too, is right. unresolved is denied
// for a refusal, stuck for an answer that leaves the key open.
func (j judgement) judgeEnd() {
	last := j.play.ending()
	switch {
	case last.outcome():
	case j.play.mayFail() && last.kind != busy:
	case j.play.mayFail():
		j.trial.wantOrHarm(stuck, false, "an outcome, or the failure again", "%s", last)
	case j.play.othersOutcome(), j.play.refusedFirst() && unresolved(last.answer) == denied:
	case last.again: // judgeRepeats has said it
	case last.kind == refused && !j.takenFresh("", nil):
	default:
		j.trial.wantOrHarm(unresolved(last.answer), false, "the outcome in the end", "%s", last)
	}
}

// mayFail reports whether a request of the sequence is made to fail, so that a correct server may keep and repeat the failure.
func (p *played) mayFail() bool { return p.fails != "" || slices.Contains(p.changes(), failsFirst) }

// ending returns the last send of the sequence's first request, repeats included. It is not nil once the sequence was played.
func (p *played) ending() *sent {
	var last *sent
	for _, s := range p.sends {
		if s.change == "" {
			last = s
		}
	}
	return last
}

// othersOutcome reports whether a request that differs from the first had an outcome, and so
// may hold the key.
func (p *played) othersOutcome() bool {
	return slices.ContainsFunc(p.sends, func(s *sent) bool { return s.change != "" && s.outcome() })
}

// refusedFirst reports whether a request that differs may have come first under the key: a server may keep its refusal. It may if it is the first
// act, or the second and sent beside the first.
func (p *played) refusedFirst() bool {
	return len(p.acts) > 0 && (p.acts[0].change != "" || len(p.acts) > 1 && p.acts[1].beside && p.acts[1].change != "")
}

// judgeOthers checks that the operations with other keys, sent in between, had outcomes and effects of their own. One without an outcome is passed
// over: it may have been refused for reasons of its own.
func (j judgement) judgeOthers() {
	for _, s := range j.play.others {
		if !s.outcome() {
			continue
		}
		if !j.trial.isOwn(s) {
			j.trial.proved = true
			j.trial.wantOrHarm(lost, false, "an outcome of another operation's own", "%s of another reference for an operation with another key and body", s.answer)
			return
		}
		if n, ok := j.trial.effects(s.op.ref); ok && n > 1 {
			j.trial.atMost(s.op, 1, n, "another operation")
			return
		}
	}
}

// isOwn reports whether the names in an answer (its id and Location) are new in this run, or known as those of its own operation. New names belong to
// this operation from now on.
func (x *trial) isOwn(s *sent) bool {
	owner := func(name string) bool { return x.r.owners.claim(name, s.op.ref) == s.op.ref }
	return (s.id == "" || owner("id "+s.id)) && (s.place == "" || owner("place "+s.place))
}

// judgeCount checks the number of effects of the sequence's operation: not more than allowed, and at least one if the first request, or a repeat of
// it, was answered with a success. The effects are counted by the operation's reference, whatever its keys. Where they are only inferred from
// answers, a missing one says nothing. wasTaken: some request had an outcome, so that an effect is waited for.
func (j judgement) judgeCount() {
	if j.trial.r.blind() != "" {
		return // no answer names an effect, and nobody counts
	}
	want := count(j.play.wasTaken())
	n, ok := j.trial.settledEffects(j.play.op.ref, want)
	if !ok {
		return
	}
	const what = "its reference"
	j.trial.noteEffects(what, n)
	if !j.trial.atMost(j.play.op, j.mostEffects(), n, what) || !j.trial.counts() {
		return
	}
	if _, given := j.play.outcomeOf(""); given {
		j.trial.wantOrHarm(lost, n > 0, "an effect of what was answered with a success", "%s of %s", j.trial.counted(n), what)
	}
}

// mostEffects returns the most effects of a correct server: none if all was refused, else one, and one more for each kind of difference that may make
// a request an operation of its own. Where the profile has no keys for its method (unprotected), each send of it may have an effect. A request that
// was refused, or cut off in its body, must have none.
func (j judgement) mostEffects() int {
	most, extra := 0, map[string]int{}
	for _, s := range j.play.sends {
		refusal := s.status >= 400 && s.status < 500 && s.kind != busy
		if refusal || j.play.endsEarly(s.act) && j.play.acts[s.act].ends == "cut" { // cut off in its body
			continue
		}
		if b := j.trial.r.related[s.change].bearing; s.change != "" && (b == apart || b == free) && s.change != failsFirst {
			extra[s.change]++
			if !j.unprotected(s.change) {
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

package conformance

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// historyCheckMax bounds one check; a history that takes longer proves nothing.
const historyCheckMax = 2 * time.Second

// event is one request of a history, with its answer.
type event struct {
	call, ret time.Time // start and end; a zero ret means that it may take effect at any later time
	fate      fate
	name      string // of the effect, for fate outcome; "": the answer has none
}

// lost reports whether the request got no answer and may have had its effect: that may happen at any time after the request was sent, even after the
// end of the history.
func (e event) lost() bool { return e.fate == maybe && e.ret.IsZero() }

// fate is the meaning of an answer for the outcome of its operation.
type fate uint8

const (
	maybe   fate = iota // not known: no answer, or a server error
	outcome             // the outcome was given
	waiting             // the answer was "in progress"
)

// events returns the answers to requests of one key as a history for the model, in the same order. It leaves out refusals and rate limits, which say
// nothing of the key's effect; after a server error, or without an answer, there may be an effect (fate maybe; no end time without an answer). An
// answer with a Location alone has the id that another answer gave with that Location.
func events(answers []*answer) []event {
	var all []event
	names := map[string]string{} // by place: an answer that has lost its body may have kept that
	for _, a := range answers {
		if a.id != "" && a.place != "" {
			names[a.place] = a.id
		}
	}
	for _, a := range answers {
		e := event{call: a.started, ret: a.ended, name: a.id}
		switch a.kind {
		case done:
			e.fate = outcome
			if e.name == "" {
				e.name = names[a.place]
			}
			if e.name == "" {
				e.name = a.place
			}
		case alreadyDone:
			e.fate, e.name = outcome, ""
		case busy:
			if a.throttled {
				continue // it says nothing of the key
			}
			e.fate = waiting
		case broken: // the fate stays "maybe", the zero value
		case noAnswer:
			e.ret = time.Time{}
		default:
			continue
		}
		all = append(all, e)
	}
	return all
}

// ruling is the judgement of a history.
type ruling struct {
	known bool   // false: it could not be judged in time, and legal says nothing
	legal bool   // a correct server may have given these answers
	why   string // the reason, for the report
	harm  harm   // if known and not legal
}

// judgeHistory compares the history of one key with the model: one effect at most; each answer is the outcome, or "in progress" while the work may be
// running. effects is the witness's count after the last event; a negative one means no count. The ruling says whether the history is legal; known is
// false if a search of historyCheckMax could not decide it. why is the reason, and harm the damage to a customer. Simple violations are found without
// the search.
func judgeHistory(history []event, effects int) ruling {
	if why, shows := plainViolation(history, effects); why != "" {
		return ruling{known: true, why: why, harm: shows}
	}
	switch checkModel(history, effects) {
	case porcupine.Ok:
		return ruling{legal: true, known: true, why: "a linearizable history of " + plural(len(history), "request")}
	case porcupine.Illegal:
		return ruling{known: true, why: "a history that no order of one effect explains: " + tale(shrink(history, effects)), harm: otherwise}
	}
	return ruling{why: "the history could not be judged in time"}
}

// checkModel searches for an order of one effect that explains the history. porcupine.Unknown
// means that historyCheckMax has passed.
func checkModel(history []event, effects int) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(keyModel(), operationsOf(reduce(history), effects), historyCheckMax)
}

// shrink returns a shorter history that is still illegal, for the report. It tries to leave out each "in progress" answer, and those only: without a
// request that may have had the effect, a legal history could look illegal.
func shrink(history []event, effects int) []event {
	small := slices.Clone(history)
	for i := len(small) - 1; i >= 0; i-- {
		if small[i].fate != waiting {
			continue
		}
		if fewer := slices.Delete(slices.Clone(small), i, i+1); checkModel(fewer, effects) == porcupine.Illegal {
			small = fewer
		}
	}
	return reduce(small)
}

// tale returns a history of calls and answers in words, with times in milliseconds from its first request. The history must not be empty.
func tale(history []event) string {
	var parts []string
	for _, e := range history {
		part := map[fate]string{outcome: "the outcome", waiting: "in progress", maybe: "no telling"}[e.fate]
		part += fmt.Sprintf(" asked at %.1f ms", float64(e.call.Sub(history[0].call).Microseconds())/1000)
		if !e.ret.IsZero() {
			part += fmt.Sprintf(" answered at %.1f ms", float64(e.ret.Sub(history[0].call).Microseconds())/1000)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// plainViolation returns a violation that one sentence explains, and its harm; "" if there is none. A negative number of effects means no count. It
// decides the frequent cases without a search.
func plainViolation(history []event, effects int) (string, harm) {
	if effects > 1 {
		return plural(effects, "effect") + " of one key", twice
	}
	var names []string
	var given time.Time
	for _, e := range history {
		if e.fate != outcome {
			continue
		}
		if e.name != "" && !slices.Contains(names, e.name) {
			names = append(names, e.name)
		}
		if given.IsZero() || e.ret.Before(given) {
			given = e.ret
		}
	}
	if len(names) > 1 {
		shows := otherwise // one effect was counted
		if effects < 0 {
			shows = twice
		}
		return fmt.Sprintf("%d outcomes of one key: %q and %q", len(names), names[0], names[1]), shows
	}
	for _, e := range history {
		if e.fate == waiting && !given.IsZero() && e.call.After(given) {
			return "in-progress was answered after the outcome had been given", otherwise
		}
	}
	return "", ownHarm
}

// reduce returns the history without the events that constrain nothing, in the order of their start, and so keeps the search for an order of one
// effect small. Of outcomes with one name it keeps the first to end, which bounds the time of the effect, and the first to start, which may have had
// it. Of requests without an answer it keeps the first to start: the others may do nothing that the first cannot.
func reduce(history []event) []event {
	kept := slices.DeleteFunc(slices.Clone(history), func(e event) bool { return e.fate == outcome || e.lost() })
	for i, e := range history {
		if e.lost() && !slices.ContainsFunc(history, func(other event) bool { return other.lost() && other.call.Before(e.call) }) {
			kept = append(kept, history[i])
			break
		}
	}
	first := map[string]event{}
	soonest := map[string]event{}
	for _, e := range history {
		if e.fate != outcome {
			continue
		}
		if had, ok := first[e.name]; !ok || e.call.Before(had.call) {
			first[e.name] = e
		}
		if had, ok := soonest[e.name]; !ok || e.ret.Before(had.ret) {
			soonest[e.name] = e
		}
	}
	for name, e := range first {
		kept = append(kept, e)
		if soonest[name] != e {
			kept = append(kept, soonest[name])
		}
	}
	slices.SortFunc(kept, func(a, b event) int { return a.call.Compare(b.call) })
	return kept
}

// step is one operation of the porcupine model. A request that may have run has two: its
// arrival, and its end.
type step struct {
	who    int    // index of the request in the history
	arrive bool   // the arrival; false: the end
	fate   fate   // of the request
	name   string // of its outcome; "": none
	count  int    // effects by the witness, in a step of its own; negative: this step is no count
}

// keyState is one possible state of a key in the model. Idle is running -1 and done false.
type keyState struct {
	running int    // step.who of the request at work; -1: none
	done    bool   // the effect has happened
	name    string // of the outcome, with done; "": not known yet
}

// operationsOf returns a history of requests in the form for the linearizability checker porcupine. A request that may have run is two operations,
// its arrival and its end, both over its whole time; an "in progress" answer is its end alone. A request without an answer may end at any later time.
// effects is the number of effects counted at the server, checked as a last operation; negative: nobody counts. A count of -1 means that a step is no
// count. last is the time of the last known event.
func operationsOf(history []event, effects int) []porcupine.Operation {
	var operations []porcupine.Operation
	var zero time.Time
	if len(history) > 0 {
		zero = history[0].call
	}
	last := int64(0)
	for who, e := range history {
		call, ret := e.call.Sub(zero).Nanoseconds(), int64(math.MaxInt64-1)
		if !e.ret.IsZero() {
			ret = e.ret.Sub(zero).Nanoseconds()
			last = max(last, ret)
		}
		last = max(last, call)
		if e.fate != waiting {
			operations = append(operations, porcupine.Operation{
				ClientId: who, Input: step{who: who, arrive: true, fate: e.fate, count: -1}, Call: call, Return: ret,
			})
		}
		operations = append(operations, porcupine.Operation{
			ClientId: who, Input: step{who: who, fate: e.fate, name: e.name, count: -1}, Call: call, Return: ret,
		})
	}
	if effects >= 0 {
		operations = append(operations, porcupine.Operation{
			ClientId: len(history), Input: step{count: effects}, Call: last + 1, Return: last + 2,
		})
	}
	return operations
}

// keyModel returns the model of one key: one effect; each answer is the outcome, or "in
// progress" while the work may be running. A request of fate maybe may have run or not.
func keyModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{keyState{running: -1}} },
		Step: func(state, input, _ any) []any {
			var next []any
			for _, s := range nextStates(state.(keyState), input.(step)) {
				next = append(next, s)
			}
			return next
		},
	}
	return model.ToModel()
}

// nextStates returns the possible states of a key after a step from state s. A step is the arrival of a request, its end, or a count of effects.
// There are no states if a correct server cannot make the step from s. In a state, running is the request at work (-1: none), done says that the
// effect has happened, and name is that of its outcome ("": not known yet). A step with a count below zero is no count. A request at work may have
// had its effect already, or not yet: both counts fit.
func nextStates(s keyState, in step) []keyState {
	idle := s.running < 0 && !s.done
	switch {
	case in.count >= 0:
		return keep(s, in.count == 1 && !idle || in.count == 0 && !s.done)
	case in.arrive && idle:
		return arrivals(s, in)
	case in.arrive:
		return []keyState{s}
	}
	return endings(s, in)
}

// arrivals returns the possible states after a request has come to an idle key. The request runs. If its answer does not tell the outcome (fate
// maybe), the request may also never have arrived. running is the request at work in a state.
func arrivals(s keyState, in step) []keyState {
	runs := s
	runs.running = in.who
	if in.fate == maybe {
		return []keyState{s, runs}
	}
	return []keyState{runs}
}

// endings returns the possible states after the end of a request. After an answer that tells nothing (fate maybe) it may still run, have had its
// effect, or have ended without one. There are none if a correct server cannot give this answer in state s. In a state, running is the request at
// work (-1: none), done says that the effect has happened, and name is that of its outcome ("": not known yet).
func endings(s keyState, in step) []keyState {
	ends := keyState{running: -1, done: true, name: in.name}
	switch {
	case in.fate == waiting:
		return keep(s, s.running >= 0)
	case in.fate == maybe && s.running == in.who:
		return []keyState{s, ends, {running: -1}}
	case in.fate == maybe:
		return []keyState{s}
	case s.running == in.who:
		return []keyState{ends}
	case s.done && (s.name == "" || in.name == "" || s.name == in.name):
		if s.name == "" {
			s.name = in.name
		}
		return []keyState{s}
	}
	return nil
}

// keep returns the state s as the only possible one if a correct server can make the step, else no state.
func keep(s keyState, legal bool) []keyState {
	if legal {
		return []keyState{s}
	}
	return nil
}

// wantHistory checks that all answers to op, and the count of effects, fit the model of one key: one effect at most, and each answer is the outcome,
// or "in progress" while the work may be running. False: the check failed, or the case is inconclusive.
func (x *trial) wantHistory(op *operation, answers []*answer) bool {
	n, ok := x.settledEffects(op.ref, 1)
	if !ok {
		return false
	}
	x.noteEffects("its reference", n)
	counted := n
	if !x.counts() {
		counted = -1
	}
	history := events(answers)
	if counted == 0 && !slices.ContainsFunc(history, func(e event) bool { return e.fate == outcome }) {
		counted = -1 // nothing has happened yet, and no answer says otherwise
	}
	r := judgeHistory(history, counted)
	if !r.known {
		x.inconclusive("%s", r.why)
		return false
	}
	return x.wantOrHarm(r.harm, r.legal, "one effect; each answer its outcome, or in-progress while it may be running", "%s", r.why)
}

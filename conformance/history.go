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

// event is one request of a history and what became of it.
type event struct {
	call, ret time.Time // ret is zero for one that may take effect at any later time
	fate      fate
	name      string // of the outcome; "": it names none
}

// lost reports whether a request was not answered: it may have run at any time since.
func (e event) lost() bool { return e.fate == maybe && e.ret.IsZero() }

// fate is what an answer says of the operation's outcome.
type fate uint8

const (
	maybe   fate = iota // not known: no answer, or a server error
	outcome             // the outcome was given
	waiting             // the answer was "in progress"
)

// events reads answers as a history of one key. Refusals say nothing about the
// key's effect and are left out.
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
		case broken:
		case noAnswer:
			e.ret = time.Time{}
		default:
			continue
		}
		all = append(all, e)
	}
	return all
}

// ruling is what can be said of a history: known is false if it could not be judged,
// legal that a correct server may have given it, and why the reason.
type ruling struct {
	legal, known bool
	why          string
	harm         harm // if it is not legal
}

// judgeHistory holds the history of one key against the model: one effect; each
// answer is the outcome, or in-progress while it may be running. effects is the
// witness's count after the last event, or negative if there is none.
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

// checkModel asks for a linearization.
func checkModel(history []event, effects int) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(keyModel(), operationsOf(reduce(history), effects), historyCheckMax)
}

// shrink leaves answers out for as long as what is left is still illegal. Only
// those that can do nothing but constrain are left out: without one that may have
// had the effect, a legal history could look illegal.
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

// tale is a history in words.
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

// plainViolation finds what can be said in a sentence; each is a reason why no
// linearization exists, so that the checker need not search for one.
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

// reduce leaves out outcomes that constrain nothing: of those with one name, the
// first to return says by when the effect has happened, and the first to be
// called may stand for the one that had it. Of the requests that were not answered
// the first to be called may stand for all: each may do nothing, and the first may do
// whatever one of the others may. It keeps the search small.
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

// step is one operation of the model. A request is two: it arrives, which may
// make it the one that runs, and it ends.
type step struct {
	who    int
	arrive bool
	fate   fate
	name   string
	count  int // of the witness; negative: not a count
}

// keyState is one key as the model has it.
type keyState struct {
	running int // who, or -1
	done    bool
	name    string // of the outcome; "": not known yet
}

// operationsOf turns a history into porcupine's form. A request that may have run is
// two operations: its arrival and its answer; one that was told to wait is its answer
// alone. Without an answer it may end at any later time. A last operation is the
// witness's count, unless effects is negative.
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

// keyModel is "one effect per key; each answer is the outcome, or in-progress
// while it may be running". A request whose fate is not known may have run or not.
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

// nextStates are the states in which a key may be after a step.
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

// arrivals are the states after a request has come to an idle key: it runs, or,
// where it is not known what became of it, may not have come at all.
func arrivals(s keyState, in step) []keyState {
	runs := s
	runs.running = in.who
	if in.fate == maybe {
		return []keyState{s, runs}
	}
	return []keyState{runs}
}

// endings are the states after a request has been answered, or given up.
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

// keep returns s alone if the step is legal, else no state.
func keep(s keyState, legal bool) []keyState {
	if legal {
		return []keyState{s}
	}
	return nil
}

// wantHistory judges the answers to one operation as a history, with the witness.
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
	return x.spared(r.harm, r.legal, "one effect; each answer its outcome, or in-progress while it may be running", "%s", r.why)
}
